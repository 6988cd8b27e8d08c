# SPDX-License-Identifier: Apache-2.0
"""Random calls of what training is made of - losses, gradients of activations, steps of optimisers - against NumPy in
double precision; imported by differential.py."""
import math

import numpy as np
from random_case import FLOATS, close, rounding, smallest, unit


def wide_of(dtype):
    """The type of the arithmetic."""
    return np.dtype("f8" if dtype == np.float64 else "f4")


def loss(api, case):
    dtype = np.dtype(case.one_of(*FLOATS))
    shape = case.shape(int(case.random.integers(1, 4)), elements=8000)
    axis = int(case.random.integers(len(shape)))
    count = shape[axis]
    if count == 0:
        return
    across = shape[:axis] + shape[axis + 1:]
    kind = case.one_of("CROSS_ENTROPY", "CROSS_ENTROPY", "HINGE", "SQUARED")
    mean, ignores = case.flag(), case.flag(0.3) and kind != "SQUARED"
    smoothing = case.one_of(0.0, 0.125, 1.0) if kind == "CROSS_ENTROPY" else 0.0
    margin = case.one_of(0.0, 1.0, 0.5)
    x = case.input(dtype, shape, case.one_of(1.0, 10.0))
    if kind == "SQUARED":
        target = case.input(dtype, shape)
    else:
        target = case.array(case.one_of("i4", "i8"), across)
        target[...] = case.random.integers(0, count, across)
        if ignores:
            target[case.random.random(across) < 0.3] = -7
        case.memory[-1][2] = None
    result, losses = case.output(wide_of(dtype), ()), case.output(wide_of(dtype), across)
    dx = case.output(dtype, shape)
    case.freeze()
    given = dict(ignored_label=-7) if ignores else {}
    api.call("loss", x, target, result, options=api.options(
        "loss", kind=f"RUNG_LOSS_{kind}", reduction="RUNG_LOSS_MEAN" if mean else "RUNG_LOSS_SUM", axis=axis,
        smoothing=smoothing, margin=margin, dx=dx, losses=losses, **given))

    exact = np.moveaxis(x.astype(np.float64), axis, -1)
    k = (count / 8 + 48) * unit(dtype)
    counts = np.ones(across, bool)
    if kind == "SQUARED":
        difference = exact - np.moveaxis(target.astype(np.float64), axis, -1)
        rows, error = (difference**2).mean(axis=-1), k * (difference**2).mean(axis=-1)
        slope, slope_error = 2 * difference / count, 8 * unit(dtype) * np.abs(difference) / count
    else:
        counts = target != -7
        hot = np.arange(count) == np.where(counts, target, 0)[..., None]
        if kind == "HINGE":
            slack = margin - np.where(hot, exact, -exact)
            rows, error = np.maximum(slack, 0).sum(axis=-1), k * (margin + np.abs(exact)).sum(axis=-1)
            slope = np.where(slack >= 0, np.where(hot, -1.0, 1.0), 0.0)
            slope_error = np.zeros(slope.shape)
        else:
            below = exact.max(axis=-1, keepdims=True) - exact
            q = (1 - smoothing) * hot + smoothing / count
            total = np.exp(-below).sum(axis=-1, keepdims=True)
            p = np.exp(-below) / total
            rows = (q * below).sum(axis=-1) + np.log(total[..., 0])
            error = k * (1 + rows)
            slope, slope_error = p - q, k * (p * (1 + below) + q)
    rows, error = rows * counts, error * counts
    divisor = max(int(counts.sum()), 1) if mean else 1
    wanted = slope * counts[..., None] / divisor
    tiny = smallest(dtype)
    close(f"losses {kind}", losses, rows, error + 2 * unit(dtype) * np.abs(rows) + tiny)
    close(f"loss {kind}", result, rows.sum() / divisor, error.sum() / divisor
          + (4 * unit(dtype) + rows.size * 2.0**-53) * np.abs(rows).sum() / divisor + tiny)
    close(f"gradient of {kind}", np.moveaxis(dx, axis, -1), wanted,
          slope_error / divisor + 4 * unit(dtype) * np.abs(wanted) + tiny + rounding(dtype, wanted))


