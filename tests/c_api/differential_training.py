# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of training operators: losses with their gradients, optimizer steps; invalid labels, ignored
rows, logits of -infinity."""
import math

import numpy as np
from comparison import close, same_bits
from rung_types import FLOATS, F64, arithmetic

IGNORED = -7


class Target:
    """The target of each row's loss: labels, or values."""

    def __init__(self, case, kind, dtype, shape, axis):
        across = shape[:axis] + shape[axis + 1:]
        self.ignores = case.flag(0.3) and kind != "SQUARED"
        if kind == "SQUARED":
            self.tensor = case.input(dtype, shape)
            return
        labels = case.random.integers(0, shape[axis], across)
        if self.ignores:
            labels = np.where(case.random.random(across) < 0.3, IGNORED, labels)
        if case.flag(0.1):
            labels = np.where(case.random.random(across) < 0.2, case.one_of(-1, shape[axis], 10**6), labels)
        self.tensor = case.input(case.index_type(), across, values=labels)
        self.labels = self.tensor.wide()
        self.counts = self.labels != IGNORED if self.ignores else np.ones(across, bool)
        self.wrong = self.counts & ((self.labels < 0) | (self.labels >= shape[axis]))


def loss(case):
    dtype = case.one_of(*FLOATS)
    while True:
        shape = case.shape(int(case.random.integers(1, 4)), elements=6000, middle=1 << 18)
        axis = int(case.random.integers(len(shape)))
        if shape[axis]:
            break
    kind = case.one_of("CROSS_ENTROPY", "CROSS_ENTROPY", "HINGE", "SQUARED")
    values = case.weighted(ordinary=5, special=1) if kind == "CROSS_ENTROPY" else "ordinary"
    target = Target(case, kind, dtype, shape, axis)
    x = case.input(dtype, shape, case.one_of(1.0, 10.0), values)
    kept, across = arithmetic(dtype), shape[:axis] + shape[axis + 1:]
    result = case.output(kept, ())
    given = {"kind": f"RUNG_LOSS_{kind}", "axis": axis, "reduction": case.one_of("RUNG_LOSS_MEAN", "RUNG_LOSS_SUM"),
             "smoothing": case.one_of(0.0, 0.125, 1.0) if kind == "CROSS_ENTROPY" else 0.0,
             "margin": case.one_of(0.0, 1.0, 0.5) if kind == "HINGE" else 1.0}
    if target.ignores:
        given["ignored_label"] = IGNORED
    if case.flag(0.7):
        given["dx"] = case.output(dtype, shape)
    if case.flag(0.7):
        given["losses"] = case.output(kept, across)
    case.description = f"loss {kind} {dtype} {shape} along {axis}, {values} values, {given}"
    case.call("loss", x, target.tensor, result, options="loss", given=given, in_place=[(given.get("dx"), x)])
    if case.flag(0.2):
        check_layouts(case, x, target.tensor, result, given)
    with np.errstate(all="ignore"):
        check_loss(dtype, kind, np.moveaxis(x.exact(), axis, -1), target, result, given, axis)


def check_layouts(case, x, target, result, given):
    """Expects the same bits for other strides of dx and losses, and without these tensors."""
    other = dict(given)
    for name in ("dx", "losses"):
        if name in given and not case.flag(0.3):
            other[name] = case.output(given[name].dtype, given[name].shape)
            other[name].prepare(0)
        else:
            other.pop(name, None)
    again = case.output(result.dtype, ())
    case.run(case.one_of(1, 2), "loss", (x, target, again), case.api.options("loss", **other))
    for name, one, two in (("result", result, again), ("dx", given.get("dx"), other.get("dx")),
                           ("losses", given.get("losses"), other.get("losses"))):
        if one is not None and two is not None:
            same_bits(f"{name} of a loss with another layout of dx and losses", one.stored, two.stored, one.dtype)


