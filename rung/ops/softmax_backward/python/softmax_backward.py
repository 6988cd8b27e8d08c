# SPDX-License-Identifier: Apache-2.0
"""Gradients of softmax and log-softmax."""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rung._rung import softmax_backward as _softmax_backward

if TYPE_CHECKING:
    from rung import Context

__all__ = ["softmax_backward", "log_softmax_backward"]
_RENAMED = {"dx": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


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
