# SPDX-License-Identifier: Apache-2.0
"""Random calls of attention against NumPy in double precision, under the bound that the header promises; a causal call
against one of each query; imported by differential.py."""
import numpy as np
from random_case import FLOATS, close, same, smallest, unit


def reference(q, k, v, seen, scale, step, kept):
    """o, lse and what they may be off by; `seen`: [batch, query], how many keys, from the first on."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    hidden = np.arange(k.shape[2]) >= seen[:, None, :, None]
    scores = np.where(hidden, -np.inf, scale * (q @ np.swapaxes(k, 2, 3)))
    terms = scale * (np.abs(q) @ np.swapaxes(np.abs(k), 2, 3))
    largest = scores.max(axis=3, keepdims=True, initial=-np.inf)
    none = np.isneginf(largest)
    largest = np.where(none, 0, largest)
    weights = np.exp(scores - largest)
    total = np.where(none, 1, weights.sum(axis=3, keepdims=True))
    weights /= total
    error = step * np.where(hidden, 0, (q.shape[3] + 8) * terms + 8 * np.abs(largest)
                            + 4 * np.where(hidden, 0, np.abs(scores - largest)))
    of_sum = np.log(np.where(none, 1, (weights * np.exp(error)).sum(axis=3, keepdims=True)))
    of_sums = (2 * k.shape[2] + 40) * step
    bound = (weights * (np.expm1(error + of_sum) + of_sums + kept)) @ np.abs(v)
    lse = np.where(none, -np.inf, largest + np.log(total))
    of_lse = of_sum + of_sums + 4 * step * (np.abs(largest) + np.where(none, 0, np.abs(lse)))
    return weights @ v, bound, lse[..., 0], of_lse[..., 0]


def attention(api, case):
    dtype = np.dtype(case.one_of(*FLOATS, "f2"))
    kv_heads, group = int(case.random.integers(1, 4)), int(case.random.integers(1, 5))
    batch, heads = int(case.random.integers(0, 4)), kv_heads * group
    queries, keys = case.extent(90), case.extent(300)
    width = case.one_of(64, 128, max(1, case.extent(200)))
    value_width = case.one_of(width, width, max(1, case.extent(200)))
    q = case.input(dtype, (batch, heads, queries, width))
    k = case.input(dtype, (batch, kv_heads, keys, width))
    v = case.input(dtype, (batch, kv_heads, keys, value_width))
    o = case.output(dtype, (batch, heads, queries, value_width))
    lse = case.output("f8" if dtype == np.float64 else "f4", (batch, heads, queries)) if case.flag() else None
    causal, has_lengths, scale = case.flag(), case.flag(0.3), case.one_of(0.0, 0.0, 0.3)
    given = {} if lse is None else {"lse": lse}
    lengths = np.full(batch, keys, np.int32)
    if has_lengths:
        lengths = case.array("i4", (batch,))
        lengths[...] = case.random.integers(-2, keys + 3, batch)
        case.memory[-1][2] = None
        given["key_lengths"] = lengths
    case.freeze()
    api.call("attention", q, k, v, o, options=api.options("attention", scale=scale, causal=int(causal), **given))
    if o.size == 0:
        return
    length = np.clip(lengths.astype(np.int64), 0, keys)
    seen = np.repeat(length[:, None], queries, 1)
    if causal:
        seen = np.clip(np.arange(queries) + 1 + length[:, None] - queries, 0, length[:, None])
    step = unit(dtype) * (2 if dtype.itemsize == 2 else 1)
    kept = float(np.finfo(dtype).eps) / 2 if dtype.itemsize == 2 else 0
    wanted, bound, wanted_lse, of_lse = reference(q, k, v, seen, scale or width**-0.5, step, kept)
    below = (2.0**-25 if dtype.itemsize == 2 else smallest(dtype)) * np.abs(v.astype(np.float64)).sum(2).max(initial=0)
    what = f"attention {q.shape} x {k.shape} x {value_width}, causal {causal}"
    close(what, o, wanted, bound + below)
    if lse is not None:
        none = np.isneginf(wanted_lse)
        same(f"{what}: lse where no key is seen", np.isneginf(lse), none)
        close(f"{what}: lse", np.where(none, 0, lse).astype(lse.dtype), np.where(none, 0, wanted_lse), of_lse)
