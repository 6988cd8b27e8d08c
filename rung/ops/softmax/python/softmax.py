# SPDX-License-Identifier: Apache-2.0
"""softmax and log-softmax, forward and backward."""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rung._rung import softmax as _softmax, softmax_backward as _softmax_backward

if TYPE_CHECKING:
    from rung import Context

__all__ = ["softmax", "log_softmax", "softmax_backward", "log_softmax_backward"]
_RENAMED = {"y": "out", "dx": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def softmax(x: Array, *, axis: int = -1, scale: float = 1.0, out: Array | None = None, rung: str | None = None,
            context: Context | None = None) -> Array:
    """y_i = exp(scale (x_i - m)) / sum_j exp(scale (x_j - m)) along an axis, m = max_j x_j.

    x: of 1 to 8 axes, any strides; float32, float64, float16 or bfloat16. axis: from the end when negative.
    out: shaped as x, of its type, or float32 for float16 and bfloat16; may be x itself. An element of -infinity gives
    0, a row of nothing else is all 0.

    Raises Error for types, shapes, axis and scale that are not accepted, and where out overlaps x otherwise.

    >>> import numpy as np
    >>> rung.softmax(np.array([[1.0, 1.0], [0.0, np.log(3.0)]]))
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    return _softmax(context, rung, x, out, axis, scale, False)


def log_softmax(x: Array, *, axis: int = -1, scale: float = 1.0, out: Array | None = None, rung: str | None = None,
                context: Context | None = None) -> Array:
    """y_i = scale (x_i - m) - log sum_j exp(scale (x_j - m)) along an axis, m = max_j x_j.

    Arguments and errors as of softmax(). An element of -infinity gives -infinity.

    >>> import numpy as np
    >>> np.exp(rung.log_softmax(np.array([3.0, 3.0])))
    array([0.5, 0.5])
    """
    return _softmax(context, rung, x, out, axis, scale, True)


def softmax_backward(y: Array, dy: Array, *, axis: int = -1, scale: float = 1.0, out: Array | None = None,
                     rung: str | None = None, context: Context | None = None) -> Array:
    """dx_i = scale (dy_i - sum_j dy_j y_j) y_i, the gradient of softmax() from its result y and that of y.

    y, dy: of one shape and type. out: shaped as y, of its type, or float16 or bfloat16 for float32; may be y or dy.

    >>> import numpy as np
    >>> rung.softmax_backward(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    array([ 0.25, -0.25])
    """
    return _softmax_backward(context, rung, y, dy, out, axis, scale, False)


def log_softmax_backward(y: Array, dy: Array, *, axis: int = -1, scale: float = 1.0, out: Array | None = None,
                         rung: str | None = None, context: Context | None = None) -> Array:
    """dx_i = scale (dy_i - exp(y_i) sum_j dy_j), the gradient of log_softmax() from its result y and that of y.

    Arguments as of softmax_backward().

    >>> import numpy as np
    >>> rung.log_softmax_backward(np.log([0.5, 0.5]), np.array([1.0, 0.0]))
    array([ 0.5, -0.5])
    """
    return _softmax_backward(context, rung, y, dy, out, axis, scale, True)
