# SPDX-License-Identifier: Apache-2.0
"""The convolution layer, in one, two or three dimensions."""
from __future__ import annotations

from typing import TYPE_CHECKING, Sequence, TypeVar

from rung._rung import conv as _conv

if TYPE_CHECKING:
    from rung import Context

__all__ = ["conv"]
_RENAMED = {"y": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def conv(x: Array, w: Array, *, bias: Array | None = None, stride: int | Sequence[int] = 1,
         padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
         channels_last: bool = False, winograd: bool = False, activation: str = "none", out: Array | None = None,
         rung: str | None = None, context: Context | None = None) -> Array:
    """y = activation(w * x + bias), a cross-correlation per group of channels, as frameworks have it.

    x: N x C x W, N x C x H x W or N x C x D x H x W. w: K x C/groups x its extents. bias: K. out: N x K x
    floor((extent + 2 padding - dilation (kernel - 1) - 1) / stride) + 1 per axis. With channels_last N x ... x C,
    K x ... x C/groups and N x ... x K. All of one type, float32, float64, float16 or bfloat16.
    stride, padding, dilation: one number for all axes of the image, or one for each. winograd: layers of 3 x 3 may be
    transformed, which may lose digits. activation: "none", "relu", "gelu", "sigmoid" or "tanh".

    Raises Error for types, shapes and options that are not accepted, and where out overlaps another array.

    >>> import numpy as np
    >>> rung.conv(np.array([[[1.0, 2.0, 3.0]]]), np.array([[[1.0, 1.0]]]), padding=1)
    array([[[1., 3., 5., 3.]]])
    """
    return _conv(context, rung, x, w, out, bias, stride, padding, dilation, groups, bool(channels_last),
                 bool(winograd), activation)
