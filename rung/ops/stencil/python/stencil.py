# SPDX-License-Identifier: Apache-2.0
"""Correlation or convolution with a small mask; box filters."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, TypeVar

from rung._rung import stencil as _stencil, stencil_separable as _stencil_separable

if TYPE_CHECKING:
    from rung import Context

__all__ = ["stencil", "stencil_separable"]
_RENAMED = {"y": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def stencil(x: Array, mask: Any = None, *, window: int | Sequence[int] | None = None,
            anchor: int | Sequence[int] | None = None, edge: str = "zero", convolution: bool = False,
            scale: float = 1.0, iterations: int = 1, out: Array | None = None, rung: str | None = None,
            context: Context | None = None) -> Array:
    """y[i] = scale sum_k mask[k] x[i + k - anchor]; with convolution, x[i - k + anchor].

    x: float32, float64, float16, bfloat16 or uint8; its last axes are the array's, as many as the mask has (1 to 3),
    those in front a batch. mask: float32, for float64 float64, 1 to 31 elements a side; or window, the extents of a
    box whose elements all weigh 1. anchor: the mask's element that lies on i; None: the middle, extent // 2.
    edge: x outside the array, "zero", "clamp", "mirror" or "wrap". out: shaped as x, of its type, or float32 for the
    small ones; it overlaps neither x nor mask. iterations: how often the result takes the place of x.

    Raises Error for types, shapes, extents and options that are not accepted.

    >>> import numpy as np
    >>> rung.stencil(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    array([3., 6., 5.])
    """
    return _stencil(context, rung, x, mask, out, window, anchor, edge, bool(convolution), scale, iterations)


def stencil_separable(x: Array, across: Any, down: Any = None, through: Any = None, *,
                      anchor: int | Sequence[int] | None = None, edge: str = "zero", convolution: bool = False,
                      scale: float = 1.0, iterations: int = 1, out: Array | None = None, rung: str | None = None,
                      context: Context | None = None) -> Array:
    """stencil() with the mask w[k, j, i] = through[k] down[j] across[i], given as one vector per axis.

    across lies along the last axis, down along the one before, through along the third from the end; other arguments
    and errors as of stencil().

    >>> import numpy as np
    >>> rung.stencil_separable(np.ones((2, 2)), np.array([1.0, 1.0]), np.array([0.5]))
    array([[0.5, 1. ],
           [0.5, 1. ]])
    """
    return _stencil_separable(context, rung, x, across, down, through, out, None, anchor, edge, bool(convolution),
                              scale, iterations)
