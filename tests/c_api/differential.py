# SPDX-License-Identifier: Apache-2.0
"""Random calls of every operator on arrays of random types, shapes, strides and values, compared with NumPy in double
precision under the bounds that the headers promise; and relations between calls that need no reference. Arrays lie
within canaries, which no call may touch.

usage: differential.py SOURCE LIBRUNG SECONDS [--seed N] OPERATOR...
"""
import argparse
import math
import sys
import time

import numpy as np
from against_numpy import Api
from differential_attention import attention  # noqa: F401, found by name
from differential_conv import conv, conv_backward_data, conv_backward_filter  # noqa: F401, found by name
from differential_images import image, pool, pool_backward, stencil  # noqa: F401, found by name
from differential_training import activation_backward, loss, optimiser  # noqa: F401
from random_case import FLOATS, INTEGERS, Case, Wrong, close, same, smallest, unit


def gemm(api, case):
    dtype = np.dtype(case.one_of(*FLOATS))
    batch = case.one_of((), (), (case.extent(4),))
    m, n, k = (case.extent(120) for _ in range(3))
    ta, tb = case.flag(), case.flag()
    a = case.input(dtype, batch + ((k, m) if ta else (m, k)))
    b = case.input(dtype, batch + ((n, k) if tb else (k, n)))
    c = case.output(dtype, batch + (m, n))
    beta = case.one_of(0.0, 0.0, 1.0, -0.5)
    c[...] = case.values(dtype, c.shape) if beta else np.nan
    before = c.astype(np.float64)
    alpha = case.one_of(1.0, 0.5, -2.0)
    case.freeze()
    api.call("gemm", a, b, c, options=api.options("gemm", alpha=alpha, beta=beta, transpose_a=int(ta),
                                                  transpose_b=int(tb)))
    left, right = a.astype(np.float64), b.astype(np.float64)
    left = np.swapaxes(left, -1, -2) if ta else left
    right = np.swapaxes(right, -1, -2) if tb else right
    terms = abs(alpha) * (np.abs(left) @ np.abs(right)) + (abs(beta) * np.abs(before) if beta else 0)
    close(f"gemm {m}x{n}x{k}", c, alpha * (left @ right) + (beta * before if beta else 0),
          (k + 4) * unit(dtype) * terms)


def elementwise(api, case):
    dtype = np.dtype(case.one_of(*FLOATS))
    shape = case.shape()
    functions = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "RELU": lambda x, y: np.maximum(x, 0),
                 "TANH": lambda x, y: np.tanh(x), "SIGMOID": lambda x, y: 1 / (1 + np.exp(-x)),
                 "EXP": lambda x, y: np.exp(x)}
    name = case.one_of(*functions)
    x, y = case.input(dtype, shape, 3), case.input(dtype, shape, 3)
    z = case.output(dtype, shape)
    case.freeze()
    unary = name not in ("ADD", "SUB", "MUL")
    api.call("elementwise", x, None if unary else y, None, z,
             options=api.options("elementwise", function=f"RUNG_ELEMENTWISE_{name}"))
    wanted = functions[name](x.astype(np.float64), y.astype(np.float64))
    close(name, z, wanted, 8 * unit(dtype) * np.abs(wanted) + smallest(dtype))


def reduce(api, case):
    dtype = np.dtype(case.one_of(*FLOATS, *INTEGERS))
    shape = case.shape()
    axes = tuple(sorted(case.random.permutation(len(shape))[:case.random.integers(1, len(shape) + 1)].tolist()))
    name = case.one_of("SUM", "MIN", "MAX", "ARGMIN", "ARGMAX")
    count = math.prod(shape[axis] for axis in axes)
    if name != "SUM" and count == 0:
        return
    x = case.input(dtype, shape)
    if dtype.kind == "f" and x.size and case.flag(0.1):
        x[tuple(int(case.random.integers(n)) for n in shape)] = np.nan
    kept = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    index = name.startswith("ARG")
    result = np.dtype("i8") if index or (dtype.kind != "f" and name == "SUM") else dtype
    y = case.output(result, kept)
    case.freeze()
    api.call("reduce", x, y, options=api.options("reduce", operation=f"RUNG_REDUCE_{name}", axes=axes))
    if index:
        last = np.moveaxis(x, axes, range(len(kept), len(shape))).reshape(kept + (count,))
        close(name, y, getattr(np, name.lower())(last, axis=-1), 0)
    elif name != "SUM":
        close(name, y, getattr(np, name.lower())(x, axis=axes), 0)
    elif dtype.kind != "f":
        close(name, y, np.sum(x, axis=axes, dtype=np.uint64 if dtype.kind == "u" else np.int64).astype(np.int64), 0)
    else:
        exact = x.astype(np.float64)
        close(name, y, exact.sum(axis=axes), 80 * unit(dtype) * np.abs(exact).sum(axis=axes) + 1e-300)


