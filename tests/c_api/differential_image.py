# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of image: the definition in integers, bitwise, for u8, and within the bounds of image.hpp for
f32."""
import numpy as np
from comparison import close, equal
from rung_types import F32, U8

GREY = {"TENTHS": (0.3, 0.6, 0.1), "BT601": (0.299, 0.587, 0.114), "BT709": (0.2126, 0.7152, 0.0722)}
GREY_OF_BYTES = {"BT601": (9798, 19235, 3735), "BT709": (6966, 23436, 2366)}
SMOOTH, SLOPE = np.array([1, 2, 1]), np.array([-1, 0, 1])


class Drawn:
    """A random call; pictures are converted to channels last here."""

    def __init__(self, case):
        self.kind = case.one_of("GREY", "BOX", "GAUSSIAN", "UNSHARP", "SOBEL")
        self.channels = int(case.one_of(3, 4) if self.kind == "GREY" else case.one_of(1, 2, 3, 4))
        self.size = case.shape(2, 3000, 1 << 16)
        self.batch = case.one_of((), (), (int(case.random.integers(1, 4)),))
        self.planar, self.radius = case.flag(), int(case.one_of(0, 1, 2, 3, case.random.integers(0, 16)))
        self.sigma, self.amount = case.one_of(0.0, 0.8, 2.5, 0.01), case.one_of(0.5, 1.0, -2.0)
        self.weights = case.one_of(*GREY)
        keeps = self.kind == "GREY" and self.channels == 4 and case.flag()
        self.results = self.channels if self.kind != "GREY" else 2 if keeps else 1

    def laid(self, channels):
        return self.batch + ((channels, *self.size) if self.planar else (*self.size, channels))

    def last(self, array):
        return np.moveaxis(array, -3, -1) if self.planar else array

    def gaussian(self):
        """Returns the weights by distance from the center, with a sum of 1."""
        sigma = self.sigma or 0.3 * (self.radius - 1) + 0.8
        distance = np.arange(self.radius + 1)
        g = np.exp(-distance**2 / (2 * sigma**2)) if sigma > 0 else (distance == 0).astype(float)
        return g / (g[0] + 2 * g[1:].sum())

    def gaussian_of_bytes(self):
        """Returns weights in units of 1 / 256, from the outermost inward; each adds the rounding remainder of the
        previous."""
        g, made, left = self.gaussian(), np.zeros(self.radius + 1, np.int64), 0.0
        for k in range(self.radius, 0, -1):
            exact = 256 * g[k] + left
            made[k] = int(np.floor(exact + 0.5))
            left = exact - made[k]
        made[0] = 256 - 2 * made[1:].sum()
        return made

    def blurred(self, values, weights):
        """Blurs by the same weights along both axes; pixels outside are the nearest pixels."""
        taps = np.concatenate([weights[:0:-1], weights])
        return windowed(values, self.radius, taps, taps)


def windowed(values, radius, down, across):
    before = ((0, 0),) * (values.ndim - 3)
    for axis, taps in ((values.ndim - 3, down), (values.ndim - 2, across)):
        pads = before + tuple((radius, radius) if a == axis else (0, 0) for a in range(values.ndim - 3, values.ndim))
        padded, total = np.pad(values, pads, mode="edge"), 0
        for i, tap in enumerate(taps):
            total = total + tap * np.take(padded, range(i, i + values.shape[axis]), axis)
        values = total
    return values


def image(case):
    drawn, dtype = Drawn(case), case.one_of(U8, U8, F32)
    x, y = case.input(dtype, drawn.laid(drawn.channels)), case.output(dtype, drawn.laid(drawn.results))
    case.description = (f"image {drawn.kind} {dtype} {drawn.laid(drawn.channels)} to {drawn.results} channels, planar "
                        f"{drawn.planar}, radius {drawn.radius}, sigma {drawn.sigma}, amount {drawn.amount}")
    case.call("image", x, y, options="image", given={
        "filter": f"RUNG_IMAGE_{drawn.kind}", "weights": f"RUNG_GREY_{drawn.weights}", "radius": drawn.radius,
        "sigma": drawn.sigma, "amount": drawn.amount, "planar": int(drawn.planar)})
    if x.size == 0:
        return
    values, got = drawn.last(x.wide()), drawn.last(y.wide())
    if dtype is U8:
        equal(f"image {drawn.kind}", got, of_bytes(drawn, values.astype(np.int64)).astype(np.uint8))
    else:
        wanted, bound = of_floats(drawn, values)
        close(f"image {drawn.kind}", got, wanted, bound, F32)


def with_alpha(drawn, made, values):
    """Copies the last channel if it is alpha."""
    if drawn.kind == "GREY":
        return made if drawn.results == 1 else np.concatenate([made, values[..., -1:]], axis=-1)
    if drawn.kind in ("UNSHARP", "SOBEL") and drawn.channels % 2 == 0:
        made = made.copy()
        made[..., -1] = values[..., -1]
    return made


def of_bytes(drawn, values):
    if drawn.kind == "GREY":
        if drawn.weights == "TENTHS":
            made = values[..., :3] @ [3, 6, 1] // 10
        else:
            made = (values[..., :3] @ GREY_OF_BYTES[drawn.weights] + 2**14) >> 15
        made = made[..., None]
    elif drawn.kind == "BOX":
        taps = 2 * drawn.radius + 1
        made = (2 * drawn.blurred(values, np.ones(drawn.radius + 1, np.int64)) + taps**2) // (2 * taps**2)
    elif drawn.kind == "SOBEL":
        across, down = windowed(values, 1, SMOOTH, SLOPE), windowed(values, 1, SLOPE, SMOOTH)
        made = np.minimum(np.floor(np.sqrt(across**2 + down**2) + 0.5), 255).astype(np.int64)
    else:
        made = (drawn.blurred(values, drawn.gaussian_of_bytes()) + 2**15) >> 16
        if drawn.kind == "UNSHARP":
            amount = int(np.floor(256 * abs(drawn.amount) + 0.5)) * (1 if drawn.amount > 0 else -1)
            made = np.clip(values + (((values - made) * amount + 2**7) >> 8), 0, 255)
    return with_alpha(drawn, made, values)


def of_floats(drawn, values):
    u, size = F32.unit, np.abs(values)
    if drawn.kind == "GREY":
        weights = np.array(GREY[drawn.weights])
        made, bound = (values[..., :3] @ weights)[..., None], 6 * u * (size[..., :3] @ weights)[..., None]
    elif drawn.kind == "SOBEL":
        across, down = windowed(values, 1, SMOOTH, SLOPE), windowed(values, 1, SLOPE, SMOOTH)
        sums = windowed(size, 1, SMOOTH, np.abs(SLOPE)) + windowed(size, 1, np.abs(SLOPE), SMOOTH)
        made, bound = np.hypot(across, down), 8 * u * sums + 2.0**-74
    else:
        taps = 2 * drawn.radius + 1
        g = np.full(drawn.radius + 1, 1 / taps) if drawn.kind == "BOX" else drawn.gaussian()
        made, bound = drawn.blurred(values, g), (2 * taps + 8) * u * drawn.blurred(size, g)
        if drawn.kind == "UNSHARP":
            amount = abs(drawn.amount)
            bound = amount * bound + 4 * u * (size + amount * (size + np.abs(made) + bound))
            made = values + drawn.amount * (values - made)
    return with_alpha(drawn, made, values), with_alpha(drawn, bound + F32.normal, 0 * values)
