# SPDX-License-Identifier: Apache-2.0
"""The gradient of conv with respect to its filters."""
from __future__ import annotations

from typing import TYPE_CHECKING, Sequence, TypeVar

from rung._rung import conv_backward_filter as _conv_backward_filter

if TYPE_CHECKING:
    from rung import Context

__all__ = ["conv_backward_filter"]
_RENAMED = {"dw": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def conv_backward_filter(x: Array, dy: Array, shape: Sequence[int] | None = None, *, stride: int | Sequence[int] = 1,
                         padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
                         channels_last: bool = False, out: Array | None = None, rung: str | None = None,
                         context: Context | None = None) -> Array:
    """dw, the gradient of conv() with respect to its filters, from the gradient dy before bias and activation.

    x: conv's input. dy: shaped as conv's result.
    shape: that of dw, as conv's w was; it is left out where out is given. Stride, padding, dilation, groups and
    channels_last as they were given to conv(). All of one type, float32, float64, float16 or bfloat16.

    Raises Error for types, shapes and options that are not accepted, and where out overlaps another array.

    >>> import numpy as np
    >>> rung.conv_backward_filter(np.array([[[1.0, 2.0, 3.0]]]), np.array([[[1.0, 1.0]]]), (1, 1, 2))
    array([[[3., 5.]]])
    """
    return _conv_backward_filter(context, rung, x, dy, out, shape, stride, padding, dilation, groups,
                                 bool(channels_last))
