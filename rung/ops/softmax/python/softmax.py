# SPDX-License-Identifier: Apache-2.0
"""softmax and log-softmax."""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rung._rung import softmax as _softmax

if TYPE_CHECKING:
    from rung import Context

__all__ = ["softmax", "log_softmax"]
_RENAMED = {"y": "out"}  # in messages: the library's names of arguments
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
