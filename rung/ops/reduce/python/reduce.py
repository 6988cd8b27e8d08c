# SPDX-License-Identifier: Apache-2.0
"""Sums, products, extremes, means and norms over axes or segments.

x: of up to 8 axes, any strides; float32, float64, float16, bfloat16, int8, uint8, uint16, int32 or int64.
axes: an int or a sequence of them, from the end when negative; None: all. keepdims keeps them, with extent 1.
offsets (reduce() alone): n + 1 ascending int32 or int64, which cut the last axis into n segments.
The result has the type of x; sums and products of integers and indices are int64, means of integers float64. out= may
have another, as the header reduce.hpp lists. A reduction over all axes gives an array of no axes.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, TypeVar

from rung._rung import reduce as _reduce

if TYPE_CHECKING:
    from rung import Context

__all__ = ["reduce", "sum", "product", "min", "max", "mean", "argmin", "argmax", "norm"]
_RENAMED = {"y": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def reduce(x: Array, operation: str = "sum", *, axes: int | Sequence[int] | None = None, keepdims: bool = False,
           offsets: Any = None, out: Array | None = None, rung: str | None = None,
           context: Context | None = None) -> Array:
    """Reduces a tensor, some of its axes, or segments of the last one.

    operation: "sum", "product", "min", "max", "mean", "argmin", "argmax" or "norm" (L2).
    offsets: n + 1 ascending numbers; element s of the result's last axis is that of x[..., offsets[s]:offsets[s + 1]].

    Raises Error for types, axes and shapes that are not accepted, min, max, mean, argmin and argmax of nothing, and
    where out overlaps x or offsets.

    >>> import numpy as np
    >>> rung.reduce(np.array([1.0, 2.0, 4.0]), offsets=np.array([0, 2, 3]))
    array([3., 4.])
    """
    return _reduce(context, rung, operation, x, out, axes, bool(keepdims), offsets)


def sum(x: Array, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Array | None = None,
        rung: str | None = None, context: Context | None = None) -> Array:
    """Sum of the elements over axes; None: all axes.

    |error| <= 80 u sum |x|, u the unit roundoff, whatever the number of terms. Integers give int64, modulo 2^64.

    >>> import numpy as np
    >>> rung.sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axes=1)
    array([3., 7.])
    """
    return _reduce(context, rung, "sum", x, out, axes, bool(keepdims), None)


def product(x: Array, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Array | None = None,
            rung: str | None = None, context: Context | None = None) -> Array:
    """Product of the elements over axes; None: all axes.

    Integers give int64, modulo 2^64.

    >>> import numpy as np
    >>> rung.product(np.array([[1.0, 2.0], [3.0, 4.0]]), axes=0)
    array([3., 8.])
    """
    return _reduce(context, rung, "product", x, out, axes, bool(keepdims), None)


def min(x: Array, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Array | None = None,
        rung: str | None = None, context: Context | None = None) -> Array:
    """Least element over axes; None: all axes.

    NaN if one of them is NaN; Error for no elements.

    >>> import numpy as np
    >>> rung.min(np.array([[1.0, 2.0], [3.0, 4.0]]), axes=0)
    array([1., 2.])
    """
    return _reduce(context, rung, "min", x, out, axes, bool(keepdims), None)


def max(x: Array, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Array | None = None,
        rung: str | None = None, context: Context | None = None) -> Array:
    """Greatest element over axes; None: all axes.

    NaN if one of them is NaN; Error for no elements.

    >>> import numpy as np
    >>> rung.max(np.array([[1.0, 2.0], [3.0, 4.0]]), axes=-1, keepdims=True)
    array([[2.],
           [4.]])
    """
    return _reduce(context, rung, "max", x, out, axes, bool(keepdims), None)


def mean(x: Array, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Array | None = None,
         rung: str | None = None, context: Context | None = None) -> Array:
    """Mean of the elements over axes; None: all axes.

    Integers give float64. Error for no elements.

    >>> import numpy as np
    >>> rung.mean(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array(2.5)
    """
    return _reduce(context, rung, "mean", x, out, axes, bool(keepdims), None)


def argmin(x: Array, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Array | None = None,
           rung: str | None = None, context: Context | None = None) -> Array:
    """Position of the least element over axes, in C order of these; None: all axes.

    int64. The first of equal elements, and the first NaN where there is one; Error for no elements.

    >>> import numpy as np
    >>> rung.argmin(np.array([[1.0, 2.0], [3.0, 4.0]]), axes=1)
    array([0, 0])
    """
    return _reduce(context, rung, "argmin", x, out, axes, bool(keepdims), None)


def argmax(x: Array, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Array | None = None,
           rung: str | None = None, context: Context | None = None) -> Array:
    """Position of the greatest element over axes, in C order of these; None: all axes.

    int64. The first of equal elements, and the first NaN where there is one; Error for no elements.

    >>> import numpy as np
    >>> rung.argmax(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array(3)
    """
    return _reduce(context, rung, "argmax", x, out, axes, bool(keepdims), None)


def norm(x: Array, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Array | None = None,
         rung: str | None = None, context: Context | None = None) -> Array:
    """L2 norm, sqrt(sum x^2), over axes; None: all axes.

    Of float types. Squares neither overflow nor vanish for float32 and the smaller types.

    >>> import numpy as np
    >>> rung.norm(np.array([3.0, 4.0]))
    array(5.)
    """
    return _reduce(context, rung, "norm", x, out, axes, bool(keepdims), None)
