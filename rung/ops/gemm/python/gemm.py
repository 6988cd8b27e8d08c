# SPDX-License-Identifier: Apache-2.0
"""Matrix products with a fused epilogue: one, a batch, or a list of them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, TypeVar

from rung._errors import Error
from rung._rung import gemm as _gemm, gemm_grouped as _gemm_grouped

if TYPE_CHECKING:
    from rung import Context

__all__ = ["gemm", "gemm_grouped"]
_RENAMED = {"c": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def gemm(a: Array, b: Array, *, alpha: float = 1.0, beta: float = 0.0, transpose_a: bool = False,
         transpose_b: bool = False, bias: Array | None = None, activation: str = "none", precision: str = "full",
         residual: Array | None = None, scale_a: Any = None, scale_b: Any = None, out: Array | None = None,
         rung: str | None = None, context: Context | None = None) -> Array:
    """out = activation(alpha op(a) op(b) + beta out + bias) + residual, for each matrix of a batch.

    a: m x k, or k x m with transpose_a. b: k x n, or n x k with transpose_b. Either may have a batch axis in front;
    one without, or with extent 1, serves the whole batch. out: m x n, with that axis; given where beta is not 0.
    bias, residual: n, m x 1 or m x n. activation: "none", "relu", "gelu", "sigmoid" or "tanh".

    Types: float32 or float64 throughout; float16 or bfloat16 (out the same or float32); int8 with int32;
    float8_e4m3fn and float8_e5m2 with bfloat16 (float32 or float16 by out), scaled by scale_a and scale_b, float32, per
    128 elements of k (of b: 128 x 128). precision: of float32 on tensor cores, "full", "tf32" or "split".

    Raises Error for types, shapes and options that are not accepted, and where out overlaps another array.

    >>> import numpy as np
    >>> rung.gemm(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), bias=np.array([0.5]))
    array([[11.5]])
    """
    return _gemm(context, rung, a, b, out, alpha, beta, bool(transpose_a), bool(transpose_b), bias, activation,
                 precision, residual, scale_a, scale_b)


def gemm_grouped(a: Sequence[Array], b: Sequence[Array], *, alpha: float = 1.0, beta: float = 0.0,
                 transpose_a: bool = False, transpose_b: bool = False, bias: Sequence[Array | None] | None = None,
                 activation: str = "none", precision: str = "full", residual: Sequence[Array | None] | None = None,
                 out: Sequence[Array] | None = None, rung: str | None = None,
                 context: Context | None = None) -> list[Array]:
    """Products of lists, each as gemm() makes it; on a GPU small ones share launches. Returns the list of results.

    a, b, out, bias, residual: sequences of one length, arrays of any shapes. Options hold for all products.

    Raises Error as gemm() does, with the product's number, before the first product is begun.

    >>> import numpy as np
    >>> rung.gemm_grouped([np.eye(1), np.ones((1, 2))], [np.eye(1), np.ones((2, 1))])
    [array([[1.]]), array([[2.]])]
    """
    for name, given in (("b", b), ("out", out), ("bias", bias), ("residual", residual)):
        if given is not None and len(given) != len(a):
            raise Error(f"gemm_grouped: {name} has {len(given)} entries, a has {len(a)}")
    return _gemm_grouped(context, rung, a, b, out, bias, residual, alpha, beta, bool(transpose_a), bool(transpose_b),
                         activation, precision)
