# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of norm and norm_backward: the definition, with more digits than the arithmetic has, and the
bounds of norm.hpp and norm_backward.hpp; rows with NaN, infinities, and sums that overflow."""
import math

import numpy as np
from comparison import Wrong, close, equal, first_place
from rung_types import F32, F64, FLOATS, arithmetic


class Layout:
    """The normalized axes of a random shape. `rows` converts an array to rows x columns."""

    def __init__(self, case):
        self.shape = self.drawn_shape(case)
        rank = len(self.shape)
        self.count = int(case.one_of(1, 1, case.random.integers(1, rank + 1)))
        self.first = int(case.one_of(rank - self.count, case.random.integers(0, rank - self.count + 1)))
        self.given = {"axis": self.first - (rank if case.flag() else 0), "axes": self.count}
        self.columns_shape = self.shape[self.first:self.first + self.count]
        self.rows_shape = self.shape[:self.first] + self.shape[self.first + self.count:]
        self.kept_shape = self.rows_shape
        if case.flag():
            self.kept_shape = self.shape[:self.first] + (1,) * self.count + self.shape[self.first + self.count:]
        self.row_count, self.columns = math.prod(self.rows_shape), math.prod(self.columns_shape)

    @staticmethod
    def drawn_shape(case):
        if case.middle and case.flag(0.7):
            # Few long rows, or many short rows.
            long, few = int(case.random.integers(3000, 20001)), int(case.random.integers(1, 20))
            return case.one_of((few, long), (long, few), (few, long // 64, 64))
        return case.shape(None, 6000, 1 << 19)

    def rows(self, array):
        moved = np.moveaxis(array, range(self.first, self.first + self.count), range(-self.count, 0))
        return moved.reshape(self.row_count, self.columns)

    def statistics(self, array):
        return array.reshape(self.row_count, 1)


def drawn_kind(case):
    return case.weighted(ordinary=4, offset=8 if case.middle else 2, special=2, huge=1, tiny=0.5)


class Statistics:
    """Mean, 1 / standard deviation and z of rows, with their bounds; for sums that overflow, the results in
    norm.hpp."""

    def __init__(self, s, epsilon, rms, dtype):
        n, largest, wide = s.shape[1], dtype.arithmetic_largest, np.longdouble if dtype is F64 else np.float64
        self.unit, self.rms, self.normal = dtype.unit, rms, dtype.arithmetic_normal
        self.terms = n / 8 + 32
        self.k = self.terms * dtype.unit
        with np.errstate(all="ignore"):
            s = s.astype(wide)
            self.finite = np.isfinite(s).all(axis=1, keepdims=True)
            # Long double has too few digits for the mean of large numbers: the mean of the distances from it is added.
            about = np.zeros((len(s), 1)) if rms else s.mean(axis=1, keepdims=True)
            about = np.where(self.finite, np.clip(about, -largest, largest), about).astype(np.float64)
            distances = s - about
            rest = 0 * about if rms else distances.mean(axis=1, keepdims=True)
            distances, self.mean = distances - rest, about + rest
            self.size_of_mean = np.abs(s).mean(axis=1, keepdims=True)
            squares = (distances**2).sum(axis=1, keepdims=True)
            # A sum so close to the largest number that rounding decides may overflow or not.
            near, most = self.k * 4 + 1e-6, 2.0**(960 if dtype is F64 else 100)
            self.overflows = self.finite & ((squares > largest * (1 + near)) | (np.abs(self.mean) > most * (1 + near)))
            may = (squares * (1 + n / 64) > largest * (1 - near)) | (np.abs(self.mean) > most * (1 - near))
            self.may_overflow = self.finite & may & ~self.overflows
            # Squares below the smallest normal number may underflow, which only a larger epsilon hides.
            self.vanishes = self.finite & (squares / n + epsilon < dtype.arithmetic_normal / self.k)
            self.rstd = np.where(self.overflows, 0, 1 / np.sqrt(squares / n + epsilon))
            if not rms:
                distances, self.mean, self.rstd = (np.where(self.finite, v, np.nan)
                                                   for v in (distances, self.mean, self.rstd))
            self.set(distances)

    def set(self, distances):
        """Sets z and the quantities of the bounds, from the statistics."""
        self.size = self.rstd * self.size_of_mean
        self.t = self.k * self.size
        self.z = np.where(self.overflows, 0, distances * self.rstd)

    def least(self, every, corrected):
        """Returns the bound of every rung, or the bound of the corrected mean where it applies and is smaller."""
        if self.rms:
            return np.where(self.finite, every, 0)
        holds = 2 * self.k * (1 + self.t**2) < 0.25
        return np.where(self.finite, np.where(holds, np.minimum(every, corrected), every), 0)

    def z_error(self):
        k, size, t, z = self.k, self.size, self.t, np.abs(self.z)
        return self.least(k * (z + size + z * t * size), 2 * k * (z + 1 + t * (1 + z * t)))

    def mean_error(self):
        k, t = self.k, self.t
        corrected = np.where(self.rstd > 0, 2 * k * (1 + t) / self.rstd + self.unit * np.abs(self.mean), np.inf)
        return self.least(k * self.size_of_mean, corrected) + 2 * self.terms * self.normal

    def rstd_error(self):
        k, size, t = self.k, self.size, self.t
        return self.rstd * self.least(k * (1 + t * size) * (1 + t), 2 * k * (1 + t**2))


def never_nan(what, values, rows):
    """Asserts that rows of finite elements give no NaN, whether they overflow or not."""
    wrong = np.isnan(values) & rows
    if wrong.any():
        raise Wrong(f"{what}: NaN at {first_place(wrong)}, of finite elements that may overflow")


def norm(case):
    layout, dtype = Layout(case), case.one_of(*FLOATS, F64)
    rms, epsilon = case.flag(), case.one_of(1e-5, 1e-3, 1e-12, 0.0)
    weight_type = F32 if dtype.has_small_range and case.flag() else dtype
    kind = drawn_kind(case)
    x = case.input(dtype, layout.shape, case.one_of(1.0, 100.0), kind)
    y = case.output(dtype, layout.shape)
    given = {"epsilon": epsilon, **layout.given}
    if case.flag(0.6):
        given["gamma"] = case.input(weight_type, layout.columns_shape)
    if case.flag():
        given["beta"] = case.input(weight_type, layout.columns_shape)
    residual = None
    if case.flag(0.3):
        residual = given["residual"] = case.input(dtype, layout.shape)
        if case.flag(0.7):
            given["sum"] = case.output(dtype, layout.shape)
    if case.flag(0.4):
        given["rstd"] = case.output(arithmetic(dtype), layout.kept_shape)
        if not rms:
            given["mean"] = case.output(arithmetic(dtype), layout.kept_shape)
    function = "rms_norm" if rms else "layer_norm"
    case.description = f"{function} {dtype} {layout.shape}, {kind} values, epsilon {epsilon}, {layout.given}"
    pairs = [(result, source) for result in (y, given.get("sum")) for source in (x, residual)]
    case.call(function, x, y, options="norm", given=given, in_place=pairs)
    if layout.row_count == 0 or layout.columns == 0:
        return

    with np.errstate(all="ignore"):
        s = x.wide()
        if residual is not None:
            total = s + residual.wide()
            s = dtype.rounded(total if dtype.name == "f64" else total.astype(np.float32))
        if "sum" in given:
            equal("sum is x + residual", given["sum"].wide(), s)
        s = layout.rows(s)
        of = Statistics(s, epsilon, rms, dtype)
        gamma = layout_weights(given.get("gamma"), 1.0)
        beta = layout_weights(given.get("beta"), 0.0)
        wanted = of.z * gamma + beta
        bound = of.z_error() * np.abs(gamma) + 2 * of.unit * np.abs(wanted)
        bound = np.where(of.overflows, 2 * of.unit * np.abs(beta), bound) + dtype.arithmetic_normal
        vague, got = of.may_overflow | of.vanishes, layout.rows(y.wide())
        never_nan(function, got, of.may_overflow & ~of.vanishes)
        close(function, got, wanted, bound, dtype, vague | ~np.isfinite(bound) & ~np.isnan(wanted))
        if "rstd" in given:
            error = of.rstd_error()
            close(f"rstd of {function}", layout.statistics(given["rstd"].wide()), of.rstd, error, arithmetic(dtype),
                  vague | ~np.isfinite(error) & ~np.isnan(of.rstd))
        if "mean" in given:
            close(f"mean of {function}", layout.statistics(given["mean"].wide()), of.mean, of.mean_error(),
                  arithmetic(dtype))


def layout_weights(tensor, otherwise):
    """Returns gamma or beta as one row."""
    return np.full((1, 1), otherwise) if tensor is None else tensor.exact().reshape(1, -1)


def norm_backward(case):
    layout, dtype = Layout(case), case.one_of(*FLOATS)
    rms, epsilon = case.flag(), case.one_of(1e-5, 1e-3)
    weight_type = F32 if dtype.has_small_range and case.flag() else dtype
    kind = drawn_kind(case)
    dy = case.input(dtype, layout.shape)
    x = case.input(dtype, layout.shape, case.one_of(1.0, 100.0), kind)
    dx = case.output(dtype, layout.shape)
    given = {"epsilon": epsilon, **layout.given}
    if case.flag(0.6):
        given["gamma"] = case.input(weight_type, layout.columns_shape)
    for name in ("dgamma", "dbeta"):
        if case.flag(0.7):
            given[name] = case.output(weight_type, layout.columns_shape)
    with np.errstate(all="ignore"):
        of = Statistics(layout.rows(x.wide()), epsilon, rms, dtype) if layout.columns else None
        has_statistics = of is not None and case.flag(0.4)
        if has_statistics:
            kept = arithmetic(dtype)
            given["rstd"] = case.input(kept, layout.kept_shape, values=of.rstd.reshape(layout.kept_shape))
            of.rstd = layout.statistics(given["rstd"].exact())
            if not rms:
                given["mean"] = case.input(kept, layout.kept_shape, values=of.mean.reshape(layout.kept_shape))
                of.mean = layout.statistics(given["mean"].exact())
            of.set(layout.rows(x.exact()) - of.mean)
            of.z = np.where(of.rstd == 0, np.where(of.finite, 0, of.z), of.z)
    function = "rms_norm_backward" if rms else "layer_norm_backward"
    case.description = f"{function} {dtype} {layout.shape}, {kind} values, {layout.given}, statistics {has_statistics}"
    case.call(function, dy, x, dx, options="norm_backward", given=given, in_place=[(dx, dy), (dx, x)])
    if layout.columns == 0:
        return
    with np.errstate(all="ignore"):
        check_gradients(layout, dtype, of, dy, dx, given, function)


def check_gradients(layout, dtype, of, dy, dx, given, function):
    n, u = layout.columns, dtype.unit
    slope = layout.rows(dy.exact())
    g = slope * layout_weights(given.get("gamma"), 1.0)
    z, computed = of.z, "rstd" not in given
    # The naive rung, which runs for strided layouts, keeps the mean of f64 in long double.
    z_error = of.z_error() + (2.0**-62 * of.size if dtype is F64 else 0) if computed else 3 * u * np.abs(z)
    # In a row with rstd 0, z is 0 or NaN.
    z_error = np.where(of.overflows | ~of.finite, 0, z_error)
    means = [values.mean(axis=1, keepdims=True) if layout.row_count else values
             for values in (g, g * z, np.abs(g), np.abs(g * z), np.abs(g) * z_error)]
    mean_g, mean_gz, mean_g_size, mean_gz_size, mean_g_error = means
    if of.rms:
        mean_g, mean_g_size = 0 * mean_g, 0 * mean_g_size
    wanted = of.rstd * (g - mean_g - z * mean_gz)
    terms = np.abs(g) + mean_g_size + np.abs(z) * mean_gz_size
    rstd_error = of.rstd_error() if computed else 0
    bound = (3 * of.k * of.rstd + rstd_error) * terms + of.rstd * (z_error * np.abs(mean_gz) + np.abs(z) * mean_g_error)
    wanted = np.where(of.finite, np.where(of.rstd == 0, 0, wanted), np.nan)
    vague = of.may_overflow | of.vanishes
    # A product with z that underflows is multiplied by rstd, which may be large.
    tiny = dtype.arithmetic_normal * (4 + np.where(np.isfinite(of.rstd), of.rstd, 0) * (4 + np.abs(z)))
    if layout.row_count and n:
        got = layout.rows(dx.wide())
        never_nan(function, got, of.may_overflow & ~of.vanishes)
        close(function, got, wanted, np.where(of.rstd == 0, 0, bound) + tiny, dtype,
              vague | ~np.isfinite(bound) & of.finite)
    rows = (layout.row_count / 8 + 96) * u
    normal = dtype.arithmetic_normal * (layout.row_count + 1)
    for name, values, error in (("dgamma", slope * z, np.abs(slope) * z_error), ("dbeta", slope, 0 * slope)):
        if name in given:
            size, tensor = np.abs(values).sum(axis=0), given[name]
            bound = np.nan_to_num(rows * size + error.sum(axis=0)) + normal
            free = bool(vague.any()) if name == "dgamma" and layout.row_count else False
            close(f"{name} of {function}", tensor.wide().reshape(-1), values.sum(axis=0), bound, tensor.dtype, free)
