# SPDX-License-Identifier: Apache-2.0
"""What differential.py's calls are made of: random arrays within canaries, and comparison within bounds."""
import math

import numpy as np

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
            # Where an axis repeats, one value is in memory for all.
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
            # Infinity, where what is wanted is off by no more than its bound from what rounds to it.
            limits = np.finfo(got.dtype)
            rounds_to_infinity = float(limits.max) * (1 + float(limits.eps) / (4 - 2 * float(limits.eps)))
            good |= np.isinf(got) & (np.sign(got) == np.sign(wanted)) & (np.abs(wanted) + bound >= rounds_to_infinity)
    if not np.all(good):
        at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(good))[0])
        got, wanted = np.atleast_1d(got), np.atleast_1d(wanted)
        raise Wrong(f"{what}: {got[at]} at {at}, but NumPy has {wanted[at]}")


def same(what, one, other):
    if not np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
        raise Wrong(what)
