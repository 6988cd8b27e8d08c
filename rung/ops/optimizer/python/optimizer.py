# SPDX-License-Identifier: Apache-2.0
"""One step of stochastic gradient descent or of Adam, in one pass over the parameters, in place.

parameters, gradients: of one shape and type, float32, float64, float16 or bfloat16. Moments, master and norm: float32,
float64 for float64. master: the values of float16 or bfloat16 parameters in float32, read and written. norm: one
element, written with the L2 norm of the gradients. max_norm: gradients are scaled to that norm at most; 0: never.
weight_decay: of the L2 penalty; decoupled: it shrinks the parameters themselves. No two arrays overlap.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rung._rung import optimizer as _optimizer

if TYPE_CHECKING:
    from rung import Context

__all__ = ["sgd_step", "adam_step"]
Array = TypeVar("Array")


def sgd_step(parameters: Array, gradients: Array, first_moment: Any = None, *, learning_rate: float = 1e-3,
             momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0, decoupled: bool = False,
             max_norm: float = 0.0, master: Any = None, norm: Any = None, rung: str | None = None,
             context: Context | None = None) -> Array:
    """p -= rate g; with momentum m = momentum m + g and p -= rate m, nesterov: p -= rate (g + momentum m).

    first_moment: m, given where momentum is not 0; zeros before the first step. Other arguments as the module says.
    Writes parameters and first_moment, and returns parameters.

    Raises Error for types, shapes and options that are not accepted, and arrays that overlap.

    >>> import numpy as np
    >>> rung.sgd_step(np.array([1.0]), np.array([2.0]), learning_rate=0.25)
    array([0.5])
    """
    return _optimizer(context, rung, "sgd", parameters, gradients, first_moment, None, learning_rate, weight_decay,
                      bool(decoupled), momentum, bool(nesterov), 0.9, 0.999, 1e-8, 1, max_norm, master, norm)


def adam_step(parameters: Array, gradients: Array, first_moment: Any, second_moment: Any, *, step: int,
              learning_rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
              weight_decay: float = 0.0, decoupled: bool = False, max_norm: float = 0.0, master: Any = None,
              norm: Any = None, rung: str | None = None, context: Context | None = None) -> Array:
    """m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, p -= rate m' / (sqrt(v') + epsilon).

    m' = m / (1 - beta1^step), v' likewise. first_moment, second_moment: m and v, zeros before the first step, whose
    number is 1. decoupled: AdamW. Other arguments as the module says. Writes parameters and both moments, and returns
    parameters.

    Raises Error for types, shapes and options that are not accepted, and arrays that overlap.

    >>> import numpy as np
    >>> p, m, v = np.array([1.0]), np.zeros(1), np.zeros(1)
    >>> rung.adam_step(p, np.array([2.0]), m, v, step=1, learning_rate=0.5, epsilon=0.0)
    array([0.5])
    """
    return _optimizer(context, rung, "adam", parameters, gradients, first_moment, second_moment, learning_rate,
                      weight_decay, bool(decoupled), 0.0, False, beta1, beta2, epsilon, step, max_norm, master, norm)
