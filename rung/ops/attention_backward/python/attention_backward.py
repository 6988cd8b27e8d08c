# SPDX-License-Identifier: Apache-2.0
"""Gradients of scaled dot-product attention."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rung._rung import attention_backward as _attention_backward

if TYPE_CHECKING:
    from rung import Context

__all__ = ["attention_backward"]
Array = TypeVar("Array")


def attention_backward(q: Array, k: Array, v: Array, o: Array, lse: Any, dout: Array, *, causal: bool = False,
                       window: int | None = None, scale: float | None = None, soft_cap: float | None = None,
                       key_lengths: Any = None, query_offsets: Any = None, key_offsets: Any = None,
                       slopes: Any = None, bias: Any = None, sinks: Any = None, dq: Array | None = None,
                       dk: Array | None = None, dv: Array | None = None, dsinks: Any = None,
                       rung: str | None = None, context: Context | None = None) -> tuple[Array, ...]:
    """Gradients of attention() with respect to q, k and v, from its results o and lse and the gradient dout of o.

    q, k, v and the options up to sinks: as given to attention(). o, dout: B x H x Sq x Dv; lse: B x H x Sq,
    what attention() returns with return_lse. q, k, v, o and dout are of one type. dq, dk, dv: shaped as q, k and v;
    heads that share keys add up in dk and dv. A query that sees no key and a key that no query sees have zeros.
    dsinks: H, the gradient of the sinks; slopes and bias have none. Without sinks the other gradients are the same,
    because lse contains them.

    Returns (dq, dk, dv), with sinks (dq, dk, dv, dsinks). Raises Error for types, shapes, scale, soft_cap and window
    that are not accepted, and where a gradient overlaps another array.

    >>> import numpy as np
    >>> q, k, v = np.ones((1, 1, 1, 1)), np.array([[[[0.0], [0.0]]]]), np.array([[[[1.0], [3.0]]]])
    >>> o, lse = rung.attention(q, k, v, return_lse=True)
    >>> dq, dk, dv = rung.attention_backward(q, k, v, o, lse, np.ones_like(o))
    >>> dk.ravel(), dv.ravel()
    (array([-0.5,  0.5]), array([0.5, 0.5]))
    """
    return _attention_backward(context, rung, q, k, v, o, lse, dout, dq, dk, dv, 0.0 if scale is None else scale,
                               bool(causal), 0 if window is None else window, 0.0 if soft_cap is None else soft_cap,
                               key_lengths, query_offsets, key_offsets, slopes, bias, sinks, dsinks)
