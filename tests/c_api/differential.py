# SPDX-License-Identifier: Apache-2.0
"""Random calls of every operator on arrays of random types, shapes, strides and values, compared with NumPy in double
precision under the bounds that the headers promise; and relations between calls that need no reference. Arrays lie
within canaries, which no call may touch.

usage: differential.py SOURCE LIBRUNG SECONDS [--seed N] OPERATOR...
"""
import argparse
import ctypes
import math
import sys
import time

import numpy as np
from against_numpy import Api

CANARY = 0xA5
FLOATS = ["f4", "f8", "f2"]
INTEGERS = ["i1", "u1", "u2", "i4", "i8"]


def unit(dtype):
    """The unit roundoff of the type that calls of this type compute in."""
    return 2.0**-53 if dtype == np.float64 else 2.0**-24


def smallest(dtype):
    """The smallest normal number of that type: results below it may be 0."""
    return 2.0**-1022 if dtype == np.float64 else 2.0**-126


def rounding(dtype, values):
    """What one rounding of results to their type may change; subnormal ones included."""
    if dtype.kind != "f":
        return 0
    info = np.finfo(dtype)
    return np.abs(values) * (info.eps / 2) + float(info.smallest_subnormal) / 2


class Case:
    """One random call: draws, and the arrays it has made."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.memory = []  # what must not change: (buffer, copy, view that may, or None)

    def one_of(self, *values):
        return values[self.random.integers(len(values))]

    def flag(self, probability=0.5):
        return bool(self.random.random() < probability)

    def extent(self, largest=300):
        """Small, large, and just beside powers of two alike."""
        kind = self.random.integers(4)
        if kind == 0:
            return int(self.random.integers(0, 5))
        if kind == 1:
            return int(np.clip(2 ** self.random.integers(0, 10) + self.random.integers(-1, 2), 0, largest))
        return int(np.exp(self.random.uniform(0, math.log(largest))))

    def shape(self, rank=None, elements=20000):
        rank = int(self.random.integers(1, 5)) if rank is None else rank
        while True:
            shape = tuple(self.extent() for _ in range(rank))
            if math.prod(shape) <= elements:
                return shape

    def array(self, dtype, shape, broadcast=False):
        """Uninitialised, within canaries: axes in any order in memory, backwards, with gaps, unaligned to vectors;
        inputs may repeat along an axis."""
        dtype = np.dtype(dtype)
        rank = len(shape)
        order = self.random.permutation(rank) if self.flag(0.4) else np.arange(rank)
        strides, step = [0] * rank, 1
        for axis in order[::-1]:
            if broadcast and self.flag(0.1):
                continue
            strides[axis] = step * (int(self.random.integers(1, 4)) if self.flag(0.2) else 1)
            step = strides[axis] * max(shape[axis], 1) + (int(self.random.integers(0, 4)) if self.flag(0.2) else 0)
        signs = [-1 if self.flag(0.1) else 1 for _ in range(rank)]
        last = sum(s * (n - 1) for s, n in zip(strides, shape)) if math.prod(shape) else 0
        lead = 64 + int(self.random.integers(0, 16))
        buffer = np.full((lead + last + 1 + 64) * dtype.itemsize, CANARY, np.uint8)
        whole = buffer.view(dtype)
        first = lead + sum(s * (n - 1) for s, n, sign in zip(strides, shape, signs) if sign < 0 and n > 0)
        view = np.lib.stride_tricks.as_strided(
            whole[first:], shape, [s * sign * dtype.itemsize for s, sign in zip(strides, signs)])
        self.memory.append([buffer, None, view])
        return view

    def values(self, dtype, shape, scale=1.0):
        dtype = np.dtype(dtype)
        if dtype.kind == "f":
            drawn = self.random.standard_normal(shape) * scale
            if self.flag(0.2):
                drawn = np.round(drawn)
            return drawn.astype(dtype)
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if self.flag(0.3) else (max(info.min, -9), 9)
        return self.random.integers(low, high, shape, dtype=dtype, endpoint=True)

    def input(self, dtype, shape, scale=1.0):
        view = self.array(dtype, shape, broadcast=True)
        if view.size:
            # Where an axis repeats, one value lies in memory for all.
            view[...] = self.values(dtype, [1 if s == 0 else n for s, n in zip(view.strides, shape)], scale)
        self.memory[-1][2] = None
        return view

    def output(self, dtype, shape):
        return self.array(dtype, shape)

    def freeze(self):
        """What no call may change: whole inputs, and all of outputs but their elements."""
        for entry in self.memory:
            entry[1] = entry[0].copy()

    def damage(self):
        for buffer, before, view in self.memory:
            now = buffer.copy()
            if view is not None:
                index = np.lib.stride_tricks.as_strided(
                    np.arange(buffer.size // view.itemsize)[(view.__array_interface__["data"][0]
                                                             - buffer.ctypes.data) // view.itemsize:],
                    view.shape, [s // view.itemsize * 8 for s in view.strides]) if view.size else []
                now.view(view.dtype)[index] = before.view(view.dtype)[index]
            if not np.array_equal(now, before):
                return f"byte {int(np.flatnonzero(now != before)[0])} outside of the result has changed"
        return ""


class Wrong(Exception):
    pass


def close(what, got, wanted, bound):
    """Every element within its bound; NaN where NaN is wanted. A result is rounded once more than its bound says."""
    wanted = np.asarray(wanted, np.float64 if got.dtype.kind == "f" else None)
    with np.errstate(all="ignore"):
        if got.dtype.kind != "f":
            good = got == wanted
        else:
            allowed = bound + rounding(got.dtype, wanted) * (1 + 1e-6)
            good = np.abs(got.astype(np.float64) - wanted) <= allowed
            good |= np.isnan(got) & np.isnan(wanted) | (got == wanted.astype(got.dtype))
    if not np.all(good):
        at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(good))[0])
        got, wanted = np.atleast_1d(got), np.atleast_1d(wanted)
        raise Wrong(f"{what}: {got[at]} at {at}, but NumPy has {wanted[at]}")


def same(what, one, other):
    if not np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
        raise Wrong(what)


def gemm(api, case):
    dtype = np.dtype(case.one_of(*FLOATS))
    batch = case.one_of((), (), (case.extent(4),))
    m, n, k = (case.extent(120) for _ in range(3))
    ta, tb = case.flag(), case.flag()
    a = case.input(dtype, batch + ((k, m) if ta else (m, k)))
    b = case.input(dtype, batch + ((n, k) if tb else (k, n)))
    c = case.output(dtype, batch + (m, n))
    beta = case.one_of(0.0, 0.0, 1.0, -0.5)
    c[...] = case.values(dtype, c.shape) if beta else np.nan
    before = c.astype(np.float64)
    alpha = case.one_of(1.0, 0.5, -2.0)
    case.freeze()
    api.call("gemm", a, b, c, options=api.options("gemm", alpha=alpha, beta=beta, transpose_a=int(ta),
                                                  transpose_b=int(tb)))
    left, right = a.astype(np.float64), b.astype(np.float64)
    left = np.swapaxes(left, -1, -2) if ta else left
    right = np.swapaxes(right, -1, -2) if tb else right
    terms = abs(alpha) * (np.abs(left) @ np.abs(right)) + (abs(beta) * np.abs(before) if beta else 0)
    close(f"gemm {m}x{n}x{k}", c, alpha * (left @ right) + (beta * before if beta else 0),
          (k + 4) * unit(dtype) * terms)


def elementwise(api, case):
    dtype = np.dtype(case.one_of(*FLOATS))
    shape = case.shape()
    functions = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "RELU": lambda x, y: np.maximum(x, 0),
                 "TANH": lambda x, y: np.tanh(x), "SIGMOID": lambda x, y: 1 / (1 + np.exp(-x)),
                 "EXP": lambda x, y: np.exp(x)}
    name = case.one_of(*functions)
    x, y = case.input(dtype, shape, 3), case.input(dtype, shape, 3)
    z = case.output(dtype, shape)
    case.freeze()
    unary = name not in ("ADD", "SUB", "MUL")
    api.call("elementwise", x, None if unary else y, None, z,
             options=api.options("elementwise", function=f"RUNG_ELEMENTWISE_{name}"))
    wanted = functions[name](x.astype(np.float64), y.astype(np.float64))
    close(name, z, wanted, 8 * unit(dtype) * np.abs(wanted) + smallest(dtype))


def reduce(api, case):
    dtype = np.dtype(case.one_of(*FLOATS, *INTEGERS))
    shape = case.shape()
    axes = tuple(sorted(case.random.permutation(len(shape))[:case.random.integers(1, len(shape) + 1)].tolist()))
    name = case.one_of("SUM", "MIN", "MAX", "ARGMIN", "ARGMAX")
    count = math.prod(shape[axis] for axis in axes)
    if name != "SUM" and count == 0:
        return
    x = case.input(dtype, shape)
    if dtype.kind == "f" and x.size and case.flag(0.1):
        x[tuple(int(case.random.integers(n)) for n in shape)] = np.nan
    kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    index = name.startswith("ARG")
    result = np.dtype("i8") if index or (dtype.kind != "f" and name == "SUM") else dtype
    y = case.output(result, kept)
    case.freeze()
    api.call("reduce", x, y, options=api.options("reduce", operation=f"RUNG_REDUCE_{name}", axes=axes))
    if index:
        last = np.moveaxis(x, axes, range(len(kept), len(shape))).reshape(kept + (count,))
        close(name, y, getattr(np, name.lower())(last, axis=-1), 0)
    elif name != "SUM":
        close(name, y, getattr(np, name.lower())(x, axis=axes), 0)
    elif dtype.kind != "f":
        close(name, y, np.sum(x, axis=axes, dtype=np.uint64 if dtype.kind == "u" else np.int64).astype(np.int64), 0)
    else:
        exact = x.astype(np.float64)
        close(name, y, exact.sum(axis=axes), 80 * unit(dtype) * np.abs(exact).sum(axis=axes) + 1e-300)


def scan(api, case):
    dtype = np.dtype(case.one_of(*FLOATS, *INTEGERS))
    shape = case.shape()
    axis = int(case.random.integers(len(shape)))
    name = case.one_of("SUM", "MIN", "MAX")
    reverse, exclusive = case.flag(), name == "SUM" and case.flag()
    x, y = case.input(dtype, shape), case.output(dtype, shape)
    case.freeze()
    api.call("scan", x, y, options=api.options("scan", operation=f"RUNG_SCAN_{name}", axis=axis, reverse=int(reverse),
                                               exclusive=int(exclusive)))
    turned = np.flip(x, axis) if reverse else x
    wide = turned.astype(np.float64) if dtype.kind == "f" else turned
    function = {"SUM": np.add, "MIN": np.minimum, "MAX": np.maximum}[name]
    with np.errstate(all="ignore"):
        wanted = function.accumulate(wide, axis=axis, dtype=wide.dtype)
        terms = np.cumsum(np.abs(wide), axis=axis) if dtype.kind == "f" and name == "SUM" else 0
        if exclusive and dtype.kind == "f":
            wanted = wanted - wide
        elif exclusive:
            wanted = (wanted - wide).astype(dtype)
    if reverse:
        wanted, terms = np.flip(wanted, axis), np.flip(terms, axis) if np.ndim(terms) else 0
    close(f"scan {name}", y, wanted, shape[axis] * unit(dtype) * terms + 1e-300)
    # The scan of the whole is that of its parts, the second one carried on: exactly, for integers.
    cut = shape[axis] // 2
    if dtype.kind == "f" or exclusive or reverse or name != "SUM" or cut == 0:
        return
    first, second = (np.take(x, range(*ends), axis) for ends in ((0, cut), (cut, shape[axis])))
    parts = [np.empty_like(part) for part in (first, second)]
    for part, result in zip((first, second), parts):
        api.call("scan", part, result, options=api.options("scan", axis=axis))
    with np.errstate(all="ignore"):
        carried = parts[1] + np.take(parts[0], [cut - 1], axis)
    same("a scan differs from that of its two halves", np.concatenate([parts[0], carried], axis), y)


def histogram(api, case):
    dtype = np.dtype(case.one_of("f4", "f8", "u1", "i4"))
    x = case.input(dtype, case.shape())
    bins = max(1, case.extent(200))
    counts = case.output("i8", (bins,))
    counts[...] = -1
    if dtype.kind == "f":
        low = float(case.random.uniform(-3, 1))
        high = low + float(case.random.uniform(0.1, 4))
        first, last = dtype.type(low), dtype.type(high)  # the call rounds them itself
        place = ((x - first) * dtype.type(bins / (float(last) - float(first)))).astype(np.int64)
        inside = (x >= first) & (x <= last)
    else:
        low = int(case.random.integers(0, 5))
        high = low + bins * int(case.random.integers(1, 4))
        place = (x.astype(np.int64) - low) * bins // (high - low)
        inside = (x >= low) & (x < high)
    case.freeze()
    api.call("histogram", x, counts, options=api.options("histogram", low=float(low), high=float(high)))
    close("histogram", counts, np.bincount(np.minimum(place[inside], bins - 1), minlength=bins), 0)


def transpose(api, case):
    dtype = np.dtype(case.one_of(*FLOATS, *INTEGERS))
    shape = case.shape()
    order = [int(axis) for axis in case.random.permutation(len(shape))]
    x = case.input(dtype, shape)
    y = case.output(dtype, tuple(shape[axis] for axis in order))
    case.freeze()
    api.call("transpose", x, y, options=api.options("transpose", order=order))
    same("transpose", y, x.transpose(order))


def softmax(api, case):
    dtype = np.dtype(case.one_of(*FLOATS))
    shape = case.shape()
    axis = int(case.random.integers(len(shape)))
    x, y = case.input(dtype, shape, case.one_of(1.0, 10.0)), case.output(dtype, shape)
    options = api.options("softmax", axis=axis)
    case.freeze()
    api.call("softmax", x, y, options=options)
    if x.size == 0:
        return
    exact = x.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=axis, keepdims=True))
    wanted = powers / powers.sum(axis=axis, keepdims=True)
    below = np.abs(exact - exact.max(axis=axis, keepdims=True))
    close("softmax", y, wanted, (shape[axis] / 8 + 40 + 8 * below) * unit(dtype) * wanted + smallest(dtype))
    # Adding a power of two to all of a row of small whole numbers changes nothing, to the bit.
    whole = np.clip(np.round(x), -30, 30).astype(dtype)
    once, shifted = np.empty_like(whole), np.empty_like(whole)
    api.call("softmax", whole, once, options=options)
    api.call("softmax", whole + dtype.type(64), shifted, options=options)
    same("softmax changes when all of a row is shifted", once, shifted)


def norm(api, case):
    dtype = np.dtype(case.one_of("f4", "f8"))
    shape = case.shape(2)
    x, gamma = case.input(dtype, shape), case.input(dtype, shape[1:])
    rms = case.flag()
    y = case.output(dtype, shape)
    case.freeze()
    function = "rms_norm" if rms else "layer_norm"
    options = api.options("norm", gamma=gamma, epsilon=1e-3)
    api.call(function, x, y, options=options)
    if x.size == 0:
        return
    exact = x.astype(np.float64)
    mean = 0 if rms else exact.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(((exact - mean) ** 2).mean(axis=1, keepdims=True) + 1e-3)
    z = (exact - mean) * rstd
    error = (shape[1] / 8 + 32) * unit(dtype)
    size = rstd * np.abs(exact).mean(axis=1, keepdims=True)
    close(function, y, z * gamma, error * np.abs(gamma) * (np.abs(z) * (1 + error * size * size) + size)
          + 2 * unit(dtype) * np.abs(z * gamma))
    # Rows are independent of each other: permuted rows are permuted results, to the bit.
    order = case.random.permutation(shape[0])
    plain, permuted = np.empty(shape, dtype), np.empty(shape, dtype)
    api.call(function, np.ascontiguousarray(x), plain, options=options)
    api.call(function, np.ascontiguousarray(x[order]), permuted, options=options)
    close("norm of permuted rows", permuted, plain[order].astype(np.float64), 8 * unit(dtype) * np.abs(plain[order]))


class Windows:
    """Along one axis of n elements: which place tap i of window o lies at, and which of them count."""

    def __init__(self, case, n, ceil):
        self.kernel, self.dilation = int(case.random.integers(1, 5)), int(case.one_of(1, 1, 2))
        self.stride = int(case.random.integers(1, 5))
        span = self.dilation * (self.kernel - 1) + 1
        self.padding = int(case.random.integers(0, span // 2 + 1))
        self.count = (n + 2 * self.padding - span + (self.stride - 1 if ceil else 0)) // self.stride + 1
        if ceil and (self.count - 1) * self.stride >= n + self.padding:
            self.count -= 1
        at = np.arange(max(self.count, 0))[:, None] * self.stride - self.padding
        self.at = at + np.arange(self.kernel) * self.dilation
        self.inside = (self.at >= 0) & (self.at < n)
        self.padded = self.at < n + self.padding
        self.exists = self.count > 0 and self.inside.any(axis=1).all()


class Pooled:
    """A random pool of images of shape (images, channels, rows, columns), in either layout."""

    def __init__(self, case):
        self.shape = (int(case.random.integers(1, 3)), int(case.one_of(1, 3, 4, 8, 17)), case.extent(40),
                      case.extent(40))
        self.last, self.valid, ceil = case.flag(), case.flag(), case.flag(0.3)
        self.rows, self.columns = Windows(case, self.shape[2], ceil), Windows(case, self.shape[3], ceil)
        self.given = dict(channels_last=int(self.last), count_padding=int(not self.valid), ceil_mode=int(ceil))
        for name, axis in (("height", self.rows), ("width", self.columns)):
            self.given |= {f"kernel_{name}": axis.kernel, f"stride_{name}": axis.stride,
                           f"padding_{name}": axis.padding, f"dilation_{name}": axis.dilation}
        self.exists = min(self.shape) > 0 and self.rows.exists and self.columns.exists

    def laid(self, shape):
        return (shape[0], shape[2], shape[3], shape[1]) if self.last else shape

    def planes(self, array):
        return array.transpose(0, 3, 1, 2) if self.last else array

    def taps(self, which):
        """OH x OW x kh x kw: whether a tap counts."""
        rows, columns = getattr(self.rows, which), getattr(self.columns, which)
        return rows[:, None, :, None] & columns[None, :, None, :]

    def windows(self, x):
        """... x OH x OW x kh x kw of the elements; of those outside the nearest."""
        rows = np.clip(self.rows.at, 0, self.shape[2] - 1)
        columns = np.clip(self.columns.at, 0, self.shape[3] - 1)
        return x[:, :, rows[:, None, :, None], columns[None, :, None, :]]


def pool(api, case):
    drawn = Pooled(case)
    if not drawn.exists:
        return
    dtype = np.dtype(case.one_of(*FLOATS))
    out = drawn.shape[:2] + (drawn.rows.count, drawn.columns.count)
    kind = case.one_of("MAX", "AVERAGE", "L2", "WEIGHTED")
    x, y = case.input(dtype, drawn.laid(drawn.shape)), case.output(dtype, drawn.laid(out))
    weights = case.input(dtype, (drawn.rows.kernel, drawn.columns.kernel)) if kind == "WEIGHTED" else None
    bias = case.input(dtype, (drawn.shape[1],)) if case.flag(0.3) else None
    indices = case.output(np.int64, drawn.laid(out)) if kind == "MAX" and case.flag() else None
    case.freeze()
    tensors = {name: value for name, value in dict(weights=weights, bias=bias, indices=indices).items()
               if value is not None}
    inside, u = drawn.taps("inside"), unit(dtype)
    counted = inside if drawn.valid else drawn.taps("padded")
    weight = np.ones(inside.shape[2:]) if weights is None else weights.astype(np.float64)
    total = (counted * weight).sum(axis=(2, 3))
    if kind == "WEIGHTED" and np.abs(total).min() <= 0.1 * np.abs(weight).sum():
        return  # next to a division by zero
    api.call("pool", x, y, options=api.options("pool", kind=f"RUNG_POOLING_{kind}", **tensors, **drawn.given))
    of_x = drawn.windows(drawn.planes(x).astype(np.float64))
    n = weight.size
    if kind == "MAX":
        wanted = np.where(inside, of_x, -np.inf).max(axis=(4, 5))
        bound = 0 * wanted
    elif kind == "L2":
        wanted = np.sqrt((inside * of_x**2).sum(axis=(4, 5)))
        bound = (n / 2 + 4) * u * wanted + np.sqrt(n * smallest(dtype))
    else:
        wanted = (inside * weight * of_x).sum(axis=(4, 5)) / total
        size = (inside * np.abs(weight * of_x)).sum(axis=(4, 5))
        size += np.abs(wanted) * (counted * np.abs(weight)).sum(axis=(2, 3))
        bound = (n + 4) * u * size / np.abs(total)
    got = drawn.planes(y)
    if bias is not None:
        shift = bias.astype(np.float64)[:, None, None]
        wanted, bound = wanted + shift, bound + 2 * u * (np.abs(shift) + np.abs(wanted + shift))
    close(f"pool {kind}", got, wanted, bound + rounding(dtype, wanted))
    if indices is not None:
        where = drawn.planes(indices).reshape(out[0], out[1], -1)
        flat = drawn.planes(x).reshape(out[0], out[1], -1)
        best = np.take_along_axis(flat, where, axis=2).reshape(out).astype(np.float64)
        close("the element at pool's index", best, np.where(inside, of_x, -np.inf).max(axis=(4, 5)), 0)


def pool_backward(api, case):
    drawn = Pooled(case)
    if not drawn.exists:
        return
    dtype = np.dtype(case.one_of("f4", "f8"))
    out = drawn.shape[:2] + (drawn.rows.count, drawn.columns.count)
    kind = case.one_of("MAX", "AVERAGE")
    dy, dx = case.input(dtype, drawn.laid(out)), case.output(dtype, drawn.laid(drawn.shape))
    tensors = {}
    if kind == "MAX":
        x = case.values(dtype, drawn.laid(drawn.shape))
        tensors["indices"] = np.empty(drawn.laid(out), np.int64)
        api.call("pool", x, np.empty(drawn.laid(out), dtype), options=api.options("pool", **tensors, **drawn.given))
    case.freeze()
    api.call("pool_backward", dy, dx, options=api.options(
        "pool_backward", kind=f"RUNG_POOLING_{kind}", **tensors, **drawn.given))
    inside = drawn.taps("inside")
    counted = inside if drawn.valid else drawn.taps("padded")
    terms = drawn.planes(dy).astype(np.float64)
    place = (np.clip(drawn.rows.at, 0, None)[:, None, :, None] * drawn.shape[3]
             + np.clip(drawn.columns.at, 0, None)[None, :, None, :])
    if kind == "AVERAGE":
        share = (terms / counted.sum(axis=(2, 3)))[..., None, None] * inside
    else:
        share = terms[..., None, None] * (inside & (place == drawn.planes(tensors["indices"])[..., None, None]))
    wanted, size = np.zeros(drawn.shape), np.zeros(drawn.shape)
    places = np.minimum(place, drawn.shape[2] * drawn.shape[3] - 1).ravel()
    for image in np.ndindex(*out[:2]):
        np.add.at(wanted[image].reshape(-1), places, share[image].ravel())
        np.add.at(size[image].reshape(-1), places, np.abs(share[image]).ravel())
    n = drawn.rows.kernel * drawn.columns.kernel
    close(f"pool_backward {kind}", drawn.planes(dx), wanted,
          (n + 4) * unit(dtype) * size + smallest(dtype) + rounding(dtype, wanted))


def stencil(api, case):
    dtype = np.dtype(case.one_of(*FLOATS, "u1"))
    out = np.dtype(case.one_of(dtype.str, "f4")) if dtype.itemsize < 4 else dtype
    wide = np.dtype("f8" if dtype == np.float64 else "f4")
    shape = case.shape(elements=4000)
    axes = int(case.random.integers(1, min(3, len(shape)) + 1))
    while True:
        taps = tuple(int(case.one_of(1, 2, 3, 5, case.random.integers(1, 32))) for _ in range(axes))
        if math.prod(taps) <= 300:
            break
    edge = case.one_of("ZERO", "CLAMP", "MIRROR", "WRAP")
    form = case.one_of("mask", "vectors", "window")
    convolution, iterations = case.flag(), case.one_of(1, 1, 1, 2, 3)
    anchor = tuple(int(case.random.integers(n)) for n in taps) if case.flag() else ()
    # Sums of bytes weighed with whole numbers are exact, and so is what a power of two makes of them.
    scale = case.one_of(1.0, 0.125) if dtype == np.uint8 else case.one_of(1.0, -0.75)
    x, y = case.input(dtype, shape), case.output(out, shape)

    def weights(extents):
        made = case.array(wide, extents)
        made[...] = case.random.integers(-3, 4, extents) if dtype == np.uint8 else case.values(wide, extents)
        case.memory[-1][2] = None
        return made

    given = dict(edge=f"RUNG_EDGE_{edge}", convolution=int(convolution), scale=scale, iterations=iterations)
    if anchor:
        given["anchor"] = anchor
    if form == "window":
        mask = np.ones(taps)
        case.freeze()
        api.call("stencil", x, None, y, options=api.options("stencil", window=taps, **given))
    elif form == "mask":
        mask = weights(taps)
        case.freeze()
        api.call("stencil", x, mask, y, options=api.options("stencil", **given))
    else:
        vectors = [weights((n,)) for n in taps]
        mask = vectors[0].astype(np.float64)
        for vector in vectors[1:]:
            mask = mask[..., None] * vector.astype(np.float64)
        case.freeze()
        across, down, through = (vectors[::-1] + [None, None])[:3]
        api.call("stencil_separable", x, across, down, through, y, options=api.options("stencil", **given))
    if x.size == 0:
        return

    weight = np.asarray(mask, np.float64)
    begin = anchor or [n // 2 for n in taps]
    if convolution:  # a correlation with the mask turned round
        weight = np.flip(weight)
        begin = [n - 1 - a for n, a in zip(taps, begin)]
    first = len(shape) - axes

    def padded(values):
        for axis in range(axes):
            n = shape[first + axis]
            at = np.arange(n + taps[axis] - 1) - begin[axis]
            inside = ((at >= 0) & (at < n)).reshape([-1] + [1] * (axes - 1 - axis))
            period = max(2 * (n - 1), 1)
            at = {"ZERO": np.clip(at, 0, n - 1), "CLAMP": np.clip(at, 0, n - 1), "WRAP": at % n,
                  "MIRROR": np.minimum(at % period, period - at % period) if n > 1 else 0 * at}[edge]
            values = np.take(values, at, first + axis)
            if edge == "ZERO":
                values = np.where(inside, values, 0)
        return values

    def weighed(values, by):
        values, total = padded(values), np.zeros(shape)
        for k in np.ndindex(*taps):
            total += by[k] * values[(...,) + tuple(slice(i, i + n) for i, n in zip(k, shape[first:]))]
        return total

    wanted, error = x.astype(np.float64), np.zeros(shape)
    for i in range(iterations):
        terms = abs(scale) * weighed(np.abs(wanted) + error, np.abs(weight))
        error = abs(scale) * weighed(error, np.abs(weight))
        error += (math.prod(taps) + 4) * (unit(dtype) * terms + smallest(dtype))
        wanted = scale * weighed(wanted, weight)
        if out == np.uint8:
            wanted, error = np.clip(np.rint(wanted), 0, 255), np.zeros(shape)
        elif i + 1 < iterations:
            error += rounding(out, np.abs(wanted) + error)
    if dtype == np.uint8 and iterations == 1 and abs(terms).max() < 2**24:
        error = np.zeros(shape)
    close(f"stencil {form} {taps} {given}", y, wanted.astype(out) if out == np.uint8 else wanted, error)


def image(api, case):
    """u8, whose results are exact: the definition in whole numbers, and layouts that change nothing."""
    kind = case.one_of("GREY", "BOX", "UNSHARP", "SOBEL")
    channels = case.one_of(3, 4) if kind == "GREY" else case.one_of(1, 2, 3, 4)
    height, width = case.shape(2, 3000)
    planar, radius = case.flag(), int(case.random.integers(0, 5))
    shape = (channels, height, width) if planar else (height, width, channels)
    x = case.input("u1", shape)
    keeps = kind == "GREY" and channels == 4 and case.flag()
    results = channels if kind != "GREY" else 2 if keeps else 1
    y = case.output("u1", (results, height, width) if planar else (height, width, results))
    case.freeze()
    api.call("image", x, y, options=api.options(
        "image", filter=f"RUNG_IMAGE_{kind}", weights="RUNG_GREY_BT601", radius=radius, sigma=0.01,
        amount=0.5, planar=int(planar)))
    if x.size == 0:
        return
    wide = (x.transpose(1, 2, 0) if planar else x).astype(np.int64)
    got = y.transpose(1, 2, 0) if planar else y
    if kind == "GREY":
        wanted = ((wide[..., :3] @ [9798, 19235, 3735] + 2**14) >> 15)[..., None]
        if keeps:
            wanted = np.concatenate([wanted, wide[..., 3:]], axis=2)
    elif kind == "BOX":
        taps = 2 * radius + 1
        sums = np.pad(wide, ((radius, radius), (radius, radius), (0, 0)), mode="edge")
        for axis in (0, 1):
            sums = np.lib.stride_tricks.sliding_window_view(sums, taps, axis=axis).sum(axis=-1)
        wanted = (2 * sums + taps**2) // (2 * taps**2)
    elif kind == "UNSHARP":
        wanted = wide  # so narrow a Gaussian is its middle: nothing is lost, nothing comes back
    else:
        padded = np.pad(wide, ((1, 1), (1, 1), (0, 0)), mode="edge")
        seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
        across = np.einsum("ijckl,k,l->ijc", seen, [1, 2, 1], [-1, 0, 1])
        down = np.einsum("ijckl,k,l->ijc", seen, [-1, 0, 1], [1, 2, 1])
        wanted = np.minimum(np.floor(np.sqrt(across**2 + down**2) + 0.5), 255)
        if channels % 2 == 0:
            wanted[..., -1] = wide[..., -1]
    same(f"image {kind}", np.ascontiguousarray(got), wanted.astype(np.uint8))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("library")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=int(time.time() * 1000) % 10**9)
    parser.add_argument("operators", nargs="+")
    options = parser.parse_args()
    here = [name for name in options.operators if name in globals()]
    api = Api(options.library)
    end = time.monotonic() + options.seconds
    counts = dict.fromkeys(here, 0)
    print(f"seed {options.seed}")
    number = options.seed * 1000003
    while time.monotonic() < end:
        for name in here:
            number += 1
            case = Case(number)
            try:
                globals()[name](api, case)
                wrong = case.damage() if case.memory and case.memory[0][1] is not None else ""
            except (Wrong, RuntimeError) as error:
                wrong = str(error)
            if wrong:
                sys.exit(f"{name}, case {number}: {wrong}\n  arrays: " + "; ".join(
                    f"{view.dtype} {view.shape} strides {view.strides}" if view is not None else "an input"
                    for _, _, view in case.memory) + f"\n  again: --seed {options.seed}, the first failing case")
            counts[name] += 1
    api.library.rung_context_destroy(api.context)
    print(", ".join(f"{name} {count}" for name, count in counts.items()) + ": cases that agree")
    if not counts or min(counts.values()) == 0:
        sys.exit("an operator was not tried")


if __name__ == "__main__":
    main()
