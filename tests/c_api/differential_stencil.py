# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of stencil and stencil_separable: masks, vectors and windows of every size up to 31 in one to
three axes, all edges and anchors, iterations; NaN and infinities reach only the windows that contain them."""
import math

import numpy as np
from comparison import Wrong, close, first_place
from rung_types import F32, FLOATS, U8, arithmetic


class Drawn:
    """A random call: extents, mask, options."""

    def __init__(self, case):
        random = case.random
        self.dtype = case.one_of(*FLOATS, U8)
        self.out = case.one_of(self.dtype, F32) if self.dtype.itemsize < 4 else self.dtype
        self.shape = case.shape(elements=4000, middle=1 << 17)
        axes = int(random.integers(1, min(3, len(self.shape)) + 1))
        while True:
            self.taps = tuple(int(case.one_of(1, 2, 3, 3, 5, random.integers(1, 32))) for _ in range(axes))
            if math.prod(self.taps) <= (60 if case.middle else 300):
                break
        self.edge = case.one_of("ZERO", "CLAMP", "MIRROR", "WRAP")
        self.form = case.one_of("mask", "vectors", "window")
        self.convolution = case.flag()
        self.iterations = int(case.one_of(1, 1, 1, 1, 2, 3, random.integers(1, 9)))
        self.anchor = tuple(int(random.integers(n)) for n in self.taps) if case.flag() else ()
        # Sums of bytes times integers are exact, and so are their products with a power of two.
        self.scale = case.one_of(1.0, 0.125) if self.dtype is U8 else case.one_of(1.0, -0.75)
        self.kind = case.weighted(ordinary=4, special=1) if self.dtype.floating and self.iterations == 1 else "ordinary"
        self.given = {"edge": f"RUNG_EDGE_{self.edge}", "convolution": int(self.convolution), "scale": self.scale,
                      "iterations": self.iterations}
        if self.anchor:
            self.given["anchor"] = self.anchor
        self.growth = 1.0  # bound of intermediate sums of separable passes, relative to x

    def weights(self, case, extents):
        kept = arithmetic(self.dtype)
        values = case.random.integers(-3, 4, extents) if self.dtype is U8 else case.values(kept, extents)
        return case.input(kept, extents, values=values)

    def call(self, case, x, y):
        """Makes the call; returns the mask as an array."""
        if self.form == "window":
            case.call("stencil", x, None, y, options="stencil", given={"window": self.taps, **self.given})
            return np.ones(self.taps)
        if self.form == "mask":
            mask = self.weights(case, self.taps)
            case.call("stencil", x, mask, y, options="stencil", given=self.given)
            return mask.wide()
        vectors = [self.weights(case, (n,)) for n in self.taps]
        across, down, through = (vectors[::-1] + [None, None])[:3]
        case.call("stencil_separable", x, across, down, through, y, options="stencil", given=self.given)
        self.growth = math.prod(max(1.0, np.abs(vector.wide()).sum()) for vector in vectors)
        mask = vectors[0].wide()
        for vector in vectors[1:]:
            mask = mask[..., None] * vector.wide()
        return mask

    def padded(self, values, begin):
        """Returns the array extended along each axis by the values outside it."""
        first = len(self.shape) - len(self.taps)
        for axis, taps in enumerate(self.taps):
            n = self.shape[first + axis]
            at = np.arange(n + taps - 1) - begin[axis]
            inside = ((at >= 0) & (at < n)).reshape([-1] + [1] * (len(self.taps) - 1 - axis))
            period = max(2 * (n - 1), 1)
            at = {"ZERO": np.clip(at, 0, n - 1), "CLAMP": np.clip(at, 0, n - 1), "WRAP": at % n,
                  "MIRROR": np.minimum(at % period, period - at % period) if n > 1 else 0 * at}[self.edge]
            values = np.take(values, at, first + axis)
            if self.edge == "ZERO":
                values = np.where(inside, values, 0)
        return values

    def weighed(self, values, by, begin):
        values, total = self.padded(values, begin), np.zeros(self.shape)
        last = self.shape[len(self.shape) - len(self.taps):]
        for k in np.ndindex(*self.taps):
            total += by[k] * values[(...,) + tuple(slice(i, i + n) for i, n in zip(k, last))]
        return total


def stencil(case):
    drawn = Drawn(case)
    x, y = case.input(drawn.dtype, drawn.shape, 1.0, drawn.kind), case.output(drawn.out, drawn.shape)
    case.description = (f"stencil {drawn.form} {drawn.dtype} to {drawn.out} {drawn.shape}, taps {drawn.taps}, "
                        f"{drawn.given}, {drawn.kind} values")
    mask = drawn.call(case, x, y)
    if x.size == 0:
        return
    begin = drawn.anchor or [n // 2 for n in drawn.taps]
    if drawn.convolution:  # a correlation with the reversed mask
        mask = np.flip(mask)
        begin = [n - 1 - a for n, a in zip(drawn.taps, begin)]
    with np.errstate(all="ignore"):
        check(drawn, x.wide().astype(np.float64), y, mask, begin)


def check(drawn, values, y, mask, begin):
    out, unit = drawn.out, drawn.dtype.unit
    ones = np.ones(drawn.taps)
    has_nan = drawn.weighed(np.isnan(values).astype(float), ones, begin) > 0
    has_infinity = drawn.weighed(np.isinf(values).astype(float), ones, begin) > 0
    wanted, error = np.where(np.isfinite(values), values, 0), np.zeros(drawn.shape)
    free = np.full(drawn.shape, np.abs(wanted).max() * drawn.growth > drawn.dtype.arithmetic_largest / 4)
    for i in range(drawn.iterations):
        if i > 0:  # values out of range became infinite or NaN, and reach all windows that contain them
            free = drawn.weighed(free.astype(float), ones, begin) > 0
        terms = abs(drawn.scale) * drawn.weighed(np.abs(wanted) + error, np.abs(mask), begin)
        error = abs(drawn.scale) * drawn.weighed(error, np.abs(mask), begin)
        error += (math.prod(drawn.taps) + 4) * (unit * terms + drawn.dtype.arithmetic_normal)
        wanted = drawn.scale * drawn.weighed(wanted, mask, begin)
        free |= ~(terms < drawn.dtype.arithmetic_largest / 4)
        if out is U8:
            wanted, error = np.clip(np.rint(wanted), 0, 255), np.zeros(drawn.shape)
        elif i + 1 < drawn.iterations:
            error += out.rounding(np.abs(wanted) + error)
            free |= np.abs(wanted) + error > out.largest
    if drawn.dtype is U8 and drawn.iterations == 1 and terms.max() < 2**24:
        error = np.zeros(drawn.shape)
    got = y.wide()
    close("stencil", got, wanted.astype(out.storage) if out is U8 else wanted, error, out,
          has_nan | has_infinity | free)
    for mask_of, good, text in ((has_nan, ~np.isfinite(got) & np.isnan(got), "NaN"),
                                (has_infinity & ~has_nan, ~np.isfinite(got), "infinite or NaN")):
        wrong = mask_of & ~good
        if out.floating and wrong.any():
            raise Wrong(f"stencil: {got[first_place(wrong)]!r} at {first_place(wrong)}, {text} is wanted")
