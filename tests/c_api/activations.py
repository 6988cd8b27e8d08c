# SPDX-License-Identifier: Apache-2.0
"""Activations in the epilogues of gemm, conv and pool, for differential.py."""
import math

import numpy as np

NAMES = ("NONE", "NONE", "RELU", "GELU", "SIGMOID", "TANH")
ERFC = np.vectorize(math.erfc, otypes=[float])


def normal_distribution(x):
    """Returns Phi, with a first-order correction for the rounding of erfc's argument, which x^2 would amplify."""
    exact = -np.clip(x, -50, 50) * np.sqrt(np.longdouble(0.5))
    rounded = exact.astype(np.float64)
    slope = -2 / math.sqrt(math.pi) * np.exp(-rounded * rounded)
    return (ERFC(rounded) + slope * (exact - rounded)) / 2


def gelu(x):
    """Returns x Phi(x); 0 at -infinity."""
    return np.where(x < -40, 0, x * normal_distribution(x))


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def activated(name, values, bound, dtype):
    """Returns f(values) and their error bound: a few units in the last place, plus the propagated bound of the
    values."""
    if name == "NONE":
        return values, bound
    values = np.asarray(values, np.float64)
    made = {"RELU": lambda v: np.where(v < 0, 0, v), "GELU": gelu, "SIGMOID": sigmoid, "TANH": np.tanh}[name](values)
    steepest = 1.13 if name == "GELU" else 1.0
    relative = 0 if name == "RELU" else 16 * dtype.unit + (2.0**-16 if dtype.has_small_range else 0)
    if name == "GELU":  # the rounding of erfc's argument
        relative = relative + np.where(np.isfinite(values), values * values, 0) * dtype.unit
    # Below the smallest normal number gelu may lose digits, or underflow to 0.
    return made, steepest * bound + relative * np.abs(made) + dtype.arithmetic_normal
