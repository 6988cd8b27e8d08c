# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of what works on images and arrays of several axes: pool, stencil, image."""
import math

import numpy as np
from random_case import FLOATS, close, rounding, same, smallest, unit


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
    while not drawn.exists:
        drawn = Pooled(case)
    dtype = np.dtype(case.one_of(*FLOATS))
    out = drawn.shape[:2] + (drawn.rows.count, drawn.columns.count)
    kind = case.one_of("MAX", "AVERAGE", "L2", "WEIGHTED")
    x, y = case.input(dtype, drawn.laid(drawn.shape)), case.output(dtype, drawn.laid(out))
    weights = None
    if kind == "WEIGHTED":
        weights = case.input(dtype, (drawn.rows.kernel, drawn.columns.kernel))
        weights[...] = np.abs(weights) + 0.1  # nothing near a division by zero
    bias = case.input(dtype, (drawn.shape[1],)) if case.flag(0.3) else None
    indices = case.output(np.int64, drawn.laid(out)) if kind == "MAX" and case.flag() else None
    case.freeze()
    tensors = {name: value for name, value in dict(weights=weights, bias=bias, indices=indices).items()
               if value is not None}
    inside, u = drawn.taps("inside"), unit(dtype)
    counted = inside if drawn.valid else drawn.taps("padded")
    weight = np.ones(inside.shape[2:]) if weights is None else weights.astype(np.float64)
    total = (counted * weight).sum(axis=(2, 3))
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
    while not drawn.exists:
        drawn = Pooled(case)
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
