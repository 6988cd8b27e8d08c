# SPDX-License-Identifier: Apache-2.0
"""Gradients of activations, element by element, from what forward took or gave.

saved, dy: of one shape and type, float32, float64, float16 or bfloat16. out: the same; may be saved or dy itself.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rung._rung import activation_backward as _backward

if TYPE_CHECKING:
    from rung import Context

__all__ = ["relu_backward", "gelu_backward", "silu_backward", "sigmoid_backward", "tanh_backward", "sign_backward"]
_RENAMED = {"saved": ("x", "y"), "dx": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def relu_backward(x: Array, dy: Array, *, out: Array | None = None, rung: str | None = None,
                  context: Context | None = None) -> Array:
    """dx = dy where x > 0, else 0, element by element; x is what relu() took or gave.

    x, dy: of one shape and type, float32, float64, float16 or bfloat16. out: the same; may be x or dy.

    Raises Error for other types and shapes, and where out overlaps an argument otherwise.

    >>> import numpy as np
    >>> rung.relu_backward(np.array([-1.0, 2.0]), np.array([5.0, 5.0]))
    array([0., 5.])
    """
    return _backward(context, rung, "relu", x, dy, out)


def gelu_backward(x: Array, dy: Array, *, out: Array | None = None, rung: str | None = None,
                  context: Context | None = None) -> Array:
    """dx = dy (Phi(x) + x phi(x)), element by element; x is what gelu() took.

    x, dy: of one shape and type, float32, float64, float16 or bfloat16. out: the same; may be x or dy.

    Raises Error for other types and shapes, and where out overlaps an argument otherwise.

    >>> import numpy as np
    >>> rung.gelu_backward(np.array([0.0]), np.array([1.0]))
    array([0.5])
    """
    return _backward(context, rung, "gelu", x, dy, out)


def silu_backward(x: Array, dy: Array, *, out: Array | None = None, rung: str | None = None,
                  context: Context | None = None) -> Array:
    """dx = dy s (1 + x (1 - s)), s = 1 / (1 + e^-x), element by element; x is what silu() took.

    x, dy: of one shape and type, float32, float64, float16 or bfloat16. out: the same; may be x or dy.

    Raises Error for other types and shapes, and where out overlaps an argument otherwise.

    >>> import numpy as np
    >>> rung.silu_backward(np.array([0.0]), np.array([1.0]))
    array([0.5])
    """
    return _backward(context, rung, "silu", x, dy, out)


def sigmoid_backward(y: Array, dy: Array, *, out: Array | None = None, rung: str | None = None,
                     context: Context | None = None) -> Array:
    """dx = dy y (1 - y), element by element; y is what sigmoid() gave.

    y, dy: of one shape and type, float32, float64, float16 or bfloat16. out: the same; may be y or dy.

    Raises Error for other types and shapes, and where out overlaps an argument otherwise.

    >>> import numpy as np
    >>> rung.sigmoid_backward(np.array([0.5]), np.array([1.0]))
    array([0.25])
    """
    return _backward(context, rung, "sigmoid", y, dy, out)


def tanh_backward(y: Array, dy: Array, *, out: Array | None = None, rung: str | None = None,
                  context: Context | None = None) -> Array:
    """dx = dy (1 - y^2), element by element; y is what tanh() gave.

    y, dy: of one shape and type, float32, float64, float16 or bfloat16. out: the same; may be y or dy.

    Raises Error for other types and shapes, and where out overlaps an argument otherwise.

    >>> import numpy as np
    >>> rung.tanh_backward(np.array([0.5]), np.array([1.0]))
    array([0.75])
    """
    return _backward(context, rung, "tanh", y, dy, out)


def sign_backward(x: Array, dy: Array, *, out: Array | None = None, rung: str | None = None,
                  context: Context | None = None) -> Array:
    """dx = dy where |x| <= 1, else 0, element by element; the straight-through estimator of sign().

    x, dy: of one shape and type, float32, float64, float16 or bfloat16. out: the same; may be x or dy.

    Raises Error for other types and shapes, and where out overlaps an argument otherwise.

    >>> import numpy as np
    >>> rung.sign_backward(np.array([0.5, 2.0]), np.array([1.0, 1.0]))
    array([1., 0.])
    """
    return _backward(context, rung, "sign", x, dy, out)