def scan(api, case):
    dtype = np.dtype(case.one_of(*FLOATS, *INTEGERS))
    shape = case.shape()
    axis = int(case.random.integers(len(shape)))
    name = case.one_of("SUM", "MIN", "MAX")
    reverse, exclusive = case.flag(), name == "SUM" and case.flag()
    x, y = case.input(dtype, shape), case.output(dtype, shape)
    case.freeze()
    api.call("scan", x, y, options=api.options("scan", operation=f"RUNG_SCAN_{name}", axis=axis, reverse=int(reverse),
                                               exclusive=int(exclusive)))
    turned = np.flip(x, axis) if reverse else x
    wide = turned.astype(np.float64) if dtype.kind == "f" else turned
    function = {"SUM": np.add, "MIN": np.minimum, "MAX": np.maximum}[name]
    with np.errstate(all="ignore"):
        wanted = function.accumulate(wide, axis=axis, dtype=wide.dtype)
        terms = np.cumsum(np.abs(wide), axis=axis) if dtype.kind == "f" and name == "SUM" else 0
        if exclusive and dtype.kind == "f":
            wanted = wanted - wide
        elif exclusive:
            wanted = (wanted - wide).astype(dtype)
    if reverse:
        wanted, terms = np.flip(wanted, axis), np.flip(terms, axis) if np.ndim(terms) else 0
    close(f"scan {name}", y, wanted, shape[axis] * unit(dtype) * terms + 1e-300)
    # The scan of the whole is that of its parts, the second one carried on: exactly, for integers.
    cut = shape[axis] // 2
    if dtype.kind == "f" or exclusive or reverse or name != "SUM" or cut == 0:
        return
    first, second = (np.take(x, range(*ends), axis) for ends in ((0, cut), (cut, shape[axis])))
    parts = [np.empty_like(part) for part in (first, second)]
    for part, result in zip((first, second), parts):
        api.call("scan", part, result, options=api.options("scan", axis=axis))
    with np.errstate(all="ignore"):
        carried = parts[1] + np.take(parts[0], [cut - 1], axis)
    same("a scan differs from that of its two halves", np.concatenate([parts[0], carried], axis), y)


def histogram(api, case):
    dtype = np.dtype(case.one_of("f4", "f8", "u1", "i4"))
    x = case.input(dtype, case.shape())
    bins = max(1, case.extent(200))
    counts = case.output("i8", (bins,))
    counts[...] = -1
    if dtype.kind == "f":
        low = float(case.random.uniform(-3, 1))
        high = low + float(case.random.uniform(0.1, 4))
        first, last = dtype.type(low), dtype.type(high)  # the call rounds them itself
        place = ((x - first) * dtype.type(bins / (float(last) - float(first)))).astype(np.int64)
        inside = (x >= first) & (x <= last)
    else:
        low = int(case.random.integers(0, 5))
        high = low + bins * int(case.random.integers(1, 4))
        place = (x.astype(np.int64) - low) * bins // (high - low)
        inside = (x >= low) & (x < high)
    case.freeze()
    api.call("histogram", x, counts, options=api.options("histogram", low=float(low), high=float(high)))
    close("histogram", counts, np.bincount(np.minimum(place[inside], bins - 1), minlength=bins), 0)


