# SPDX-License-Identifier: Apache-2.0
"""Windows of images, each reduced to one number.

x: N x C x H x W (channels_last: N x H x W x C); float32, float64, float16 or bfloat16. kernel: the window's extents,
one number or (height, width); stride (None: the kernel), padding and dilation likewise. Extents of the result are
PyTorch's; ceil_mode counts a last window that begins within the image or its padding.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, TypeVar

from rung._rung import pool as _pool

if TYPE_CHECKING:
    from rung import Context

__all__ = ["max_pool", "average_pool", "l2_pool", "weighted_pool"]
_RENAMED = {"y": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def max_pool(x: Array, kernel: int | Sequence[int], *, stride: int | Sequence[int] | None = None,
             padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
             channels_last: bool = False, bias: Array | None = None, activation: str = "none",
             return_indices: bool = False, indices: Any = None, out: Array | None = None, rung: str | None = None,
             context: Context | None = None) -> Any:
    """y = activation(maximum of each window + bias); with return_indices, (y, positions h W + w of the maxima).

    indices: int64 (made so) or int32, shaped as out. bias: C. NaN makes its windows NaN. Other arguments as the module
    says. Raises Error for types, shapes and windows that are not accepted.

    >>> import numpy as np
    >>> rung.max_pool(np.arange(4.0).reshape(1, 1, 2, 2), 2, return_indices=True)
    (array([[[[3.]]]]), array([[[[3]]]]))
    """
    return _pool(context, rung, "max", x, out, kernel, stride, padding, dilation, bool(ceil_mode), True,
                 bool(channels_last), None, bias, activation, indices, bool(return_indices))


def average_pool(x: Array, kernel: int | Sequence[int], *, stride: int | Sequence[int] | None = None,
                 padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
                 count_padding: bool = True, channels_last: bool = False, bias: Array | None = None,
                 activation: str = "none", out: Array | None = None, rung: str | None = None,
                 context: Context | None = None) -> Array:
    """y = activation(mean of each window + bias); count_padding counts taps in the padding, as zeros.

    Other arguments as the module says. Raises Error for types, shapes and windows that are not accepted.

    >>> import numpy as np
    >>> rung.average_pool(np.arange(4.0).reshape(1, 1, 2, 2), 2)
    array([[[[1.5]]]])
    """
    return _pool(context, rung, "average", x, out, kernel, stride, padding, dilation, bool(ceil_mode),
                 bool(count_padding), bool(channels_last), None, bias, activation, None, False)


def l2_pool(x: Array, kernel: int | Sequence[int], *, stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
            channels_last: bool = False, bias: Array | None = None, activation: str = "none",
            out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """y = activation(sqrt(sum of squares of each window) + bias).

    Other arguments as the module says. Raises Error for types, shapes and windows that are not accepted.

    >>> import numpy as np
    >>> rung.l2_pool(np.array([[[[3.0, 4.0]]]]), (1, 2))
    array([[[[5.]]]])
    """
    return _pool(context, rung, "l2", x, out, kernel, stride, padding, dilation, bool(ceil_mode), True,
                 bool(channels_last), None, bias, activation, None, False)


def weighted_pool(x: Array, weights: Array, kernel: int | Sequence[int], *,
                  stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
                  dilation: int | Sequence[int] = 1, ceil_mode: bool = False, count_padding: bool = True,
                  channels_last: bool = False, bias: Array | None = None, activation: str = "none",
                  out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """y = activation(sum of weights times window / sum of weights + bias); weights: shaped as the window.

    Other arguments as the module says. Raises Error for types, shapes and windows that are not accepted.

    >>> import numpy as np
    >>> rung.weighted_pool(np.array([[[[3.0, 6.0]]]]), np.array([[1.0, 2.0]]), (1, 2))
    array([[[[5.]]]])
    """
    return _pool(context, rung, "weighted", x, out, kernel, stride, padding, dilation, bool(ceil_mode),
                 bool(count_padding), bool(channels_last), weights, bias, activation, None, False)
