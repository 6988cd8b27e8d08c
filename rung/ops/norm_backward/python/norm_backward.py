# SPDX-License-Identifier: Apache-2.0
"""Gradients of layer norm and RMS norm."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rung._rung import layer_norm_backward as _layer_norm_backward, rms_norm_backward as _rms_norm_backward

if TYPE_CHECKING:
    from rung import Context

__all__ = ["layer_norm_backward", "rms_norm_backward"]
_RENAMED = {"dx": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def layer_norm_backward(dy: Array, x: Array, gamma: Any = None, *, mean: Any = None, rstd: Any = None, axis: int = -1,
                        axes: int = 1, epsilon: float = 1e-5, dgamma: Any = None, dbeta: Any = None,
                        return_weights: bool = False, out: Array | None = None, rung: str | None = None,
                        context: Context | None = None) -> Any:
    """dx = rstd (g - mean(g) - z mean(g z)), g = dy gamma, z = (x - mean) rstd; dgamma and dbeta where asked for.

    dy, x, out: of one shape and type, float32, float64, float16 or bfloat16; with a residual, x is the sum that
    layer_norm() wrote. out may be dy or x itself. mean, rstd: what layer_norm() wrote; None: computed again, with
    epsilon. gamma, axis, axes: as given to layer_norm(). dgamma, dbeta: written when given; made with return_weights.

    Returns dx, or (dx, dgamma, dbeta) with return_weights. Raises Error for types, shapes, axes and epsilon that are
    not accepted, and where what is written overlaps another array.

    >>> import numpy as np
    >>> rung.layer_norm_backward(np.ones((1, 2)), np.array([[1.0, 3.0]]), return_weights=True)[2]
    array([1., 1.])
    """
    return _layer_norm_backward(context, rung, dy, x, out, gamma, axis, axes, epsilon, mean, rstd, dgamma, dbeta,
                                bool(return_weights))


def rms_norm_backward(dy: Array, x: Array, gamma: Any = None, *, rstd: Any = None, axis: int = -1, axes: int = 1,
                      epsilon: float = 1e-5, dgamma: Any = None, dbeta: Any = None, return_weights: bool = False,
                      out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Any:
    """dx = rstd (g - z mean(g z)), g = dy gamma, z = x rstd; dgamma and dbeta where asked for.

    Arguments, result and errors as of layer_norm_backward(), without mean.

    >>> import numpy as np
    >>> rung.rms_norm_backward(np.ones((1, 2)), np.array([[2.0, 2.0]]), epsilon=0.0)
    array([[0., 0.]])
    """
    return _rms_norm_backward(context, rung, dy, x, out, gamma, axis, axes, epsilon, None, rstd, dgamma, dbeta,
                              bool(return_weights))
