# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of attention and attention_backward: the definition in double precision, with the bounds of
their headers; for attention also NaN, infinities and scores of -infinity, in visible and in masked keys."""
import math

import numpy as np
from comparison import Wrong, close, first_place
from rung_types import FLOATS, I32, arithmetic


class Drawn:
    """Extents of a call: decoding (one query), prompts, shared heads, values with another width."""

    def __init__(self, case):
        random = case.random
        self.kv_heads, group = int(random.integers(1, 4)), int(random.integers(1, 5))
        self.batch = int(random.integers(0 if case.flag(0.1) else 1, 4))
        self.queries, self.keys = case.extent(90), case.extent(300)
        self.width = int(case.one_of(64, 128, 16, max(1, case.extent(200))))
        if case.middle:
            self.kv_heads, self.batch = (int(random.integers(1, 3)) for _ in range(2))
            group = int(case.one_of(1, 4))
            self.queries = int(case.one_of(1, 1, 2, random.integers(1, 200)))
            self.keys = int(random.integers(300, 3000 if self.queries < 5 else 700))
        if case.flag(0.2):
            self.queries = 1
        self.heads = self.kv_heads * group
        self.value_width = int(case.one_of(self.width, self.width, max(1, case.extent(200))))


def attention(case):
    drawn, dtype = Drawn(case), case.one_of(*FLOATS)
    kinds = [case.weighted(ordinary=8, special=1.5, offset=0.2) for _ in range(3)]
    scale_of_scores = case.one_of(1.0, 1.0, 4.0)
    q = case.input(dtype, (drawn.batch, drawn.heads, drawn.queries, drawn.width), scale_of_scores, kinds[0])
    k = case.input(dtype, (drawn.batch, drawn.kv_heads, drawn.keys, drawn.width), 1.0, kinds[1])
    v = case.input(dtype, (drawn.batch, drawn.kv_heads, drawn.keys, drawn.value_width), 1.0, kinds[2])
    if drawn.batch * drawn.keys and case.flag(0.1):
        hide_by_infinity(case, q, k)
        kinds[:2] = "positive", "-infinite rows"
    o = case.output(dtype, (drawn.batch, drawn.heads, drawn.queries, drawn.value_width))
    given = {"causal": int(case.flag()), "scale": float(case.one_of(0.0, 0.0, 0.3))}
    if case.flag():
        given["lse"] = case.output(arithmetic(dtype), (drawn.batch, drawn.heads, drawn.queries))
    lengths = np.full(drawn.batch, drawn.keys)
    if case.flag(0.3):
        lengths = case.random.integers(-2, drawn.keys + 3, drawn.batch)
        given["key_lengths"] = case.input(I32, (drawn.batch,), values=lengths)
    case.description = (f"attention {dtype} q {q.shape}, k {k.shape}, v {v.shape}, causal {given['causal']}, scale "
                        f"{given['scale']}, lengths {lengths.tolist()}; values of q, k, v: {', '.join(kinds)}")
    case.call("attention", q, k, v, o, options="attention", given=given)
    if o.size == 0:
        return
    length = np.clip(lengths.astype(np.int64), 0, drawn.keys)[:, None]
    seen = np.repeat(length, drawn.queries, 1)
    if given["causal"]:
        seen = np.clip(np.arange(drawn.queries) + 1 + length - drawn.queries, 0, length)
    check(case, dtype, (q, k, v, o), given.get("lse"), seen, given["scale"] or drawn.width**-0.5)


def hide_by_infinity(case, q, k):
    """Makes all scores of some keys -infinity: q is positive, one element of each such key is -infinity, the rest
    finite."""
    values = np.where(np.isfinite(q.wide()), np.abs(q.wide()) + 0.25, 1.0)
    rewrite(q, values)
    values = np.where(np.isfinite(k.wide()), np.clip(k.wide(), -9, 9), 1.0)
    hidden = np.broadcast_to(case.random.random(k.shape[2]) < case.one_of(0.2, 1.0, 1.0), k.shape[:3])
    values[..., int(case.random.integers(k.shape[3]))][hidden] = -np.inf
    rewrite(k, values)


def rewrite(tensor, values):
    """Stores values to an input; if an axis is broadcast, the first ones."""
    first = tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stored.strides)
    tensor.stored[first] = tensor.dtype.stored(values[first])


def check(case, dtype, tensors, lse, seen, scale):
    """Compares with the definition, one batch element at a time."""
    q, k, v, o = (tensor.wide() for tensor in tensors)
    group = q.shape[1] // k.shape[1]
    scale = scale if dtype.name == "f64" else float(np.float32(scale))
    with np.errstate(all="ignore"):
        for b in range(q.shape[0]):
            wide_k, wide_v = np.repeat(k[b], group, 0), np.repeat(v[b], group, 0)
            of_lse = None if lse is None else lse.wide()[b]
            check_element(f"batch element {b}", dtype, q[b], wide_k, wide_v, o[b], of_lse, seen[b], scale)


def check_element(what, dtype, q, k, v, o, lse, seen, scale):
    step = dtype.unit * (2 if dtype.has_small_range else 1)
    kept = dtype.own_unit if dtype.has_small_range else 0
    keys, width = k.shape[1], q.shape[2]
    hidden = np.arange(keys) >= seen[None, :, None]
    plain = [np.nan_to_num(x, nan=0, posinf=0, neginf=0) for x in (q, k)]
    scores = scale * (q @ np.swapaxes(k, 1, 2))
    terms = scale * (np.abs(plain[0]) @ np.swapaxes(np.abs(plain[1]), 1, 2))
    finite_v = np.nan_to_num(v, nan=0, posinf=0, neginf=0)
    # Beyond the header's range o and lse are unspecified.
    in_range = dtype.arithmetic_largest * 0.99
    overflow = (~hidden & ((terms / scale > in_range) | (terms * math.log2(math.e) > in_range))).any(axis=2)
    overflow |= scale * math.log2(math.e) * np.abs(plain[0]).max(axis=2, initial=0) > in_range
    overflow |= seen * np.abs(finite_v).max(initial=0) > in_range
    scores = np.where(hidden, -np.inf, scores)
    is_nan = (np.isnan(scores) | np.isposinf(scores)).any(axis=2)
    largest = scores.max(axis=2, keepdims=True, initial=-np.inf)
    none = np.isneginf(largest[..., 0])
    largest = np.where(np.isfinite(largest), largest, 0)
    below = np.where(np.isfinite(scores), scores - largest, -np.inf)
    weights = np.exp(below)
    weights[none | is_nan] = 0
    total = weights.sum(axis=2, keepdims=True)
    total = np.where(total == 0, 1, total)
    weights = weights / total
    error = step * ((width + 8) * terms + 8 * np.abs(largest) + 4 * np.abs(np.where(weights > 0, below, 0)))
    error = np.where(weights > 0, error, 0)
    larger = (weights * np.exp(error)).sum(axis=2, keepdims=True)
    of_sum = np.log(np.where(larger == 0, 1, larger))
    of_sums = (2 * keys + 40) * step
    underflow = 2.0**-25 if dtype.name == "f16" else dtype.arithmetic_normal
    factor = weights * (np.expm1(error + of_sum) + of_sums + kept) + underflow * ~hidden
    wanted, bound = weights @ finite_v, np.where(hidden, 0, factor) @ np.abs(finite_v) + dtype.arithmetic_normal
    special = check_special(what, o, scores, hidden, v, overflow)
    wanted = np.where(is_nan[..., None], np.nan, wanted)
    free = overflow[..., None] | (special | ~np.isfinite(bound)) & ~is_nan[..., None]
    close(f"{what}: o", o, wanted, bound, dtype, free)
    if lse is None:
        return
    wanted_lse = np.where(is_nan, np.nan, np.where(none, -np.inf, (largest + np.log(total))[..., 0]))
    of_lse = of_sum[..., 0] + (keys + 40) * step + 4 * step * (
        np.abs(largest[..., 0]) + np.where(np.isfinite(wanted_lse), np.abs(wanted_lse), 0))
    close(f"{what}: lse", lse, wanted_lse, of_lse, arithmetic(dtype), overflow | ~np.isfinite(of_lse) & ~is_nan)


def check_special(what, o, scores, hidden, v, overflow):
    """Asserts that a NaN in v makes its column NaN for every query that attends to the key, and that an infinity makes
    it infinite or NaN, and NaN if the score is -infinity. Returns where such values are visible."""
    sees = np.broadcast_to(~hidden, scores.shape).astype(np.float64)
    masked = (np.isneginf(scores) & ~hidden).astype(np.float64)
    infinite = np.isinf(v).astype(np.float64)
    is_nan = (sees @ np.isnan(v).astype(np.float64) > 0) | (masked @ infinite > 0)
    is_infinite = sees @ infinite > 0
    for mask, good, text in ((is_nan, np.isnan(o), "NaN"), (is_infinite & ~is_nan, ~np.isfinite(o), "infinite or NaN")):
        wrong = mask & ~good & ~overflow[..., None]
        if wrong.any():
            at = first_place(wrong)
            known = "all scores are -infinity" if np.isneginf(scores[at[:2]]).all() else "scores are ordinary"
            raise Wrong(f"{what}: o is {o[at]!r} at {at}, which sees {int(sees[at[:2]].sum())} keys and such a v: "
                        f"{text} is wanted; {known}")
    return is_nan | is_infinite


def attention_backward(case):
    drawn, dtype = Drawn(case), case.one_of(*FLOATS)
    of_queries, of_keys = (drawn.batch, drawn.heads, drawn.queries), (drawn.batch, drawn.kv_heads, drawn.keys)
    q, o, dout = (case.input(dtype, (*of_queries, columns), 1.0, "ordinary")
                  for columns in (drawn.width, drawn.value_width, drawn.value_width))
    k, v = (case.input(dtype, (*of_keys, columns), 1.0, "ordinary") for columns in (drawn.width, drawn.value_width))
    dq, dk, dv = (case.output(dtype, tensor.shape) for tensor in (q, k, v))
    given = {"causal": int(case.flag()), "scale": float(case.one_of(0.0, 0.0, 0.3))}
    lengths = np.full(drawn.batch, drawn.keys)
    if case.flag(0.3):
        lengths = case.random.integers(-2, drawn.keys + 3, drawn.batch)
        given["key_lengths"] = case.input(I32, (drawn.batch,), values=lengths)
        lengths = given["key_lengths"].stored.astype(np.int64)
    length = np.clip(lengths, 0, drawn.keys)[:, None]
    seen = np.repeat(length, drawn.queries, 1)
    if given["causal"]:
        seen = np.clip(np.arange(drawn.queries) + 1 + length - drawn.queries, 0, length)
    scale = given["scale"] or drawn.width**-0.5
    scale = scale if dtype.name == "f64" else float(np.float32(scale))
    group = drawn.heads // drawn.kv_heads
    scores = scale * (q.wide() @ np.swapaxes(np.repeat(k.wide(), group, 1), 2, 3))
    scores = np.where(np.arange(drawn.keys) < seen[:, None, :, None], scores, -np.inf)
    with np.errstate(all="ignore"):
        lse = case.input(arithmetic(dtype), of_queries, values=np.logaddexp.reduce(scores, axis=3, initial=-np.inf))
    case.description = (f"attention_backward {dtype} q {q.shape}, k {k.shape}, v {v.shape}, causal {given['causal']}, "
                        f"scale {given['scale']}, lengths {lengths.tolist()}")
    case.call("attention_backward", q, k, v, o, lse, dout, dq, dk, dv, options="attention_backward", given=given)
    wide = [tensor.wide() for tensor in (q, k, v, o, lse, dout, dq, dk, dv)]
    with np.errstate(all="ignore"):
        for b in range(drawn.batch):
            check_gradients(f"batch element {b}", dtype, [tensor[b] for tensor in wide], scores[b], seen[b], scale)


def check_gradients(what, dtype, tensors, scores, seen, scale):
    q, k, v, o, lse, dout, dq, dk, dv = tensors
    group = q.shape[0] // k.shape[0]
    k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
    step = dtype.unit * (2 if dtype.has_small_range else 1)
    kept = dtype.own_unit if dtype.has_small_range else 0
    tiny = dtype.arithmetic_normal + (2.0**-25 if dtype.name == "f16" else 0)
    visible = np.arange(k.shape[1]) < seen[None, :, None]
    none = ~visible | np.isneginf(lse)[..., None]
    scores, lse = np.where(none, 0, scores), np.where(none, 0, lse[..., None])
    terms = scale * (np.abs(q) @ np.swapaxes(np.abs(k), 1, 2))
    e = step * ((q.shape[2] + 8) * terms + 8 * np.abs(lse) + 4 * np.abs(scores - lse) + 8)
    p = np.where(none, 0, np.exp(scores - lse))
    difference = dout @ np.swapaxes(v, 1, 2) - (dout * o).sum(axis=2, keepdims=True)
    sizes = np.abs(dout) @ np.swapaxes(np.abs(v), 1, 2) + np.abs(dout * o).sum(axis=2, keepdims=True)
    ds = p * difference
    p_error = np.where(none, 0, p * np.expm1(e) + tiny)
    ds_error = ((p_error + 4 * step * p) * np.abs(difference) + tiny
                + p * np.exp(e) * (v.shape[2] + 8) * (step * sizes + dtype.arithmetic_normal))
    # Beyond the header's range gradients are unspecified, as with an lse that does not belong to the scores.
    largest = 6e4 if dtype.name == "f16" else 1e30
    free = bool((p > largest).any() or (np.abs(ds) > largest).any())

    def by_group(x):
        return x.reshape(len(x) // group, group, *x.shape[1:]).sum(axis=1)

    def of_sums(axis):
        count = visible.sum(axis=axis, keepdims=True) * (group if axis == 1 else 1)
        return (2 * count + 40) * step + kept

    turned = [np.swapaxes(x, 1, 2) for x in (p, p_error, ds, ds_error)]
    by_key = np.swapaxes(of_sums(1), 1, 2)
    least = dtype.arithmetic_normal
    close(f"{what}: dq", dq, scale * (ds @ k), scale * ((ds_error + of_sums(2) * np.abs(ds)) @ np.abs(k)) + least,
          dtype, free)
    close(f"{what}: dk", dk, scale * by_group(turned[2] @ q),
          scale * by_group((turned[3] + by_key * np.abs(turned[2])) @ np.abs(q)) + least, dtype, free)
    close(f"{what}: dv", dv, by_group(turned[0] @ dout),
          by_group((turned[1] + by_key * turned[0]) @ np.abs(dout)) + least, dtype, free)