def transpose(api, case):
    dtype = np.dtype(case.one_of(*FLOATS, *INTEGERS))
    shape = case.shape()
    order = [int(axis) for axis in case.random.permutation(len(shape))]
    x = case.input(dtype, shape)
    y = case.output(dtype, tuple(shape[axis] for axis in order))
    case.freeze()
    api.call("transpose", x, y, options=api.options("transpose", order=order))
    same("transpose", y, x.transpose(order))


def softmax(api, case):
    dtype = np.dtype(case.one_of(*FLOATS))
    shape = case.shape()
    axis = int(case.random.integers(len(shape)))
    x, y = case.input(dtype, shape, case.one_of(1.0, 10.0)), case.output(dtype, shape)
    options = api.options("softmax", axis=axis)
    case.freeze()
    api.call("softmax", x, y, options=options)
    if x.size == 0:
        return
    exact = x.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=axis, keepdims=True))
    wanted = powers / powers.sum(axis=axis, keepdims=True)
    below = np.abs(exact - exact.max(axis=axis, keepdims=True))
    close("softmax", y, wanted, (shape[axis] / 8 + 40 + 8 * below) * unit(dtype) * wanted + smallest(dtype))
    # Adding a power of two to all of a row of small whole numbers changes nothing, to the bit.
    whole = np.clip(np.round(x), -30, 30).astype(dtype)
    once, shifted = np.empty_like(whole), np.empty_like(whole)
    api.call("softmax", whole, once, options=options)
    api.call("softmax", whole + dtype.type(64), shifted, options=options)
    same("softmax changes when all of a row is shifted", once, shifted)


def norm(api, case):
    dtype = np.dtype(case.one_of("f4", "f8"))
    shape = case.shape(2)
    x, gamma = case.input(dtype, shape), case.input(dtype, shape[1:])
    rms = case.flag()
    y = case.output(dtype, shape)
    case.freeze()
    function = "rms_norm" if rms else "layer_norm"
    options = api.options("norm", gamma=gamma, epsilon=1e-3)
    api.call(function, x, y, options=options)
    if x.size == 0:
        return
    exact = x.astype(np.float64)
    mean = 0 if rms else exact.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(((exact - mean) ** 2).mean(axis=1, keepdims=True) + 1e-3)
    z = (exact - mean) * rstd
    error = (shape[1] / 8 + 32) * unit(dtype)
    size = rstd * np.abs(exact).mean(axis=1, keepdims=True)
    close(function, y, z * gamma, error * np.abs(gamma) * (np.abs(z) * (1 + error * size * size) + size)
          + 2 * unit(dtype) * np.abs(z * gamma))
    # Rows are independent of each other: permuted rows are permuted results, to the bit.
    order = case.random.permutation(shape[0])
    plain, permuted = np.empty(shape, dtype), np.empty(shape, dtype)
    api.call(function, np.ascontiguousarray(x), plain, options=options)
    api.call(function, np.ascontiguousarray(x[order]), permuted, options=options)
    close("norm of permuted rows", permuted, plain[order].astype(np.float64), 8 * unit(dtype) * np.abs(plain[order]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("library")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=int(time.time() * 1000) % 10**9)
    parser.add_argument("operators", nargs="+")
    options = parser.parse_args()
    here = [name for name in options.operators if name in globals()]
    api = Api(options.library)
    end = time.monotonic() + options.seconds
    counts = dict.fromkeys(here, 0)
    print(f"seed {options.seed}")
    number = options.seed * 1000003
    while time.monotonic() < end:
        for name in here:
            number += 1
            case = Case(number)
            try:
                globals()[name](api, case)
                wrong = case.damage() if case.memory and case.memory[0][1] is not None else ""
            except (Wrong, RuntimeError) as error:
                wrong = str(error)
            if wrong:
                sys.exit(f"{name}, case {number}: {wrong}\n  arrays: " + "; ".join(
                    f"{view.dtype} {view.shape} strides {view.strides}" if view is not None else "an input"
                    for _, _, view in case.memory) + f"\n  again: --seed {options.seed}, the first failing case")
            counts[name] += 1
    api.library.rung_context_destroy(api.context)
    print(", ".join(f"{name} {count}" for name, count in counts.items()) + ": cases that agree")
    if not counts or min(counts.values()) == 0:
        sys.exit("an operator was not tried")


if __name__ == "__main__":
    main()