def activation_backward(api, case):
    dtype = np.dtype(case.one_of(*FLOATS))
    shape = case.shape(elements=4000)
    name = case.one_of("SIGN", "SIGMOID", "TANH", "RELU", "GELU", "SILU")
    saved, dy = case.input(dtype, shape, 3), case.input(dtype, shape)
    dx = case.output(dtype, shape)
    case.freeze()
    api.call("activation_backward", saved, dy, dx, options=api.options(
        "activation_backward", function=f"RUNG_ACTIVATION_FUNCTION_{name}"))
    x = saved.astype(np.float64)
    s, rest = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x))
    phi = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    below = np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), otypes=[float])(x)
    slope, size = {
        "SIGN": lambda: (np.abs(x) <= 1, 0),
        "SIGMOID": lambda: (x * (1 - x), 6 * np.abs(x * (1 - x))),
        "TANH": lambda: ((1 - x) * (1 + x), 6 * np.abs((1 - x) * (1 + x))),
        "RELU": lambda: (x > 0, 0),
        "GELU": lambda: (below + x * phi, 16 * (below + np.abs(x) * (1 + x * x / 8) * phi)),
        "SILU": lambda: (s + x * s * rest, 16 * (s + np.abs(x) * (1 + np.abs(x) / 8) * s * rest)),
    }[name]()
    wanted = dy.astype(np.float64) * slope
    close(f"activation_backward {name}", dx, wanted, np.abs(dy.astype(np.float64)) * size * unit(dtype)
          + smallest(dtype) * (1 + np.abs(dy)) + rounding(dtype, wanted))


def optimiser(api, case):
    dtype = np.dtype(case.one_of(*FLOATS))
    wide = wide_of(dtype)
    shape = case.shape(elements=4000)
    adam, momentum, clip = case.flag(), case.one_of(0.0, 0.9), case.one_of(0.0, 0.0, 1.0)
    nesterov = not adam and momentum != 0 and case.flag()
    decay, decoupled, step = case.one_of(0.0, 0.01), case.flag(), int(case.random.integers(1, 30))
    p, g = case.output(dtype, shape), case.input(dtype, shape)
    tensors = {}
    p[...] = case.values(dtype, shape)
    if adam or momentum:
        tensors["first_moment"] = case.output(wide, shape)
        tensors["first_moment"][...] = case.values(wide, shape)
    if adam:
        tensors["second_moment"] = case.output(wide, shape)
        tensors["second_moment"][...] = case.values(wide, shape) ** 2 + 1e-3
    if dtype == np.float16 and case.flag():
        tensors["master"] = case.output(wide, shape)
        tensors["master"][...] = case.values(wide, shape)
    before = {name: array.astype(np.float64) for name, array in tensors.items()}
    was = before["master"] if "master" in before else p.astype(np.float64)
    norm = tensors["norm"] = case.output(wide, ())
    case.freeze()
    rate = 0.05
    api.call("optimiser", p, g, options=api.options(
        "optimiser", kind="RUNG_OPTIMISER_ADAM" if adam else "RUNG_OPTIMISER_SGD", learning_rate=rate,
        weight_decay=decay, decoupled=int(decoupled), momentum=0.0 if adam else momentum, nesterov=int(nesterov),
        step=step, max_norm=clip, **tensors))

    u, tiny = unit(dtype), smallest(dtype)
    exact = g.astype(np.float64)
    length = math.sqrt(float((exact**2).sum()))
    close("norm", norm, length, (4 + exact.size) * 2.0**-53 * length + 4 * u * length)
    clipped = exact * (min(1.0, clip / length) if clip and length > 0 else 1.0)
    slope = clipped + (0 if decoupled else decay * was)
    size = np.abs(clipped) + np.abs(decay * was)
    kept = was * (1 - rate * decay) if decoupled else was
    more = exact.size if dtype == np.float64 else 0
    if adam:
        m = 0.9 * before["first_moment"] + (1 - 0.9) * slope
        v = 0.999 * before["second_moment"] + (1 - 0.999) * slope**2
        below = np.sqrt(v / (1 - 0.999**step)) + 1e-8
        along, terms = m / (1 - 0.9**step) / below, np.abs(before["first_moment"]) + size
        bound = (64 + 2 * more) * u * rate * terms / (1 - 0.9**step) / below * (1 + size / below)
        close("second moment", tensors["second_moment"], v, (16 + 2 * more) * u * (v + size**2) + tiny)
        close("first moment", tensors["first_moment"], m, (16 + more) * u * terms + tiny)
    else:
        m = momentum * before.get("first_moment", 0) + slope
        along = slope + momentum * m if nesterov else m
        terms = np.abs(before.get("first_moment", 0)) + size
        bound = (32 + 2 * more) * u * rate * terms
        if momentum:
            close("first moment", tensors["first_moment"], m, (16 + more) * u * terms + tiny)
    wanted = kept - rate * along
    bound = bound + 4 * u * np.abs(was) + tiny
    close("parameters", p, wanted, bound + rounding(dtype, wanted))
    if "master" in tensors:
        close("master", tensors["master"], wanted, bound)
