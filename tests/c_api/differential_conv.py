# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of conv and its gradients: layers of one to three dimensions in both layouts, depthwise, with
single taps, wide dilation, many channels; a bias of -0, NaN and infinities with finite weights."""
import math

import numpy as np
from activations import NAMES, activated
from comparison import close
from rung_types import FLOATS

MOST_PRODUCTS = 3e5
MOST_PRODUCTS_OF_MIDDLE_SIZE = 2e7


class Axis:
    """Windows along one axis of n elements: for each tap the results that use it and the positions of x that they read,
    as slices; None if there are none."""

    def __init__(self, case, n, single):
        self.kernel = 1 if single else int(case.one_of(1, 2, 3, 3, 4, 5, 7))
        self.dilation = int(case.one_of(1, 1, 1, 2, 3, case.random.integers(1, 31)))
        self.stride, self.padding = int(case.one_of(1, 1, 2, 3)), int(case.one_of(0, 0, 1, 2, 3))
        self.n = n
        self.count = (n + 2 * self.padding - self.dilation * (self.kernel - 1) - 1) // self.stride + 1
        self.slices = [self.slices_of(tap * self.dilation - self.padding) for tap in range(self.kernel)]

    def slices_of(self, shift):
        """Returns the slices of the tap that reads position o * stride + shift for result o."""
        first = max(0, -(shift // self.stride))
        last = min(self.count - 1, (self.n - 1 - shift) // self.stride)
        if last < first:
            return None
        begin = first * self.stride + shift
        return slice(first, last + 1), slice(begin, begin + (last - first) * self.stride + 1, self.stride)


class Layer:
    """A random layer."""

    def __init__(self, case):
        random = case.random
        form = case.weighted(few=4, many=2, depthwise=2, grouped=1)
        most = 130 if case.middle else 40
        self.groups = {"depthwise": int(random.integers(1, most)), "grouped": int(random.integers(2, 5))}.get(form, 1)
        channels, filters = (int(random.integers(1, most if form == "many" else 6)) for _ in range(2))
        if form == "depthwise":
            channels, filters = 1, int(case.one_of(1, 1, 2))
        self.channels, self.filters = self.groups * channels, self.groups * filters
        rank = int(case.one_of(1, 2, 2, 3))
        self.images = int(random.integers(0 if case.flag(0.05) else 1, 4))
        single = case.flag(0.15)
        largest = {1: 400, 2: 60, 3: 20} if case.middle else {1: 50, 2: 18, 3: 9}
        self.axes = [Axis(case, int(random.integers(1, largest[rank])), single) for _ in range(rank)]
        self.last = case.flag()
        self.given = {"groups": self.groups, "channels_last": int(self.last)}
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1)):
            self.given[name] = [getattr(axis, name) for axis in self.axes] + [default] * (3 - rank)
        self.exists = all(axis.count > 0 for axis in self.axes)
        self.x = (self.images, self.channels) + tuple(axis.n for axis in self.axes)
        self.w = (self.filters, channels) + tuple(axis.kernel for axis in self.axes)
        self.y = (self.images, self.filters) + tuple(axis.count for axis in self.axes)
        self.products = math.prod(self.y) * math.prod(self.w[1:]) if self.exists else 0

    def laid(self, shape):
        return (shape[0],) + shape[2:] + (shape[1],) if self.last else shape

    def first(self, array):
        """Returns an array with its channels moved to axis 1."""
        return np.moveaxis(array, -1, 1) if self.last else array

    def taps(self):
        """Yields each tap, the results that use it, and the positions of x that they read."""
        every = (slice(None), slice(None))
        for tap in np.ndindex(*(axis.kernel for axis in self.axes)):
            slices = [axis.slices[t] for axis, t in zip(self.axes, tap)]
            if None not in slices:
                yield every + tap, every + tuple(one for one, _ in slices), every + tuple(at for _, at in slices)

    def grouped(self, x, w, y):
        """Yields views for each group: x and y of its channels, w of its filters."""
        c, k = self.channels // self.groups, self.filters // self.groups
        for g in range(self.groups):
            yield x[:, g * c:(g + 1) * c], w[g * k:(g + 1) * k], y[:, g * k:(g + 1) * k]

    def forward(self, x, w):
        y = np.zeros(self.y)
        for xs, ws, ys in self.grouped(x, w, y):
            for tap, results, places in self.taps():
                read = xs[places]
                made = ws[tap] @ read.reshape(read.shape[:2] + (math.prod(read.shape[2:]),))
                ys[results] += made.reshape(made.shape[:2] + read.shape[2:])
        return y

    def backward_data(self, dy, w):
        dx = np.zeros(self.x)
        for xs, ws, ys in self.grouped(dx, w, dy):
            for tap, results, places in self.taps():
                read = ys[results]
                made = ws[tap].T @ read.reshape(read.shape[:2] + (math.prod(read.shape[2:]),))
                xs[places] += made.reshape(made.shape[:2] + read.shape[2:])
        return dx

    def backward_filter(self, x, dy):
        dw = np.zeros(self.w)
        for xs, ws, ys in self.grouped(x, dw, dy):
            for tap, results, places in self.taps():
                read, served = xs[places], ys[results]
                read, served = (part.reshape(part.shape[:2] + (math.prod(part.shape[2:]),)) for part in (read, served))
                ws[tap] = (served @ np.swapaxes(read, 1, 2)).sum(axis=0)
        return dw


def drawn(case):
    most = MOST_PRODUCTS_OF_MIDDLE_SIZE if case.middle else MOST_PRODUCTS
    while True:
        layer = Layer(case)
        if layer.exists and layer.products <= most:
            return layer


def check(case, what, layer, tensors, sum_of, terms, result, bias=None, activation="NONE"):
    """Compares a result with sums of products in double precision, with the bound of the headers."""
    dtype = result.dtype
    with np.errstate(all="ignore"):
        wide = [layer.first(tensor.wide()) for tensor in tensors]
        finite = [np.abs(np.where(np.isfinite(values), values, 0)) for values in wide]
        wanted, size = sum_of(*wide), sum_of(*finite)
        if bias is not None:
            shift = bias.wide().reshape((-1,) + (1,) * len(layer.axes))
            wanted, size = wanted + shift, size + np.abs(shift)
        bound = (terms + 3) * dtype.unit * size + (terms + 2) * dtype.arithmetic_normal
        overflows = size > dtype.arithmetic_largest / 2
        bound = np.where(np.isfinite(wanted), bound, 0)
        wanted, bound = activated(activation, wanted, bound, dtype)
        close(what, layer.first(result.wide()), wanted, bound, dtype, overflows)


def describe(case, what, layer, dtype, kind, more=""):
    case.description = f"{what} {dtype} x {layer.x}, w {layer.w}, {layer.given}, {kind} values{more}"


def drawn_kind(case):
    return case.weighted(ordinary=6, special=1.5, tiny=0.3)


def conv(case):
    layer, dtype, kind = drawn(case), case.one_of(*FLOATS), drawn_kind(case)
    x, w = case.input(dtype, layer.laid(layer.x), 1.0, kind), case.input(dtype, layer.laid(layer.w))
    y = case.output(dtype, layer.laid(layer.y))
    activation = case.one_of(*NAMES)
    given, bias = {"activation": f"RUNG_ACTIVATION_{activation}", **layer.given}, None
    if case.flag(0.4):
        zeros = np.full(layer.filters, -0.0) if case.flag(0.3) else None
        bias = given["bias"] = case.input(dtype, (layer.filters,), values=zeros)
    describe(case, "conv", layer, dtype, kind, f", {activation}, bias {bias is not None and bias.wide()[:4]}")
    case.call("conv", x, w, y, options="conv", given=given)
    check(case, "conv", layer, (x, w), layer.forward, math.prod(layer.w[1:]), y, bias, activation)


def conv_backward_data(case):
    layer, dtype, kind = drawn(case), case.one_of(*FLOATS), drawn_kind(case)
    dy, w = case.input(dtype, layer.laid(layer.y), 1.0, kind), case.input(dtype, layer.laid(layer.w))
    dx = case.output(dtype, layer.laid(layer.x))
    describe(case, "conv_backward_data", layer, dtype, kind)
    case.call("conv_backward_data", dy, w, dx, options="conv_backward_data", given=layer.given)
    terms = layer.filters // layer.groups * math.prod(layer.w[2:])
    check(case, "conv_backward_data", layer, (dy, w), layer.backward_data, terms, dx)


def conv_backward_filter(case):
    layer, dtype, kind = drawn(case), case.one_of(*FLOATS), drawn_kind(case)
    x, dy = case.input(dtype, layer.laid(layer.x), 1.0, kind), case.input(dtype, layer.laid(layer.y))
    dw = case.output(dtype, layer.laid(layer.w))
    describe(case, "conv_backward_filter", layer, dtype, kind)
    case.call("conv_backward_filter", x, dy, dw, options="conv_backward_filter", given=layer.given)
    terms = layer.images * math.prod(layer.y[2:])
    check(case, "conv_backward_filter", layer, (x, dy), layer.backward_filter, terms, dw)
