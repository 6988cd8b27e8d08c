# SPDX-License-Identifier: Apache-2.0
"""Layer norm and RMS norm."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rung._rung import layer_norm as _layer_norm, rms_norm as _rms_norm

if TYPE_CHECKING:
    from rung import Context

__all__ = ["layer_norm", "rms_norm"]
_RENAMED = {"y": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def layer_norm(x: Array, gamma: Any = None, beta: Any = None, *, axis: int = -1, axes: int = 1,
               epsilon: float = 1e-5, residual: Array | None = None, sum: Array | None = None, mean: Any = None,
               rstd: Any = None, return_stats: bool = False, out: Array | None = None, rung: str | None = None,
               context: Context | None = None) -> Any:
    """y = (s - mean) rstd gamma + beta, s = x + residual, rstd = 1 / sqrt(mean((s - mean)^2) + epsilon).

    x, residual, out, sum: of one shape and type, float32, float64, float16 or bfloat16. axes neighboring axes are
    normalized together, from axis on. gamma, beta: the extents of these; of x's type, or float32 for the small ones.
    out and sum may be x or residual itself. sum: written with s. mean, rstd: written when given, the extents of the
    other axes, float32, float64 for float64; with return_stats they are made. None: left out.

    Returns y, or (y, mean, rstd) with return_stats. Raises Error for types, shapes, axes and epsilon that are not
    accepted, and where what is written overlaps another array.

    >>> import numpy as np
    >>> rung.layer_norm(np.array([[1.0, 3.0]]), epsilon=0.0)
    array([[-1.,  1.]])
    """
    return _layer_norm(context, rung, x, out, gamma, beta, axis, axes, epsilon, residual, sum, mean, rstd,
                       bool(return_stats))


def rms_norm(x: Array, gamma: Any = None, beta: Any = None, *, axis: int = -1, axes: int = 1, epsilon: float = 1e-5,
             residual: Array | None = None, sum: Array | None = None, rstd: Any = None, return_stats: bool = False,
             out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Any:
    """y = s rstd gamma + beta, s = x + residual, rstd = 1 / sqrt(mean(s^2) + epsilon).

    Arguments and errors as of layer_norm(), without mean. Returns y, or (y, rstd) with return_stats.

    >>> import numpy as np
    >>> rung.rms_norm(np.array([[2.0, -2.0]]), epsilon=0.0)
    array([[ 1., -1.]])
    """
    return _rms_norm(context, rung, x, out, gamma, beta, axis, axes, epsilon, residual, sum, None, rstd,
                     bool(return_stats))
