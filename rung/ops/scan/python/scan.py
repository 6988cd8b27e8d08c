# SPDX-License-Identifier: Apache-2.0
"""Running sums, products, minima and maxima along an axis; whole, or segment by segment."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rung._rung import scan as _scan

if TYPE_CHECKING:
    from rung import Context

__all__ = ["scan", "cumsum", "cumprod", "cummin", "cummax"]
_RENAMED = {"y": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def scan(x: Array, operation: str = "sum", *, axis: int = -1, exclusive: bool = False, reverse: bool = False,
         offsets: Any = None, out: Array | None = None, rung: str | None = None,
         context: Context | None = None) -> Array:
    """y[i] = x[0] + ... + x[i] along an axis, with + one of sum, product, min and max.

    x: of 1 to 8 axes; float32, float64, float16, bfloat16, int8, uint8, uint16, int32 or int64. out: shaped as x, of
    its type; may be x itself. Integers wrap in their own type, where NumPy widens them.
    operation: "sum", "product", "min" or "max". exclusive: without x[i], beginning with the identity. reverse: from the
    other end. offsets: int32 or int64, positions at which a segment begins; each is scanned on its own.

    Raises Error for types, axis and shapes that are not accepted, and where out overlaps x otherwise.

    >>> import numpy as np
    >>> rung.scan(np.array([1.0, 2.0, 3.0]), exclusive=True)
    array([0., 1., 3.])
    """
    return _scan(context, rung, operation, x, out, axis, bool(exclusive), bool(reverse), offsets)


def cumsum(x: Array, *, axis: int = -1, exclusive: bool = False, reverse: bool = False, out: Array | None = None,
           rung: str | None = None, context: Context | None = None) -> Array:
    """Running sums along an axis, the last by default; arguments and errors as of scan().

    >>> import numpy as np
    >>> rung.cumsum(np.array([3.0, 1.0, 2.0]))
    array([3., 4., 6.])
    """
    return _scan(context, rung, "sum", x, out, axis, bool(exclusive), bool(reverse), None)


def cumprod(x: Array, *, axis: int = -1, exclusive: bool = False, reverse: bool = False, out: Array | None = None,
            rung: str | None = None, context: Context | None = None) -> Array:
    """Running products along an axis, the last by default; arguments and errors as of scan().

    >>> import numpy as np
    >>> rung.cumprod(np.array([3.0, 1.0, 2.0]))
    array([3., 3., 6.])
    """
    return _scan(context, rung, "product", x, out, axis, bool(exclusive), bool(reverse), None)


def cummin(x: Array, *, axis: int = -1, exclusive: bool = False, reverse: bool = False, out: Array | None = None,
           rung: str | None = None, context: Context | None = None) -> Array:
    """Running minima along an axis, the last by default; arguments and errors as of scan().

    >>> import numpy as np
    >>> rung.cummin(np.array([3.0, 1.0, 2.0]))
    array([3., 1., 1.])
    """
    return _scan(context, rung, "min", x, out, axis, bool(exclusive), bool(reverse), None)


def cummax(x: Array, *, axis: int = -1, exclusive: bool = False, reverse: bool = False, out: Array | None = None,
           rung: str | None = None, context: Context | None = None) -> Array:
    """Running maxima along an axis, the last by default; arguments and errors as of scan().

    >>> import numpy as np
    >>> rung.cummax(np.array([3.0, 1.0, 2.0]))
    array([3., 3., 3.])
    """
    return _scan(context, rung, "max", x, out, axis, bool(exclusive), bool(reverse), None)
