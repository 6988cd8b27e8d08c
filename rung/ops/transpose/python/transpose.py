# SPDX-License-Identifier: Apache-2.0
"""Axes in another order."""
from __future__ import annotations

from typing import TYPE_CHECKING, Sequence, TypeVar

from rung._rung import transpose as _transpose

if TYPE_CHECKING:
    from rung import Context

__all__ = ["transpose"]
_RENAMED = {"y": "out", "order": "axes"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def transpose(x: Array, axes: Sequence[int] | None = None, *, out: Array | None = None, rung: str | None = None,
              context: Context | None = None) -> Array:
    """Copies x with its axes in another order; axis a of the result is axis axes[a] of x.

    x: of any type, up to 8 axes. axes: a permutation, from the end where negative; None exchanges the last two, the
    transpose of each matrix of a batch, where NumPy reverses all. The result is C-contiguous unless out is given: no
    view, as NumPy's is.

    Raises Error for axes that are no permutation, shapes and types that differ, and where out overlaps x.

    >>> import numpy as np
    >>> rung.transpose(np.array([[1, 2], [3, 4]]))
    array([[1, 3],
           [2, 4]])
    """
    return _transpose(context, rung, x, out, axes)
