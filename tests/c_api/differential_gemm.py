# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of gemm and gemm_grouped: products with every epilogue and pair of types, with the bound of
gemm.hpp; NaN in memory that must not be read, NaN and infinities in operands."""
import ctypes

import numpy as np
from activations import NAMES, activated
from comparison import Wrong, close, same_bits
from rung_types import BF16, E4M3, E5M2, F16, F32, F64, I8, I32

PAIRS = ((F32, F32), (F64, F64), (BF16, BF16), (BF16, F32), (F16, F16), (F16, F32), (I8, I32), (E4M3, F32),
         (E4M3, F16), (E5M2, BF16))


class Product:
    """Extents, stored operands, and the operands of the epilogue."""

    def __init__(self, case):
        self.dtype, self.out = case.one_of(*PAIRS)
        self.bytes, self.whole = self.dtype.itemsize == 1 and self.dtype is not I8, self.dtype is I8
        self.m, self.n, self.k = extents(case)
        self.batch = case.one_of((), (), (case.extent(2 if case.middle else 4),))
        self.turned = {"transpose_a": case.flag(), "transpose_b": case.flag()}
        self.kind = "ordinary" if self.whole or self.bytes else case.weighted(ordinary=5, special=1.5, huge=0.3)
        right = case.one_of(E4M3, E5M2) if self.bytes else self.dtype
        self.a = self.operand(case, self.dtype, self.m, self.k, self.turned["transpose_a"], self.kind)
        self.b = self.operand(case, right, self.k, self.n, self.turned["transpose_b"], "ordinary")
        self.c = case.output(self.out, self.batch + (self.m, self.n))
        numbers = (1.0, 2.0, -3.0) if self.whole else (1.0, 1.0, 0.5, -2.0)
        self.alpha, self.beta = case.one_of(0.0, *numbers * 4), case.one_of(0.0, 0.0, 1.0, -2.0 if self.whole else -0.5)
        if self.beta:
            self.c.start_with(case.values(self.out, self.c.shape))
        self.activation = case.one_of("NONE", "RELU") if self.whole else case.one_of(*NAMES)

    def operand(self, case, dtype, rows, columns, turned, kind):
        batch = case.one_of(self.batch, self.batch, (), (1,)) if self.batch else ()
        return case.input(dtype, batch + ((columns, rows) if turned else (rows, columns)), 1.0, kind)

    def given(self, case):
        made = {"alpha": self.alpha, "beta": self.beta, "activation": f"RUNG_ACTIVATION_{self.activation}",
                **{name: int(value) for name, value in self.turned.items()}}
        for name in ("bias", "residual"):
            if case.flag(0.3):
                made[name] = case.input(self.out, case.one_of((self.n,), (self.m, 1), (self.m, self.n)))
        if self.bytes and case.flag():
            blocks = -(-self.k // 128)
            made["scale_a"] = case.input(F32, (self.m, blocks))
            made["scale_b"] = case.input(F32, (blocks, -(-self.n // 128)))
        return made

    def check(self, given):
        dtype, out = self.out, self.out
        left, right = self.a.wide(), self.b.wide()
        left = np.swapaxes(left, -1, -2) if self.turned["transpose_a"] else left
        right = np.swapaxes(right, -1, -2) if self.turned["transpose_b"] else right
        if "scale_a" in given:
            of_k, of_n = np.arange(self.k) // 128, np.arange(self.n) // 128
            left = left * given["scale_a"].wide()[:, of_k]
            right = right * given["scale_b"].wide()[of_k][:, of_n]
        if self.whole:
            self.check_integers(given, left.astype(np.int64), right.astype(np.int64))
            return
        if self.alpha == 0:
            left, right = np.zeros(left.shape), np.zeros(right.shape)
        with np.errstate(all="ignore"):
            finite = [np.abs(np.where(np.isfinite(values), values, 0)) for values in (left, right)]
            wanted, largest = self.alpha * (left @ right), finite[0] @ finite[1]
            size = abs(self.alpha) * largest
            if self.beta:
                before = self.beta * dtype.wide(self.c.initial)
                wanted, size = wanted + before, size + np.abs(before)
            if "bias" in given:
                wanted, size = wanted + given["bias"].wide(), size + np.abs(given["bias"].wide())
            bound = (self.k + 4) * dtype.unit * size + (self.k + 4) * dtype.arithmetic_normal
            if self.bytes:
                bound = bound + 2.0**-9 * size
            free = np.maximum(size, largest) > dtype.arithmetic_largest / 2
            free |= (abs(self.alpha) * finite[0]).max(axis=-1, keepdims=True, initial=0) > dtype.arithmetic_largest / 2
            bound = np.where(np.isfinite(wanted), bound, 0)
            wanted, bound = activated(self.activation, wanted, bound, dtype)
            if "residual" in given:
                more = given["residual"].wide()
                wanted, bound = wanted + more, bound + 2 * dtype.unit * (np.abs(wanted) + np.abs(more))
            close(f"gemm {self.m}x{self.n}x{self.k}", self.c.wide(), np.broadcast_to(wanted, self.c.shape), bound, out,
                  free)

    def check_integers(self, given, left, right):
        wanted = int(self.alpha) * (left @ right)
        if self.beta:
            wanted = wanted + int(self.beta) * self.c.initial.astype(np.int64)
        if "bias" in given:
            wanted = wanted + given["bias"].stored.astype(np.int64)
        fits = np.abs(wanted) < 2**31
        wanted = np.maximum(wanted, 0) if self.activation == "RELU" else wanted
        if "residual" in given:
            wanted = wanted + given["residual"].stored.astype(np.int64)
            fits &= np.abs(wanted) < 2**31
        close("gemm of i8", self.c.stored, wanted, 0, I32, ~fits)


def extents(case):
    """Returns the extents of a small product; of medium-sized cases square, with a long dot product, or a thin
    strip."""
    if not case.middle:
        return [case.extent(120) for _ in range(3)]
    form = case.one_of("square", "long", "wide")
    most = {"square": (400, 400, 400), "long": (24, 24, 20000), "wide": (8, 20000, 60)}[form]
    made = [max(1, int(case.random.integers(n // 8, n + 1))) for n in most]
    return made if case.flag() else [made[1], made[0], made[2]]


def gemm(case):
    if case.flag(0.05):
        grouped(case)
        return
    product = Product(case)
    given = product.given(case)
    more = [name for name in given if name in ("bias", "residual", "scale_a")]
    case.description = (f"gemm {product.dtype} to {product.out} {product.m}x{product.n}x{product.k} batch "
                        f"{product.batch} {product.turned}, alpha {product.alpha}, beta {product.beta}, "
                        f"{product.activation}, {product.kind} values, with {more}")
    case.call("gemm", product.a, product.b, product.c, options="gemm", given=given)
    if product.c.size:
        product.check(given)


def grouped(case):
    """Expects a list of products to give the results of single products: bitwise on a CPU."""
    dtype = case.one_of(F32, F64, BF16)
    extents_of = [[case.extent(60) for _ in range(3)] for _ in range(case.random.integers(0, 5))]
    operands = [(case.input(dtype, (m, k)), case.input(dtype, (k, n)), case.output(dtype, (m, n)))
                for m, n, k in extents_of]
    case.description = f"gemm_grouped {dtype} {extents_of}"
    api, problem = case.api, case.api.types["rung_gemm_problem"]
    options = api.options("gemm", alpha=0.5)
    kept = [[api.tensor(tensor) for tensor in three] for three in operands]
    pointers = [problem(*(ctypes.pointer(made) for made in three), None, None) for three in kept]
    for three in operands:
        three[2].prepare(0)
    context = api.contexts[case.one_of(1, 2)]
    status = api.library.rung_gemm_grouped(context, (problem * max(1, len(pointers)))(*pointers), ctypes.c_size_t(
        len(pointers)), ctypes.byref(options))
    case.calls += 1
    if status != 0:
        raise Wrong(f"gemm_grouped: status {status}, {api.library.rung_last_error().decode()}")
    for a, b, c in operands:
        if c.damage() is not None:
            raise Wrong(f"gemm_grouped writes outside of {c}")
        together = c.stored.copy()
        case.call("gemm", a, b, c, options="gemm", given={"alpha": 0.5})
        same_bits(f"{c} in a list and alone", together, c.stored, dtype)
