# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of elementwise operators: elementwise, activation_backward, transpose. Values include special
ones, for which each function is defined."""
import math

import numpy as np
from activations import gelu, normal_distribution
from comparison import Wrong, close, equal, same_bits
from rung_types import E4M3, E5M2, FLOATS, I32, I64, INTEGERS, U8, arithmetic

ARITY = {"ADD": 2, "SUB": 2, "MUL": 2, "DIV": 2, "AXPY": 2, "FMA": 3, "RELU": 1, "SIGMOID": 1, "TANH": 1, "GELU": 1,
         "EXP": 1, "SILU": 1, "SIGN": 1}
OF_INTEGERS = ("ADD", "SUB", "MUL", "FMA", "RELU")


def drawn_kind(case):
    return case.weighted(ordinary=5, special=3, huge=0.5, tiny=0.5)


def broadcast_shape(case, shape):
    """Returns a shape that NumPy broadcasts to `shape`: some extents are 1, some leading axes are omitted."""
    if case.flag(0.6):
        return shape
    made = tuple(1 if case.flag(0.4) else n for n in shape)
    return made[int(case.random.integers(len(made) + 1)):]


def elementwise(case):
    integers = case.flag(0.2)
    dtype = case.one_of(I32, I64, U8) if integers else case.one_of(*FLOATS)
    name = case.one_of(*OF_INTEGERS) if integers else case.one_of(*ARITY)
    shape, kind = case.shape(), drawn_kind(case)
    scale = case.one_of(1.0, 3.0, 30.0, 90.0, 700.0 if dtype.name == "f64" else 90.0)
    inputs = [case.input(dtype, broadcast_shape(case, shape), scale, kind) for _ in range(ARITY[name])]
    z = case.output(dtype, shape)
    given = {"function": f"RUNG_ELEMENTWISE_{name}"}
    alpha = case.one_of(0.5, -2.0, 1.7)
    if name == "AXPY":
        given["alpha"] = alpha
    case.description = f"elementwise {name} {dtype} {shape}, {kind} values around {scale}"
    operands = inputs + [None] * (3 - len(inputs))
    case.call("elementwise", *operands, z, options="elementwise", given=given, in_place=[(z, x) for x in inputs])
    if z.size == 0:
        return
    with np.errstate(all="ignore"):
        if integers:
            check_integers(name, z, *(tensor.stored for tensor in inputs))
        elif name in ("ADD", "SUB", "MUL", "DIV", "RELU", "SIGN"):
            check_exact(name, dtype, z, *inputs)
        else:
            check_rounded(name, dtype, z, float(np.float32(alpha)) if dtype.name != "f64" else alpha, *inputs)


def check_integers(name, z, x, y=0, w=0):
    wanted = {"ADD": lambda: x + y, "SUB": lambda: x - y, "MUL": lambda: x * y, "FMA": lambda: x * y + w,
              "RELU": lambda: np.maximum(x, 0)}[name]()
    equal(f"{name} of integers", z.stored, np.broadcast_to(wanted.astype(z.stored.dtype), z.shape))


def check_exact(name, dtype, z, x, y=None):
    """Expects IEEE's result of the arithmetic, rounded once more for f16 and bf16: every bit, including the sign of
    zero."""
    kept = arithmetic(dtype).storage
    x, y = x.wide().astype(kept), None if y is None else y.wide().astype(kept)
    wanted = {"ADD": lambda: x + y, "SUB": lambda: x - y, "MUL": lambda: x * y, "DIV": lambda: x / y,
              "RELU": lambda: np.where(x < 0, kept.type(0), x), "SIGN": lambda: np.where(x == 0, x, np.sign(x))}[name]()
    same_bits(f"{name} and IEEE's", z.stored, np.broadcast_to(dtype.stored(wanted), z.shape), dtype)


def check_rounded(name, dtype, z, alpha, x, y=None, w=None):
    """Expects an error of a few units in the last place; for fused multiply-adds of one rounding."""
    x, y, w = (None if tensor is None else tensor.exact() for tensor in (x, y, w))
    unit = dtype.unit
    last_places = {"EXP": 4, "TANH": 4, "SIGMOID": 4, "SILU": 5, "GELU": 8}
    if name in ("AXPY", "FMA"):
        product = alpha * x if name == "AXPY" else x * y
        wanted = product + (y if name == "AXPY" else w)
        # Long double rounds the product of two f64 numbers.
        bound = unit * np.abs(wanted) + np.abs(product) * 2.0**-63 + arithmetic(dtype).subnormal
    else:
        wanted = {"EXP": lambda: np.exp(x), "TANH": lambda: np.tanh(x),
                  "SIGMOID": lambda: 1 / (1 + np.exp(-x)), "GELU": lambda: gelu_of(x),
                  "SILU": lambda: np.where(np.isneginf(x), 0, x / (1 + np.exp(-x)))}[name]()
        relative = last_places[name] * 2 * unit + (2.0**-16 if dtype.has_small_range and len(name) != 3
                                                   and name != "TANH" else 0)
        # One unit of the smallest subnormal number; results of sigmoid and silu below `lost` may be 0.
        lost = {"SIGMOID": dtype.arithmetic_normal, "SILU": dtype.arithmetic_normal * 2.0**10}.get(name, 0)
        bound = relative * np.abs(wanted) + arithmetic(dtype).subnormal * 2
        if name == "GELU" and dtype.name == "f64":  # this reference of Phi has only f64 precision
            bound += 8 * unit * np.abs(wanted) + 2 * dtype.subnormal * np.abs(without_infinity(x))
        bound = np.where(np.abs(wanted) < lost, bound + np.abs(wanted), bound)
    close(f"{name} {dtype}", z.wide(), np.broadcast_to(wanted, z.shape), bound, dtype)


def gelu_of(x):
    return np.where(np.isposinf(x), x, gelu(x))


def activation_backward(case):
    dtype, kind = case.one_of(*FLOATS), drawn_kind(case)
    shape = case.shape(elements=8000)
    name = case.one_of("SIGN", "SIGMOID", "TANH", "RELU", "GELU", "SILU")
    saved, dy = case.input(dtype, shape, 3, kind), case.input(dtype, shape, 1.0, drawn_kind(case))
    dx = case.output(dtype, shape)
    case.description = f"activation_backward {name} {dtype} {shape}, {kind} values"
    case.call("activation_backward", saved, dy, dx, options="activation_backward",
              given={"function": f"RUNG_ACTIVATION_FUNCTION_{name}"}, in_place=[(dx, dy), (dx, saved)])
    with np.errstate(all="ignore"):
        check_slope(name, dtype, saved.wide(), dy.wide(), dx)


def check_slope(name, dtype, x, dy, dx):
    s, rest = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x))
    phi = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    below = normal_distribution(x)
    y = x.astype(np.longdouble) if dtype.name == "f64" else x
    slope, size = {
        "SIGN": lambda: (np.abs(x) <= 1, 0),
        "SIGMOID": lambda: (y * (1 - y), 6 * np.abs(y * (1 - y))),
        "TANH": lambda: ((1 - y) * (1 + y), 6 * np.abs((1 - y) * (1 + y))),
        "RELU": lambda: (x > 0, 0),
        "GELU": lambda: (below + without_infinity(x) * phi,
                         16 * (below + np.abs(without_infinity(x)) * (1 + x * x / 8) * phi)),
        "SILU": lambda: (s + without_infinity(x) * s * rest,
                         16 * (s + np.abs(without_infinity(x)) * (1 + np.abs(x) / 8) * s * rest)),
    }[name]()
    selects = name in ("SIGN", "RELU")
    wanted = np.where(np.isnan(x), np.nan, np.where(slope, dy, 0) if selects else dy * slope)
    finite_dy = np.where(np.isfinite(dy), np.abs(dy), 0)
    bound = 0 if selects else np.nan_to_num(finite_dy * size * dtype.unit) + dtype.arithmetic_normal * (1 + finite_dy)
    # A slope that overflows in the computation, or a slope near 0 times an infinite dy.
    free = (np.abs(x) > 1) & (np.abs(slope) > dtype.arithmetic_largest / 4) & np.isfinite(x) & ~np.isnan(dy)
    vague = ~np.isnan(x) & np.isinf(dy) & (np.abs(slope) < 2 * dtype.arithmetic_normal) & (not selects)
    got = dx.wide()
    close(f"activation_backward {name}", got, wanted, bound, dtype, free | vague)
    if np.isfinite(got[vague & (slope != 0)]).any():
        raise Wrong(f"activation_backward {name}: an infinite dy gives a finite result")


def without_infinity(x):
    """Returns x with infinities replaced by 0, for limits in which a density of 0 is multiplied by x."""
    return np.where(np.isinf(x), 0, x)


def transpose(case):
    dtype = case.one_of(*FLOATS, *INTEGERS, E4M3, E5M2)
    shape = case.shape()
    order = [int(axis) for axis in case.random.permutation(len(shape))]
    x = case.input(dtype, shape, 3, drawn_kind(case))
    y = case.output(dtype, tuple(shape[axis] for axis in order))
    given = {"order": order}
    if len(shape) >= 2 and case.flag(0.2):
        order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        given, y = {}, case.output(dtype, tuple(shape[axis] for axis in order))
    case.description = f"transpose {dtype} {shape} by {order}"
    case.call("transpose", x, y, options="transpose", given=given)
    if not np.array_equal(y.stored.view(dtype.bits), x.stored.view(dtype.bits).transpose(order)):
        raise Wrong("transpose: other bits than NumPy's")
