# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of pool and pool_backward: windows of every kind in both layouts, NaN, infinities and equal
maxima, whose index the contract defines."""
import math

import numpy as np
from activations import NAMES, activated
from comparison import close, equal
from rung_types import FLOATS, I32, I64


class Windows:
    """Windows along one axis of n elements: the position of tap i of window o, and whether the tap counts."""

    def __init__(self, case, n, ceil):
        self.kernel, self.dilation = int(case.random.integers(1, 5)), int(case.one_of(1, 1, 2))
        if case.flag(0.05):
            self.kernel = int(case.random.integers(5, 40))
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
        channels, largest = case.one_of(1, 3, 4, 8, 17), 40
        if case.middle:
            channels, largest = case.one_of(1, 16, 64, 200), case.one_of(60, 200)
        self.shape = (int(case.random.integers(1, 3)), int(channels), case.extent(largest), case.extent(largest))
        self.last, self.valid, ceil = case.flag(), case.flag(), case.flag(0.3)
        self.rows, self.columns = Windows(case, self.shape[2], ceil), Windows(case, self.shape[3], ceil)
        self.given = {"channels_last": int(self.last), "count_padding": int(not self.valid), "ceil_mode": int(ceil)}
        for name in ("kernel", "stride", "padding", "dilation"):
            self.given[name] = [getattr(axis, name) for axis in (self.rows, self.columns)]
        self.out = self.shape[:2] + (self.rows.count, self.columns.count)
        self.taps_in_all = math.prod(self.out) * self.rows.kernel * self.columns.kernel
        self.exists = min(self.shape) > 0 and self.rows.exists and self.columns.exists

    def laid(self, shape):
        return (shape[0], shape[2], shape[3], shape[1]) if self.last else shape

    def planes(self, array):
        return array.transpose(0, 3, 1, 2) if self.last else array

    def taps(self, which):
        """Returns whether taps count, as OH x OW x kh x kw."""
        rows, columns = getattr(self.rows, which), getattr(self.columns, which)
        return rows[:, None, :, None] & columns[None, :, None, :]

    def windows(self, x):
        """Returns the elements of windows, as ... x OH x OW x kh x kw; outside the image the nearest elements."""
        rows = np.clip(self.rows.at, 0, self.shape[2] - 1)
        columns = np.clip(self.columns.at, 0, self.shape[3] - 1)
        return x[:, :, rows[:, None, :, None], columns[None, :, None, :]]

    def places(self):
        """Returns the positions of taps in their image, as OH x OW x kh x kw; outside the image those of the nearest
        elements."""
        rows = np.clip(self.rows.at, 0, self.shape[2] - 1)
        columns = np.clip(self.columns.at, 0, self.shape[3] - 1)
        return rows[:, None, :, None] * self.shape[3] + columns[None, :, None, :]


def drawn(case):
    while True:
        pooled = Pooled(case)
        if pooled.exists and pooled.taps_in_all <= (4e6 if case.middle else 1e5):
            return pooled


def wanted_index(pooled, of_x):
    """Returns the position of the first of equal maxima, or of the last NaN if there is one. Ignores taps outside."""
    inside = pooled.taps("inside")
    rank = np.where(np.isnan(of_x), np.inf, of_x)
    shape = of_x.shape[:4] + (-1,)
    is_nan = (np.isnan(of_x) & inside).reshape(shape)
    order = np.where(inside, rank, -np.inf).reshape(shape)
    # If all elements are -infinity, it is the first tap inside the image.
    first_inside = np.broadcast_to(inside, of_x.shape).reshape(shape).argmax(axis=-1)
    first = np.where(np.isneginf(order.max(axis=-1)), first_inside, order.argmax(axis=-1))
    last_nan = is_nan.shape[-1] - 1 - is_nan[..., ::-1].argmax(axis=-1)
    tap = np.where(is_nan.any(axis=-1), last_nan, first)
    places = np.broadcast_to(pooled.places(), of_x.shape).reshape(shape)
    return np.take_along_axis(places, tap[..., None], axis=-1)[..., 0]


def pool(case):
    pooled, dtype = drawn(case), case.one_of(*FLOATS)
    kind = case.one_of("MAX", "MAX", "AVERAGE", "L2", "WEIGHTED")
    values = case.weighted(ordinary=5, special=2, huge=0.3)
    x = case.input(dtype, pooled.laid(pooled.shape), 1.0, values)
    y = case.output(dtype, pooled.laid(pooled.out))
    activation = case.one_of(*NAMES)
    given = {"kind": f"RUNG_POOLING_{kind}", "activation": f"RUNG_ACTIVATION_{activation}", **pooled.given}
    if kind == "WEIGHTED":
        shape = (pooled.rows.kernel, pooled.columns.kernel)
        given["weights"] = case.input(dtype, shape, values=np.abs(case.values(dtype, shape)) + 0.1)
    if case.flag(0.3):
        given["bias"] = case.input(dtype, (pooled.shape[1],))
    if kind == "MAX" and case.flag():
        given["indices"] = case.output(case.one_of(I32, I64), pooled.laid(pooled.out))
    case.description = f"pool {kind} {dtype} {pooled.shape}, {pooled.given}, {activation}, {values} values"
    case.call("pool", x, y, options="pool", given=given)
    with np.errstate(all="ignore"):
        check(pooled, kind, dtype, x, y, given, activation)


def check(pooled, kind, dtype, x, y, given, activation):
    inside, u = pooled.taps("inside"), dtype.unit
    counted = inside if pooled.valid else pooled.taps("padded")
    weight = given["weights"].wide() if "weights" in given else np.ones(inside.shape[2:])
    total = (counted * weight).sum(axis=(2, 3))
    of_x = pooled.windows(pooled.planes(x.wide()))
    n, free = weight.size, False
    seen = np.where(inside, of_x, 0)
    finite = np.abs(np.where(np.isfinite(seen), seen, 0))
    if kind == "MAX":
        wanted = np.where(inside, of_x, -np.inf).max(axis=(4, 5))
        bound = np.zeros(wanted.shape)
    elif kind == "L2":
        squares = (seen.astype(np.longdouble)**2).sum(axis=(4, 5))
        wanted = np.where(squares > dtype.arithmetic_largest, np.inf, np.sqrt(squares))
        free = np.abs(squares / dtype.arithmetic_largest - 1) < 1e-3
        bound = (n / 2 + 4) * u * np.where(np.isfinite(wanted), wanted, 0) + np.sqrt(n * dtype.arithmetic_normal)
    else:
        wanted = (weight * seen).sum(axis=(4, 5)) / total
        size = (weight * finite).sum(axis=(4, 5))
        free = size > dtype.arithmetic_largest / 2
        size = size + np.abs(np.where(np.isfinite(wanted), wanted, 0)) * (counted * weight).sum(axis=(2, 3))
        bound = (n + 4) * u * size / np.abs(total) + dtype.arithmetic_normal
    if "bias" in given:
        shift = given["bias"].wide()[:, None, None]
        wanted = wanted + shift
        bound = bound + 2 * u * (np.abs(shift) + np.abs(np.where(np.isfinite(wanted), wanted, 0)))
    wanted, bound = activated(activation, wanted, bound, dtype)
    close(f"pool {kind}", pooled.planes(y.wide()), wanted, np.nan_to_num(bound), dtype, free)
    if "indices" in given:
        equal("indices of the maxima", pooled.planes(given["indices"].stored).astype(np.int64),
              wanted_index(pooled, of_x))


def pool_backward(case):
    pooled, dtype = drawn(case), case.one_of(*FLOATS)
    kind = case.one_of("MAX", "AVERAGE", "L2", "WEIGHTED")
    dy, dx = case.input(dtype, pooled.laid(pooled.out)), case.output(dtype, pooled.laid(pooled.shape))
    inside, places = pooled.taps("inside"), pooled.places()
    counted = inside if pooled.valid else pooled.taps("padded")
    of_dy = pooled.planes(dy.wide())[..., None, None]
    given, weight = {"kind": f"RUNG_POOLING_{kind}", **pooled.given}, np.ones(inside.shape[2:])
    if kind == "MAX":
        x = case.values(dtype, pooled.shape)
        index = wanted_index(pooled, pooled.windows(x))
        if case.flag(0.1):
            index = np.where(case.random.random(index.shape) < 0.2, 0, index)
        laid = index.transpose(0, 2, 3, 1) if pooled.last else index
        given["indices"] = case.input(case.one_of(I32, I64), laid.shape, values=laid)
        share = of_dy * (inside & (places == index[..., None, None]))
        size = np.abs(share)
    elif kind == "L2":
        given["x"] = case.input(dtype, pooled.laid(pooled.shape))
        of_x = np.where(inside, pooled.windows(pooled.planes(given["x"].wide())), 0)
        values = np.sqrt((of_x**2).sum(axis=(4, 5)))
        values = np.where(case.random.random(values.shape) < 0.1, 0, values)
        given["y"] = case.input(dtype, pooled.laid(pooled.out), values=values.transpose(0, 2, 3, 1) if pooled.last
                                else values)
        of_y = pooled.planes(given["y"].wide())[..., None, None]
        with np.errstate(all="ignore"):
            share = np.where(of_y == 0, 0, of_dy * of_x / of_y)
        size = np.abs(share)
    else:
        if kind == "WEIGHTED":
            weight = np.abs(case.values(dtype, weight.shape)) + 0.1
            given["weights"] = case.input(dtype, weight.shape, values=weight)
            weight = given["weights"].wide()
        share = of_dy * (inside * weight) / (counted * weight).sum(axis=(2, 3))[..., None, None]
        size = np.abs(share)
    case.description = f"pool_backward {kind} {dtype} {pooled.shape}, {pooled.given}"
    case.call("pool_backward", dy, dx, options="pool_backward", given=given)
    wanted, sizes = np.zeros(pooled.shape), np.zeros(pooled.shape)
    flat = places.ravel()
    for image in np.ndindex(*pooled.out[:2]):
        for target, source in ((wanted, share), (sizes, size)):
            target[image] += np.bincount(flat, source[image].ravel(), pooled.shape[2] * pooled.shape[3]).reshape(
                pooled.shape[2:])
    n = pooled.rows.kernel * pooled.columns.kernel
    terms = 2 * n + 4 if kind == "WEIGHTED" else n + 4
    tiny = dtype.arithmetic_normal * (1 + n * (1 + np.abs(of_dy).max(initial=0)))
    close(f"pool_backward {kind}", pooled.planes(dx.wide()), wanted, terms * dtype.unit * sizes + tiny, dtype)