def check_loss(dtype, kind, x, target, result, given, axis):
    count, across, u = x.shape[-1], x.shape[:-1], dtype.unit
    k, tiny, kept = (count / 8 + 48) * u, dtype.arithmetic_normal, arithmetic(dtype)
    counts, wrong = np.ones(across, bool), np.zeros(across, bool)
    if kind == "SQUARED":
        difference = x - np.moveaxis(target.tensor.exact(), axis, -1)
        rows, error = (difference**2).mean(axis=-1), k * (difference**2).mean(axis=-1)
        slope, slope_error = 2 * difference / count, 8 * u * np.abs(difference) / count
    else:
        counts, wrong = target.counts, target.wrong
        hot = np.arange(count) == target.labels[..., None]
        make = hinge if kind == "HINGE" else cross_entropy
        rows, error, slope, slope_error = make(x, hot, given, k)
    spoilt = counts & (wrong | np.isnan(rows))
    rows, error = (np.where(counts, values, 0) for values in (rows, error))
    rows = np.where(spoilt, np.nan, rows)
    error = np.where(np.isfinite(rows), error, 0)
    size = np.where(np.isfinite(rows), np.abs(rows), 0)
    # Differences and sums may overflow although the result is finite.
    largest = np.where(np.isfinite(x), np.abs(x), 0).max(axis=-1)
    overflow = np.maximum(largest, size) > dtype.arithmetic_largest / 4
    overflow_of_sum = (error.sum() > dtype.arithmetic_largest) | overflow.any() | (size.sum() > kept.largest / 4)
    divisor = max(int(counts.sum()), 1) if given["reduction"].endswith("MEAN") else 1
    if "losses" in given:
        close(f"losses {kind}", given["losses"].wide(), rows, error + 2 * u * size + tiny, kept, overflow)
    close(f"loss {kind}", result.wide(), rows.sum() / divisor, error.sum() / divisor
          + (4 * u + rows.size * 2.0**-53) * size.sum() / divisor + tiny, kept, overflow_of_sum)
    if "dx" not in given:
        return
    wanted = np.where(counts[..., None], slope, 0) / divisor
    wanted = np.where(spoilt[..., None], np.nan, wanted)
    bound = slope_error / divisor + 4 * u * np.abs(wanted) + tiny
    close(f"gradient of {kind}", np.moveaxis(given["dx"].wide(), axis, -1), wanted, np.nan_to_num(bound), dtype,
          overflow[..., None])


def hinge(x, hot, given, k):
    slack = given["margin"] - np.where(hot, x, -x)
    slope = np.where(slack >= 0, np.where(hot, -1.0, 1.0), 0.0)
    return np.maximum(slack, 0).sum(axis=-1), k * (given["margin"] + np.abs(x)).sum(axis=-1), slope, np.zeros(x.shape)


def cross_entropy(x, hot, given, k):
    """Returns rows, slopes and their errors. An x of -infinity has p = 0, and an infinite loss unless q is 0."""
    count, smoothing = x.shape[-1], given["smoothing"]
    largest = x.max(axis=-1, keepdims=True)
    below = largest - x
    q = (1 - smoothing) * hot + smoothing / count
    total = np.exp(-below).sum(axis=-1, keepdims=True)
    p = np.exp(-below) / total
    terms = np.where(q == 0, 0, q * below)
    rows = terms.sum(axis=-1) + np.log(total[..., 0])
    spoilt = ~np.isfinite(largest[..., 0]) | np.isnan(x).any(axis=-1)
    rows = np.where(spoilt, np.nan, rows)
    slope_error = k * (np.where(p > 0, p * (1 + below), 0) + q)
    return rows, k * (1 + rows), p - q, slope_error


