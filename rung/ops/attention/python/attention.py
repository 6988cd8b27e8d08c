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
              scale: float | None = None, soft_cap: float | None = None, key_lengths: Any = None,
              query_offsets: Any = None, key_offsets: Any = None, page_table: Any = None, slopes: Any = None,
              bias: Any = None, sinks: Any = None, k_scales: Any = None, v_scales: Any = None,
              return_lse: bool = False, lse: Any = None, out: Array | None = None, rung: str | None = None,
              context: Context | None = None) -> Any:
    """out = softmax(scale q k^T) v, for every head; with return_lse also the logarithm of the softmax's denominator.

    q: B x H x Sq x D. k: B x Hk x Sk x D. v: B x Hk x Sk x Dv; Hk divides H. out: B x H x Sq x Dv, lse: B x H x Sq.
    All but lse of one type, float32, float64, float16 or bfloat16; lse is float32, float64 for float64. k and v may
    both be float8_e4m3fn, with q of 32 or 16 bits; k_scales and v_scales (B x Hk, float32) are then factors of each
    head's k and v. Memory in the order B x S x H x D is a matter of strides.
    causal: query i of Sq sees the keys j <= i + L - Sq, L the number of keys; window, with causal: only the last so
    many of them. scale: None stands for 1 / sqrt(D).
    key_lengths: B numbers, int32; how many keys each batch element has. A query that sees no key: 0, lse -infinity.
    query_offsets: B + 1 numbers, int32; q is packed, 1 x H x T x D, out and lse alike, and batch element b has the rows
    query_offsets[b] to query_offsets[b + 1] - 1. Rows of no batch element are not written. key_offsets: the same for k
    and v.
    page_table: B x P, int32; k and v are N x Hk x page x D, and key j of batch element b is row j % page of page
    page_table[b, j // page].
    Scores, of the type of lse: soft_cap replaces a score s by soft_cap tanh(s / soft_cap); slopes (H) then subtract
    slopes[h] |j - (i + L - Sq)|; bias (B x H x Sq x Sk, not with offsets) is added. sinks (H) are scores of a key that
    every query sees and that has no value.

    Returns out, or (out, lse) with return_lse. Raises Error for types, shapes, scale, soft_cap and window that are not
    accepted, and where out or lse overlaps another array.

    >>> import numpy as np
    >>> q, k = np.zeros((1, 1, 1, 4)), np.zeros((1, 1, 2, 4))
    >>> rung.attention(q, k, np.array([[[[1.0], [3.0]]]]))
    array([[[[2.]]]])
    """
    return _attention(context, rung, q, k, v, out, 0.0 if scale is None else scale, bool(causal),
                      0 if window is None else window, 0.0 if soft_cap is None else soft_cap, key_lengths,
                      query_offsets, key_offsets, page_table, slopes, bias, sinks, k_scales, v_scales, lse,
                      bool(return_lse))
