# SPDX-License-Identifier: Apache-2.0
"""Functions of one to three arrays, element by element.

Operands are broadcast to one shape as in NumPy, of one type: f32, f64, f16 or bf16; where a function says so, i32, i64
and u8 too. y and w may be numbers, which take the type of x. out may be an operand itself; otherwise it overlaps none.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rung._rung import elementwise_binary as _binary, elementwise_unary as _unary, fma as _fma

if TYPE_CHECKING:
    from rung import Context

__all__ = ["add", "subtract", "multiply", "divide", "axpy", "multiply_add", "relu", "sigmoid", "tanh", "gelu", "silu",
           "exp", "sign"]
_RENAMED = {"z": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def add(x: Array, y: Array | float, *, out: Array | None = None, rung: str | None = None,
        context: Context | None = None) -> Array:
    """z = x + y, element by element; x and y are broadcast as in NumPy.

    x, y: of one type, float32, float64, float16, bfloat16, int32, int64 or uint8; y may be a number. out: of the
    broadcast shape and that type; may be x or y itself. Integers wrap.

    Raises Error for types that differ, shapes that do not match, and where out overlaps an operand otherwise.

    >>> import numpy as np
    >>> rung.add(np.array([1.0, 2.0]), np.array([[3.0], [4.0]]))
    array([[4., 5.],
           [5., 6.]])
    """
    return _binary(context, rung, "add", x, y, out, 1.0)


def subtract(x: Array, y: Array | float, *, out: Array | None = None, rung: str | None = None,
             context: Context | None = None) -> Array:
    """z = x - y, element by element; x and y are broadcast as in NumPy.

    x, y: of one type, float32, float64, float16, bfloat16, int32, int64 or uint8; y may be a number. out: of the
    broadcast shape and that type; may be x or y itself. Integers wrap.

    Raises Error for types that differ, shapes that do not match, and where out overlaps an operand otherwise.

    >>> import numpy as np
    >>> rung.subtract(np.array([1.0, 2.0]), 0.5)
    array([0.5, 1.5])
    """
    return _binary(context, rung, "sub", x, y, out, 1.0)


def multiply(x: Array, y: Array | float, *, out: Array | None = None, rung: str | None = None,
             context: Context | None = None) -> Array:
    """z = x y, element by element; x and y are broadcast as in NumPy.

    x, y: of one type, float32, float64, float16, bfloat16, int32, int64 or uint8; y may be a number. out: of the
    broadcast shape and that type; may be x or y itself. Integers wrap.

    Raises Error for types that differ, shapes that do not match, and where out overlaps an operand otherwise.

    >>> import numpy as np
    >>> rung.multiply(np.array([1, 2], dtype=np.int32), 3)
    array([3, 6], dtype=int32)
    """
    return _binary(context, rung, "mul", x, y, out, 1.0)


def divide(x: Array, y: Array | float, *, out: Array | None = None, rung: str | None = None,
           context: Context | None = None) -> Array:
    """z = x / y, element by element; x and y are broadcast as in NumPy.

    x, y: of one type, float32, float64, float16 or bfloat16; y may be a number. out: of the broadcast shape and
    that type; may be x or y itself. x / 0 is an infinity or NaN, without a warning.

    Raises Error for types that differ, shapes that do not match, and where out overlaps an operand otherwise.

    >>> import numpy as np
    >>> rung.divide(np.array([1.0, 2.0]), 4)
    array([0.25, 0.5 ])
    """
    return _binary(context, rung, "div", x, y, out, 1.0)


def axpy(alpha: float, x: Array, y: Array | float, *, out: Array | None = None, rung: str | None = None,
         context: Context | None = None) -> Array:
    """z = alpha x + y, rounded once; x and y are broadcast as in NumPy.

    x, y: of one type, float32, float64, float16 or bfloat16; alpha is rounded to the type of the computation, float32
    for the small ones. out: of the broadcast shape and that type; may be x or y itself.

    Raises Error for types that differ, shapes that do not match, and where out overlaps an operand otherwise.

    >>> import numpy as np
    >>> rung.axpy(2.0, np.array([1.0, 2.0]), np.array([10.0, 10.0]))
    array([12., 14.])
    """
    return _binary(context, rung, "axpy", x, y, out, alpha)


def multiply_add(x: Array, y: Array | float, w: Array | float, *, out: Array | None = None, rung: str | None = None,
                 context: Context | None = None) -> Array:
    """z = x y + w, rounded once; x, y and w are broadcast as in NumPy.

    x, y, w: of one type, float32, float64, float16, bfloat16, int32, int64 or uint8; y and w may be numbers. out: of
    the broadcast shape and that type; may be an operand itself. Integers wrap.

    Raises Error for types that differ, shapes that do not match, and where out overlaps an operand otherwise.

    >>> import numpy as np
    >>> rung.multiply_add(np.array([1.0, 2.0]), 10.0, np.array([0.5, 0.5]))
    array([10.5, 20.5])
    """
    return _fma(context, rung, x, y, w, out)


def relu(x: Array, *, out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """z = max(x, 0), element by element.

    x: float32, float64, float16, bfloat16, int32, int64 or uint8. out: shaped as x, of its type; may be x itself.
    NaN gives NaN.

    Raises Error for other types, and where out overlaps x otherwise.

    >>> import numpy as np
    >>> rung.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return _unary(context, rung, "relu", x, out)


