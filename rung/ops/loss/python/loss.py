# SPDX-License-Identifier: Apache-2.0
"""Losses and their gradients, in one pass over the outputs.

x: of 1 to 8 axes, float32, float64, float16 or bfloat16; a row lies along axis, the classes. reduction: "mean" or
"sum". dx: written when given, made with return_grad; shaped as x, of its type; may be x itself. losses: written when
given, the loss of each row. out: one element, float32, float64 for float64.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rung._rung import loss as _loss

if TYPE_CHECKING:
    from rung import Context

__all__ = ["cross_entropy", "hinge_loss", "squared_error"]
_RENAMED = {"target": "labels", "result": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def cross_entropy(x: Array, labels: Any, *, reduction: str = "mean", axis: int = -1, smoothing: float = 0.0,
                  ignored_label: int | None = None, return_grad: bool = False, dx: Array | None = None,
                  losses: Any = None, out: Any = None, rung: str | None = None,
                  context: Context | None = None) -> Any:
    """Mean or sum over rows of -sum_c q_c log p_c, p = softmax(x), q_c = (1 - smoothing) [c = label] + smoothing / C.

    labels: int64 or int32, shaped as x without axis; rows with ignored_label do not count, other labels that are no
    class give NaN. Other arguments as the module says.

    Returns the loss, an array of no axes, or (loss, dx) with return_grad. Raises Error for types, shapes, axis and
    options that are not accepted, and where what is written overlaps another array.

    >>> import numpy as np
    >>> loss, dx = rung.cross_entropy(np.zeros((1, 2)), np.array([0]), return_grad=True)
    >>> dx
    array([[-0.5,  0.5]])
    """
    return _loss(context, rung, "cross_entropy", x, labels, out, reduction, axis, smoothing, 1.0, ignored_label, dx,
                 losses, bool(return_grad))


def hinge_loss(x: Array, labels: Any, *, reduction: str = "mean", axis: int = -1, margin: float = 1.0,
               ignored_label: int | None = None, return_grad: bool = False, dx: Array | None = None,
               losses: Any = None, out: Any = None, rung: str | None = None, context: Context | None = None) -> Any:
    """Mean or sum over rows of sum_c max(margin - t_c x_c, 0), t_c = 1 where c = label, else -1.

    Arguments, result and errors as of cross_entropy().

    >>> import numpy as np
    >>> rung.hinge_loss(np.array([[1.0, -1.0], [0.0, 0.0]]), np.array([0, 1]))
    array(1.)
    """
    return _loss(context, rung, "hinge", x, labels, out, reduction, axis, 0.0, margin, ignored_label, dx, losses,
                 bool(return_grad))


def squared_error(x: Array, target: Array, *, reduction: str = "mean", axis: int = -1, return_grad: bool = False,
                  dx: Array | None = None, losses: Any = None, out: Any = None, rung: str | None = None,
                  context: Context | None = None) -> Any:
    """Mean or sum over rows of sum_c (x_c - target_c)^2 / C. target: shaped as x, of its type.

    Other arguments, result and errors as of cross_entropy().

    >>> import numpy as np
    >>> rung.squared_error(np.array([[1.0, 3.0]]), np.array([[1.0, 1.0]]))
    array(2.)
    """
    return _loss(context, rung, "squared", x, target, out, reduction, axis, 0.0, 1.0, None, dx, losses,
                 bool(return_grad))
