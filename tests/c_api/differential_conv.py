# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of conv and its gradients."""
import numpy as np
from random_case import FLOATS, close, rounding, smallest, unit

NAMES = ("depth", "height", "width")


class Axis:
    """Along one axis of n elements: which place tap t of result o lies at."""

    def __init__(self, case, n):
        self.kernel, self.dilation = int(case.random.integers(1, 6)), int(case.one_of(1, 1, 2, 3))
        self.stride, self.padding = int(case.one_of(1, 1, 2, 3)), int(case.random.integers(0, 4))
        self.n = n
        self.count = (n + 2 * self.padding - self.dilation * (self.kernel - 1) - 1) // self.stride + 1
        at = np.arange(max(self.count, 0))[:, None] * self.stride - self.padding
        self.at = at + np.arange(self.kernel) * self.dilation
        self.inside = (self.at >= 0) & (self.at < n)


class Layer:
    """A random layer of one to three dimensions, in either layout."""

    def __init__(self, case):
        self.groups = int(case.one_of(1, 1, 2, 3))
        many = case.flag(0.2)
        self.channels = self.groups * int(case.random.integers(1, 40 if many else 6))
        self.filters = self.groups * int(case.random.integers(1, 40 if many else 6))
        rank = int(case.one_of(1, 2, 2, 3))
        self.images = int(case.random.integers(0 if case.flag(0.05) else 1, 4))
        self.axes = [Axis(case, int(case.random.integers(1, 8 if rank == 3 else 16))) for _ in range(rank)]
        self.last = case.flag()
        self.given = dict(groups=self.groups, channels_last=int(self.last))
        for name, axis in zip(NAMES[3 - rank:], self.axes):
            self.given |= {f"stride_{name}": axis.stride, f"padding_{name}": axis.padding,
                           f"dilation_{name}": axis.dilation}
        self.exists = all(axis.count > 0 for axis in self.axes)
        self.x = (self.images, self.channels) + tuple(axis.n for axis in self.axes)
        self.w = (self.filters, self.channels // self.groups) + tuple(axis.kernel for axis in self.axes)
        self.y = (self.images, self.filters) + tuple(axis.count for axis in self.axes)

    def laid(self, shape):
        return (shape[0],) + shape[2:] + (shape[1],) if self.last else shape

    def first(self, array):
        return np.moveaxis(np.asarray(array), -1, 1) if self.last else np.asarray(array)

    def taps(self):
        """Each tap, with the results that it serves and the places of x these then read: slices of the axes."""
        for tap in np.ndindex(*(axis.kernel for axis in self.axes)):
            results = [np.flatnonzero(axis.inside[:, t]) for axis, t in zip(self.axes, tap)]
            places = [axis.at[o, t] for axis, o, t in zip(self.axes, results, tap)]
            yield tap, np.ix_(*results), np.ix_(*places)

    def grouped(self, x, w, y):
        """Views of each group: x and y of its channels, w of its filters."""
        c, k = self.channels // self.groups, self.filters // self.groups
        for g in range(self.groups):
            yield x[:, g * c:(g + 1) * c], w[g * k:(g + 1) * k], y[:, g * k:(g + 1) * k]


def drawn(case):
    layer = Layer(case)
    while not layer.exists:
        layer = Layer(case)
    return layer


def forward(layer, x, w):
    y = np.zeros(layer.y)
    for xs, ws, ys in layer.grouped(x, w, y):
        for tap, results, places in layer.taps():
            ys[(slice(None), slice(None)) + results] += np.einsum(
                "nc...,kc->nk...", xs[(slice(None), slice(None)) + places], ws[(slice(None), slice(None)) + tap])
    return y


def conv(api, case):
    layer = drawn(case)
    dtype = np.dtype(case.one_of(*FLOATS))
    x, w = case.input(dtype, layer.laid(layer.x)), case.input(dtype, layer.laid(layer.w))
    y = case.output(dtype, layer.laid(layer.y))
    bias = case.input(dtype, (layer.filters,)) if case.flag(0.3) else None
    case.freeze()
    api.call("conv", x, w, y, options=api.options("conv", **({} if bias is None else {"bias": bias}), **layer.given))
    wide = [layer.first(array).astype(np.float64) for array in (x, w)]
    wanted, size = forward(layer, *wide), forward(layer, *map(np.abs, wide))
    if bias is not None:
        shift = bias.astype(np.float64).reshape((-1,) + (1,) * len(layer.axes))
        wanted, size = wanted + shift, size + np.abs(shift)
    n = int(np.prod(layer.w[1:]))
    close(f"conv {layer.x} {layer.w}", layer.first(y), wanted,
          (n + 3) * unit(dtype) * size + (n + 2) * smallest(dtype) + rounding(dtype, wanted))


def conv_backward_data(api, case):
    layer = drawn(case)
    dtype = np.dtype(case.one_of(*FLOATS))
    dy, w = case.input(dtype, layer.laid(layer.y)), case.input(dtype, layer.laid(layer.w))
    dx = case.output(dtype, layer.laid(layer.x))
    case.freeze()
    api.call("conv_backward_data", dy, w, dx, options=api.options("conv_backward_data", **layer.given))

    def gradient(of_y, of_w):
        made = np.zeros(layer.x)
        for xs, ws, ys in layer.grouped(made, of_w, of_y):
            for tap, results, places in layer.taps():
                xs[(slice(None), slice(None)) + places] += np.einsum(
                    "nk...,kc->nc...", ys[(slice(None), slice(None)) + results],
                    ws[(slice(None), slice(None)) + tap])
        return made

    wide = [layer.first(array).astype(np.float64) for array in (dy, w)]
    wanted, size = gradient(*wide), gradient(*map(np.abs, wide))
    n = layer.filters // layer.groups * int(np.prod(layer.w[2:]))
    close(f"conv_backward_data {layer.x} {layer.w}", layer.first(dx), wanted,
          (n + 3) * unit(dtype) * size + (n + 2) * smallest(dtype) + rounding(dtype, wanted))


def conv_backward_filter(api, case):
    layer = drawn(case)
    dtype = np.dtype(case.one_of(*FLOATS))
    x, dy = case.input(dtype, layer.laid(layer.x)), case.input(dtype, layer.laid(layer.y))
    dw = case.output(dtype, layer.laid(layer.w))
    case.freeze()
    api.call("conv_backward_filter", x, dy, dw, options=api.options("conv_backward_filter", **layer.given))

    def gradient(of_x, of_y):
        made = np.zeros(layer.w)
        for xs, ws, ys in layer.grouped(of_x, made, of_y):
            for tap, results, places in layer.taps():
                count = int(np.prod([one.size for one in results]))
                read = xs[(slice(None), slice(None)) + places].reshape(xs.shape[:2] + (count,))
                served = ys[(slice(None), slice(None)) + results].reshape(ys.shape[:2] + (count,))
                ws[(slice(None), slice(None)) + tap] = np.einsum("ncp,nkp->kc", read, served)
        return made

    wide = [layer.first(array).astype(np.float64) for array in (x, dy)]
    wanted, size = gradient(*wide), gradient(*map(np.abs, wide))
    n = layer.images * int(np.prod(layer.y[2:]))
    close(f"conv_backward_filter {layer.x} {layer.w}", layer.first(dw), wanted,
          (n + 3) * unit(dtype) * size + (n + 2) * smallest(dtype) + rounding(dtype, wanted))
