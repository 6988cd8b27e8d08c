# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of operators along axes: softmax and its gradient, reduce, scan, histogram; masked rows, NaN,
infinities, segments."""
import math

import numpy as np
from comparison import close, equal, same_bits
from rung_types import BF16, F16, F32, F64, FLOATS, I8, I32, I64, INTEGERS, U8, U16, arithmetic


def drawn_kind(case):
    return case.weighted(ordinary=6, special=2.5, offset=0.5, tiny=0.3)


def softmax(case):
    dtype, kind = case.one_of(*FLOATS), drawn_kind(case)
    out = case.one_of(dtype, F32) if dtype.has_small_range else dtype
    shape = case.shape(elements=8000)
    axis, log, scale = int(case.random.integers(len(shape))), case.flag(0.3), case.one_of(1.0, 1.0, 0.125, 3.0)
    x, y = case.input(dtype, shape, case.one_of(1.0, 10.0), kind), case.output(out, shape)
    given = {"axis": axis - (len(shape) if case.flag() else 0), "log": int(log), "scale": scale}
    case.description = f"softmax {dtype} to {out} {shape} along {axis}, log {log}, scale {scale}, {kind} values"
    case.call("softmax", x, y, options="softmax", given=given, in_place=[(y, x)])
    if x.size == 0:
        return
    with np.errstate(all="ignore"):
        exact = np.moveaxis(x.exact(), axis, -1)
        largest = exact.max(axis=-1, keepdims=True)
        spoilt = np.isnan(exact).any(axis=-1, keepdims=True) | np.isposinf(largest)
        masked = np.isneginf(largest)
        below = exact - np.where(np.isfinite(largest), largest, 0)
        z = scale * below
        total = np.exp(z).sum(axis=-1, keepdims=True)
        k = (shape[axis] / 8 + 40 + 8 * np.where(np.isfinite(z), np.abs(z), 0)) * dtype.unit
        if log:
            wanted = np.where(masked, -np.inf, z - np.log(total))
            bound = k
        else:
            wanted = np.where(masked, 0, np.exp(z) / total)
            bound = k * wanted + dtype.arithmetic_normal
        wanted, bound = np.where(spoilt, np.nan, wanted), np.where(np.isfinite(wanted), bound, 0)
        free = np.isfinite(exact) & (below < -dtype.arithmetic_largest)  # may count as masked or not
        close("softmax", np.moveaxis(y.wide(), axis, -1), wanted, bound, out, free)
        if kind == "ordinary" and dtype in (F32, F64) and not case.middle:
            check_shifted(case, x, y, given)


def check_shifted(case, x, y, given):
    """Expects bitwise equal results after a power of two is added to all small integers of a row."""
    whole, found = np.clip(np.round(x.wide()), -30, 30), []
    for shift in (0, 64):
        moved, result = case.copy(x, False), case.copy(y, True)
        moved.stored[...] = whole + shift
        case.run(2, "softmax", (moved, result), case.api.options("softmax", **given))
        found.append(result.stored)
    same_bits("softmax changes when all of a row is shifted", *found, y.dtype)


def softmax_backward(case):
    dtype = case.one_of(*FLOATS)
    out = case.one_of(F32, F16, BF16) if dtype is F32 else dtype
    shape = case.shape(elements=8000)
    axis, log, scale = int(case.random.integers(len(shape))), case.flag(0.3), case.one_of(1.0, 1.0, 0.125, 3.0)
    scores = case.values(F64, shape, case.one_of(1.0, 10.0))
    if case.flag(0.2):
        scores = np.where(case.random.random(shape) < 0.3, -np.inf, scores)
    with np.errstate(all="ignore"):
        largest = scores.max(axis=axis, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
        p = powers / np.maximum(powers.sum(axis=axis, keepdims=True), 1e-300)
        y = case.input(dtype, shape, values=np.log(p) if log else p)
    dy, dx = case.input(dtype, shape), case.output(out, shape)
    case.description = f"softmax_backward {dtype} to {out} {shape} along {axis}, log {log}, scale {scale}"
    case.call("softmax_backward", y, dy, dx, options="softmax", in_place=[(dx, dy), (dx, y)],
              given={"axis": axis, "log": int(log), "scale": scale})
    if dx.size == 0:
        return
    with np.errstate(all="ignore"):
        of_y, slope = y.exact(), dy.exact()
        factor = np.exp(of_y) if log else of_y
        terms = slope if log else slope * of_y
        total, size = (v.sum(axis=axis, keepdims=True) for v in (terms, np.abs(terms)))
        k = (shape[axis] / 8 + 40) * dtype.unit
        if log:
            wanted = scale * (slope - factor * total)
            of_power = np.where(factor > 0, 8 * (1 + np.abs(of_y)), 0) * dtype.unit
            bound = scale * (k * (np.abs(slope) + factor * size) + factor * of_power * np.abs(total))
        else:
            wanted, bound = scale * (slope - total) * of_y, k * (np.abs(scale * of_y) * (np.abs(slope) + size))
        tiny = dtype.arithmetic_normal * (1 + scale * (np.abs(slope) + size))
        close("softmax_backward", dx.wide(), wanted, bound + tiny, out)


REDUCTIONS = ("SUM", "SUM", "PRODUCT", "MIN", "MAX", "MEAN", "NORM", "ARGMIN", "ARGMAX")


def result_type(case, name, dtype):
    if name.startswith("ARG"):
        return case.one_of(I32, I64)
    if name in ("MIN", "MAX"):
        return dtype
    if dtype.floating:
        return case.one_of(dtype, F32) if dtype.has_small_range else dtype
    if name == "MEAN":
        return case.one_of(F32, F64)
    return case.one_of(dtype, I64, I32 if dtype is not I64 else I64)


def reduce(case):
    dtype, name, kind = case.one_of(*FLOATS, *INTEGERS), case.one_of(*REDUCTIONS), drawn_kind(case)
    if name == "NORM" and not dtype.floating:
        name = "SUM"
    shape, segments = case.shape(), case.flag(0.15)
    rank = len(shape)
    axes = tuple(int(a) for a in case.random.permutation(rank)[:case.random.integers(1, rank + 1)])
    axes = (rank - 1,) if segments else axes
    count = math.prod(shape[axis] for axis in axes)
    if count == 0 and not segments and name not in ("SUM", "PRODUCT", "NORM"):
        return
    scale = 0.01 if name == "PRODUCT" and dtype.floating else 1.0
    x = case.input(dtype, shape, scale, kind)
    kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    out = result_type(case, name, dtype)
    given = {"operation": f"RUNG_REDUCE_{name}", "axes": axes}
    if segments:
        cuts = np.sort(case.random.integers(0, shape[-1] + 1, case.random.integers(1, 30)))
        given["offsets"] = case.input(case.index_type(), (len(cuts),), values=cuts)
        y = case.output(out, kept + (len(cuts) - 1,))
    else:
        keeps = case.flag(0.3)
        y = case.output(out, tuple(1 if a in axes else n for a, n in enumerate(shape)) if keeps else kept)
        if len(axes) == rank and case.flag(0.2):
            given["axes"] = ()
    case.description = f"reduce {name} {dtype} to {out} {shape} over {axes}, {kind} values, segments {segments}"
    if name == "PRODUCT" and dtype.floating:
        scale_products(x, count)
    case.call("reduce", x, y, options="reduce", given=given)
    lines = np.moveaxis(x.stored, sorted(axes), range(len(kept), rank)).reshape(kept + (count,))
    with np.errstate(all="ignore"):
        if not segments:
            check_reduction(name, dtype, lines, y.dtype.wide(y.stored).reshape(kept), out)
            return
        for s, (begin, end) in enumerate(zip(cuts, cuts[1:])):
            check_reduction(f"{name}", dtype, lines[..., begin:end], y.wide()[..., s], out)


def scale_products(x, count):
    """Scales factors toward 1, so that no intermediate product overflows."""
    x.region.allow_writes(True)
    first = tuple(slice(0, 1) if step == 0 else slice(None) for step in x.stored.strides)
    values = x.wide()[first]
    x.stored[first] = x.dtype.stored(np.where(np.isfinite(values) & (values != 0),
                                              1 + np.clip(values, -1, 1) / (2 + count), values))


def check_reduction(name, dtype, lines, got, out):
    """Compares one result per line of the last axis."""
    n = lines.shape[-1]
    if name in ("ARGMIN", "ARGMAX"):
        values = dtype.wide(lines)
        wanted = getattr(np, name.lower())(values, axis=-1) if n else np.full(lines.shape[:-1], -1)
        close(name, got, wanted, 0, out)
    elif name in ("MIN", "MAX"):
        values = dtype.wide(lines)
        if n:
            wanted = getattr(np, name.lower())(values, axis=-1)
        else:
            info = None if dtype.floating else np.iinfo(dtype.storage)
            least = -np.inf if dtype.floating else info.min
            most = np.inf if dtype.floating else info.max
            wanted = np.full(lines.shape[:-1], most if name == "MIN" else least, values.dtype)
        close(name, got, wanted, 0, out)
    elif not dtype.floating:
        check_integers(name, lines, got, out)
    else:
        check_floats(name, dtype, lines, got, out)


def check_integers(name, lines, got, out):
    with np.errstate(over="ignore"):
        wide = lines.astype(np.int64)
        total = np.multiply.reduce(wide, axis=-1) if name == "PRODUCT" else np.add.reduce(wide, axis=-1)
    if name == "MEAN":
        n = lines.shape[-1]
        wanted = total.astype(np.longdouble) / n if n else np.full(total.shape, np.nan)
        close("mean of integers", got, wanted, np.abs(np.nan_to_num(wanted)) * 80 * 2.0**-53, out)
    else:
        equal(f"{name} of integers", got, total.astype(out.storage))


def check_floats(name, dtype, lines, got, out):
    n, unit = lines.shape[-1], dtype.unit
    values = lines.astype(np.longdouble) if dtype is F64 else dtype.wide(lines)
    finite = np.abs(np.where(np.isfinite(values), values, 0))
    if name in ("SUM", "MEAN"):
        size = finite.sum(axis=-1)
        free = size > dtype.arithmetic_largest / 2
        wanted = values.sum(axis=-1)
        bound = 80 * unit * size + arithmetic(dtype).subnormal
        if name == "MEAN":
            wanted, bound = (wanted / n, bound / n) if n else (np.full(wanted.shape, np.nan), 0)
    elif name == "NORM":
        wanted = np.sqrt((values.astype(np.longdouble)**2).sum(axis=-1))
        largest = finite.max(axis=-1, initial=0)
        smallest = np.where(finite > 0, finite, np.inf).min(axis=-1, initial=np.inf)
        free = (largest > 1e150) | (smallest < 1e-140) if dtype is F64 else False
        bound = 42 * unit * np.where(np.isfinite(wanted), wanted, 0) + arithmetic(dtype).subnormal
        wanted = np.where(np.isnan(values).any(axis=-1), np.nan, wanted)
    else:
        wanted = np.multiply.reduce(values, axis=-1)
        # Bound of the distance of any intermediate product from 1, as a power of two.
        powers = np.abs(np.log2(np.where(finite > 0, finite, 1))).sum(axis=-1)
        free = powers > (1000 if dtype is F64 else 120)
        bound = n * unit * np.where(np.isfinite(wanted), np.abs(wanted), 0)
    close(name, got, wanted, bound, out, free)


def scan(case):
    dtype, kind = case.one_of(*FLOATS, *INTEGERS), drawn_kind(case)
    shape = case.shape()
    axis, name = int(case.random.integers(len(shape))), case.one_of("SUM", "SUM", "MIN", "MAX", "PRODUCT")
    reverse, exclusive = case.flag(), case.flag(0.4)
    x, y = case.input(dtype, shape, 1.0, kind), case.output(dtype, shape)
    given = {"operation": f"RUNG_SCAN_{name}", "axis": axis, "reverse": int(reverse), "exclusive": int(exclusive)}
    starts = []
    if case.flag(0.25):
        starts = case.random.integers(-3, shape[axis] + 4, case.random.integers(0, 20))
        given["offsets"] = case.input(case.index_type(), (len(starts),), values=starts)
    if name == "PRODUCT" and dtype.floating:
        scale_products(x, shape[axis])
    case.description = (f"scan {name} {dtype} {shape} along {axis}, reverse {reverse}, exclusive {exclusive}, {kind} "
                        f"values, {len(starts)} offsets")
    case.call("scan", x, y, options="scan", given=given, in_place=[(y, x)])
    if x.size == 0:
        return
    cuts = sorted({0, shape[axis], *(int(s) for s in starts if 0 <= s < shape[axis])})
    lines, got = np.moveaxis(x.stored, axis, -1), np.moveaxis(y.stored, axis, -1)
    with np.errstate(all="ignore"):
        for begin, end in zip(cuts, cuts[1:]):
            part, result = lines[..., begin:end], got[..., begin:end]
            if reverse:
                part, result = part[..., ::-1], result[..., ::-1]
            check_scan(name, dtype, part, result, exclusive)


def check_scan(name, dtype, lines, got, exclusive):
    n, unit = lines.shape[-1], dtype.unit
    function = {"SUM": np.add, "MIN": np.minimum, "MAX": np.maximum, "PRODUCT": np.multiply}[name]
    values = dtype.wide(lines)
    if dtype is F64:
        values = values.astype(np.longdouble)
    wanted = function.accumulate(values, axis=-1, dtype=values.dtype)
    if exclusive:
        info = None if dtype.floating else np.iinfo(dtype.storage)
        identity = {"SUM": 0, "PRODUCT": 1, "MIN": np.inf if dtype.floating else info.max,
                    "MAX": -np.inf if dtype.floating else info.min}[name]
        wanted = np.concatenate([np.full(wanted.shape[:-1] + (1,), identity, wanted.dtype), wanted[..., :-1]], axis=-1)
    if not dtype.floating:
        equal(f"scan {name} of integers", got, wanted)
        return
    finite = np.abs(np.where(np.isfinite(values), values, 0))
    free, bound = False, 0
    if name == "SUM":
        size = np.cumsum(finite, axis=-1)
        free = size > dtype.arithmetic_largest / 2
        bound = n * unit / (1 - n * unit) * size + arithmetic(dtype).subnormal
    elif name == "PRODUCT":
        powers = np.cumsum(np.abs(np.log2(np.where(finite > 0, finite, 1))), axis=-1)
        free = powers > (1000 if dtype is F64 else 120)
        bound = n * unit / (1 - n * unit) * np.abs(np.where(np.isfinite(wanted), wanted, 0))
    close(f"scan {name}", dtype.wide(got), wanted, bound, dtype, free)


def histogram(case):
    dtype = case.one_of(U8, U16, I32, I64, *FLOATS)
    x = case.input(dtype, case.shape(), 1.0, case.weighted(ordinary=4, special=2))
    bins = max(1, case.extent(200))
    counts = case.output(case.index_type(), (bins,))
    kept = arithmetic(dtype) if dtype.floating else I64
    given, before = {}, 0
    if case.flag(0.3):
        given["accumulate"] = 1
        before = case.random.integers(0, 9, bins)
        counts.start_with(before)
    values = x.stored.astype(np.int64) if not dtype.floating else x.wide().astype(kept.storage)
    if case.flag(0.3):
        edges = np.sort(case.values(kept, bins + 1) if dtype.floating else case.random.integers(-20, 300, bins + 1))
        edges = kept.stored(edges)
        given["edges"] = case.input(kept, (bins + 1,), values=edges)
        place = np.searchsorted(edges, values, side="right") - 1
        inside = (values >= edges[0]) & (values <= edges[-1])
    elif dtype.floating:
        low = float(case.random.uniform(-3, 1))
        high = low + float(case.random.uniform(0.1, 4))
        first, last = kept.storage.type(low), kept.storage.type(high)  # the call itself rounds low and high
        given |= {"low": low, "high": high}
        inside = (values >= first) & (values <= last)
        scaled = (np.where(inside, values, first) - first) * kept.storage.type(bins / (float(last) - float(first)))
        place = scaled.astype(np.int64)
    else:
        low = int(case.random.integers(0, 5)) if dtype is not I8 else 0
        high = low + bins * int(case.random.integers(1, 4))
        given |= {"low": float(low), "high": float(high)}
        inside = (values >= low) & (values < high)
        place = (np.where(inside, values, low) - low) * bins // (high - low)
    case.description = f"histogram {dtype} {x.shape} to {bins} of {counts.dtype}, {sorted(given)}"
    case.call("histogram", x, counts, options="histogram", given=given)
    wanted = np.bincount(np.minimum(place[inside], bins - 1), minlength=bins) + before
    equal("histogram", counts.stored, wanted.astype(counts.dtype.storage))