class Step:
    """An optimizer step with random options and state."""

    def __init__(self, case, dtype, shape):
        self.adam, self.momentum = case.flag(), case.one_of(0.0, 0.9)
        self.clip, self.decay = case.one_of(0.0, 0.0, 1.0), case.one_of(0.0, 0.01)
        self.nesterov = not self.adam and self.momentum != 0 and case.flag()
        self.decoupled, self.number, self.rate = case.flag(), int(case.random.integers(1, 30)), 0.05
        self.parameters, self.state = case.output(dtype, shape), {}
        self.parameters.start_with(case.values(dtype, shape))
        wide = arithmetic(dtype)
        if self.adam or self.momentum:
            self.add(case, "first_moment", wide, case.values(wide, shape))
        if self.adam:
            self.add(case, "second_moment", wide, case.values(wide, shape)**2 + 1e-3)
        if dtype.has_small_range and case.flag():
            self.add(case, "master", wide, case.values(wide, shape))
        self.norm = case.output(wide, ()) if case.flag(0.7) else None

    def add(self, case, name, dtype, values):
        self.state[name] = case.output(dtype, self.parameters.shape)
        self.state[name].start_with(values)

    def before(self, name):
        tensor = self.state.get(name)
        return 0 if tensor is None else tensor.dtype.wide(tensor.initial)

    def given(self):
        made = {"kind": "RUNG_OPTIMIZER_ADAM" if self.adam else "RUNG_OPTIMIZER_SGD", "learning_rate": self.rate,
                "weight_decay": self.decay, "decoupled": int(self.decoupled), "nesterov": int(self.nesterov),
                "momentum": 0.0 if self.adam else self.momentum, "step": self.number, "max_norm": self.clip,
                **self.state}
        return made if self.norm is None else {**made, "norm": self.norm}


def optimizer(case):
    dtype, shape = case.one_of(*FLOATS), case.shape(elements=4000, middle=1 << 18)
    step = Step(case, dtype, shape)
    gradients = case.input(dtype, shape, case.one_of(1.0, 1.0, 1e-3), case.weighted(ordinary=5, tiny=0.5))
    given = step.given()
    case.description = f"optimizer {dtype} {shape}, {given}"
    case.call("optimizer", step.parameters, gradients, options="optimizer", given=given)
    with np.errstate(all="ignore"):
        check_step(step, dtype, gradients.wide())


def check_step(step, dtype, exact):
    u, tiny, kept = dtype.unit, dtype.arithmetic_normal, arithmetic(dtype)
    more = exact.size if dtype is F64 else 0
    length = math.sqrt(float((exact.astype(np.longdouble)**2).sum()))
    if step.norm is not None:
        close("norm", step.norm.wide(), length, (4 + more) * u * length + tiny, kept)
    was = step.before("master") if "master" in step.state else dtype.wide(step.parameters.initial)
    clipped = exact * (min(1.0, step.clip / length) if step.clip and length > 0 else 1.0)
    more = more if step.clip else 0
    slope = clipped + (0 if step.decoupled else step.decay * was)
    size = np.abs(clipped) + np.abs(step.decay * was)
    start = was * (1 - step.rate * step.decay) if step.decoupled else was
    first = step.before("first_moment")
    if step.adam:
        m = 0.9 * first + (1 - 0.9) * slope
        v = 0.999 * step.before("second_moment") + (1 - 0.999) * slope**2
        below = np.sqrt(v / (1 - 0.999**step.number)) + 1e-8
        along, terms = m / (1 - 0.9**step.number) / below, np.abs(first) + size
        bound = (64 + 2 * more) * u * step.rate * terms / (1 - 0.9**step.number) / below * (1 + size / below)
        close("second moment", step.state["second_moment"].wide(), v, (16 + 2 * more) * u * (v + size**2) + tiny, kept)
        close("first moment", step.state["first_moment"].wide(), m, (16 + more) * u * terms + tiny, kept)
    else:
        m = step.momentum * first + slope
        along = slope + step.momentum * m if step.nesterov else m
        terms = np.abs(first) + size
        bound = (32 + 2 * more) * u * step.rate * terms
        if step.momentum:
            close("first moment", step.state["first_moment"].wide(), m, (16 + more) * u * terms + tiny, kept)
    wanted = start - step.rate * along
    bound = bound + 4 * u * np.abs(was) + tiny
    close("parameters", step.parameters.wide(), wanted, bound, dtype)
    if "master" in step.state:
        close("master", step.state["master"].wide(), wanted, bound, kept)
