# SPDX-License-Identifier: Apache-2.0
"""The functions that gemm, conv and pool apply to their results last, for differential.py."""
import math

import numpy as np

NAMES = ("NONE", "NONE", "RELU", "GELU", "SIGMOID", "TANH")
ERFC = np.vectorize(math.erfc, otypes=[float])


def gelu(x):
    """x times the normal distribution; 0 at -infinity."""
    x = np.asarray(x, np.float64)
    return np.where(x < -40, 0, x * ERFC(-np.clip(x, -50, 50) / math.sqrt(2)) / 2)


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def activated(name, values, bound, dtype):
    """Returns f(values) and what it may be off by: a few units in the last place, and what values are off by."""
    if name == "NONE":
        return values, bound
    values = np.asarray(values, np.float64)
    made = {"RELU": lambda v: np.where(v < 0, 0, v), "GELU": gelu, "SIGMOID": sigmoid, "TANH": np.tanh}[name](values)
    steepest = 1.13 if name == "GELU" else 1.0
    relative = 0 if name == "RELU" else 16 * dtype.unit + (2.0**-16 if dtype.has_small_range else 0)
    # Below the smallest normal number gelu may lose its digits, or be 0.
    return made, steepest * bound + relative * np.abs(made) + dtype.arithmetic_normal
