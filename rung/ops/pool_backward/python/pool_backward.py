# SPDX-License-Identifier: Apache-2.0
"""Gradients of the poolings, before bias and activation.

dy: shaped as the pooling's result. shape: that of dx, as the pooling's x was; left out where out is given. Windows and
other options as they were given to the pooling. All of one type, float32, float64, float16 or bfloat16.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, TypeVar

from rung._rung import pool_backward as _pool_backward

if TYPE_CHECKING:
    from rung import Context

__all__ = ["max_pool_backward", "average_pool_backward", "l2_pool_backward", "weighted_pool_backward"]
_RENAMED = {"dx": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def max_pool_backward(dy: Array, indices: Any, kernel: int | Sequence[int], shape: Sequence[int] | None = None, *,
                      stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
                      dilation: int | Sequence[int] = 1, ceil_mode: bool = False, channels_last: bool = False,
                      out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """dx of max_pool(): dy where the window's maximum was; indices: int64 or int32, what max_pool() returned.

    Other arguments as the module says. Raises Error for types, shapes and windows that are not accepted.

    >>> import numpy as np
    >>> y, indices = rung.max_pool(np.arange(4.0).reshape(1, 1, 2, 2), 2, return_indices=True)
    >>> rung.max_pool_backward(np.full_like(y, 7.0), indices, 2, (1, 1, 2, 2))
    array([[[[0., 0.],
             [0., 7.]]]])
    """
    return _pool_backward(context, rung, "max", dy, out, shape, kernel, stride, padding, dilation, bool(ceil_mode),
                          True, bool(channels_last), indices, None, None, None)


def average_pool_backward(dy: Array, kernel: int | Sequence[int], shape: Sequence[int] | None = None, *,
                          stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
                          dilation: int | Sequence[int] = 1, ceil_mode: bool = False, count_padding: bool = True,
                          channels_last: bool = False, out: Array | None = None, rung: str | None = None,
                          context: Context | None = None) -> Array:
    """dx of average_pool(): dy over the number of taps, summed over the windows of a place.

    Other arguments as the module says. Raises Error for types, shapes and windows that are not accepted.

    >>> import numpy as np
    >>> rung.average_pool_backward(np.array([[[[4.0]]]]), 2, (1, 1, 2, 2))
    array([[[[1., 1.],
             [1., 1.]]]])
    """
    return _pool_backward(context, rung, "average", dy, out, shape, kernel, stride, padding, dilation,
                          bool(ceil_mode), bool(count_padding), bool(channels_last), None, None, None, None)


def l2_pool_backward(dy: Array, x: Array, y: Array, kernel: int | Sequence[int], *,
                     stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
                     dilation: int | Sequence[int] = 1, ceil_mode: bool = False, channels_last: bool = False,
                     out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """dx of l2_pool(): dy x / y, 0 where y is 0; x and y: what l2_pool() took and gave.

    Other arguments as the module says. Raises Error for types, shapes and windows that are not accepted.

    >>> import numpy as np
    >>> x = np.array([[[[3.0, 4.0]]]])
    >>> rung.l2_pool_backward(np.array([[[[5.0]]]]), x, rung.l2_pool(x, (1, 2)), (1, 2))
    array([[[[3., 4.]]]])
    """
    return _pool_backward(context, rung, "l2", dy, out, None, kernel, stride, padding, dilation, bool(ceil_mode),
                          True, bool(channels_last), None, x, y, None)


def weighted_pool_backward(dy: Array, weights: Array, kernel: int | Sequence[int],
                           shape: Sequence[int] | None = None, *, stride: int | Sequence[int] | None = None,
                           padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1,
                           ceil_mode: bool = False, count_padding: bool = True, channels_last: bool = False,
                           out: Array | None = None, rung: str | None = None,
                           context: Context | None = None) -> Array:
    """dx of weighted_pool(): dy weights / sum of weights; weights: shaped as the window.

    Other arguments as the module says. Raises Error for types, shapes and windows that are not accepted.

    >>> import numpy as np
    >>> rung.weighted_pool_backward(np.array([[[[3.0]]]]), np.array([[1.0, 2.0]]), (1, 2), (1, 1, 1, 2))
    array([[[[1., 2.]]]])
    """
    return _pool_backward(context, rung, "weighted", dy, out, shape, kernel, stride, padding, dilation,
                          bool(ceil_mode), bool(count_padding), bool(channels_last), None, None, None, weights)