def sigmoid(x: Array, *, out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """z = 1 / (1 + e^-x), element by element.

    x: float32, float64, float16 or bfloat16. out: shaped as x, of its type; may be x itself.
    NaN gives NaN.

    Raises Error for other types, and where out overlaps x otherwise.

    >>> import numpy as np
    >>> rung.sigmoid(np.array([0.0]))
    array([0.5])
    """
    return _unary(context, rung, "sigmoid", x, out)


def tanh(x: Array, *, out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """z = tanh x, element by element.

    x: float32, float64, float16 or bfloat16. out: shaped as x, of its type; may be x itself.
    NaN gives NaN.

    Raises Error for other types, and where out overlaps x otherwise.

    >>> import numpy as np
    >>> rung.tanh(np.array([0.0]))
    array([0.])
    """
    return _unary(context, rung, "tanh", x, out)


def gelu(x: Array, *, out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """z = x Phi(x), Phi the normal distribution, element by element.

    x: float32, float64, float16 or bfloat16. out: shaped as x, of its type; may be x itself.
    -infinity gives 0, NaN gives NaN.

    Raises Error for other types, and where out overlaps x otherwise.

    >>> import numpy as np
    >>> rung.gelu(np.array([0.0, 10.0]))
    array([ 0., 10.])
    """
    return _unary(context, rung, "gelu", x, out)


def silu(x: Array, *, out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """z = x / (1 + e^-x), element by element.

    x: float32, float64, float16 or bfloat16. out: shaped as x, of its type; may be x itself.
    -infinity gives 0, NaN gives NaN.

    Raises Error for other types, and where out overlaps x otherwise.

    >>> import numpy as np
    >>> rung.silu(np.array([0.0]))
    array([0.])
    """
    return _unary(context, rung, "silu", x, out)


def exp(x: Array, *, out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """z = e^x, element by element.

    x: float32, float64, float16 or bfloat16. out: shaped as x, of its type; may be x itself.
    NaN gives NaN.

    Raises Error for other types, and where out overlaps x otherwise.

    >>> import numpy as np
    >>> rung.exp(np.array([0.0]))
    array([1.])
    """
    return _unary(context, rung, "exp", x, out)


def sign(x: Array, *, out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """z = -1, 0 or 1, element by element.

    x: float32, float64, float16 or bfloat16. out: shaped as x, of its type; may be x itself.
    NaN gives NaN, -0 gives -0.

    Raises Error for other types, and where out overlaps x otherwise.

    >>> import numpy as np
    >>> rung.sign(np.array([-3.0, 0.0, 5.0]))
    array([-1.,  0.,  1.])
    """
    return _unary(context, rung, "sign", x, out)
