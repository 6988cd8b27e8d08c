# SPDX-License-Identifier: Apache-2.0
"""Scaled dot-product attention, forward."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rung._rung import attention as _attention

if TYPE_CHECKING:
    from rung import Context

__all__ = ["attention"]
_RENAMED = {"o": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def attention(q: Array, k: Array, v: Array, *, causal: bool = False, window: int | None = None,
              scale: float | None = None, key_lengths: Any = None, return_lse: bool = False, lse: Any = None,
              out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Any:
    """out = softmax(scale q k^T) v, for every head; with return_lse also the logarithm of the softmax's denominator.

    q: B x H x Sq x D. k: B x Hk x Sk x D. v: B x Hk x Sk x Dv; Hk divides H. out: B x H x Sq x Dv, lse: B x H x Sq.
    All but lse of one type, float32, float64, float16 or bfloat16; lse is float32, float64 for float64. Memory in the
    order B x S x H x D is a matter of strides.
    causal: query i of Sq sees the keys j <= i + L - Sq, L the number of keys; window, with causal: only the last so
    many of them. scale: None stands for 1 / sqrt(D).
    key_lengths: B numbers, int32; how many keys each batch element has. A query that sees no key: 0, lse -infinity.

    Returns out, or (out, lse) with return_lse. Raises Error for types, shapes, scale and window that are not accepted,
    and where out or lse overlaps another array.

    >>> import numpy as np
    >>> q, k = np.zeros((1, 1, 1, 4)), np.zeros((1, 1, 2, 4))
    >>> rung.attention(q, k, np.array([[[[1.0], [3.0]]]]))
    array([[[[2.]]]])
    """
    return _attention(context, rung, q, k, v, out, 0.0 if scale is None else scale, bool(causal),
                      0 if window is None else window, key_lengths, lse, bool(return_lse))
