# SPDX-License-Identifier: Apache-2.0
"""Counts of values per bin."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung._rung import histogram as _histogram

if TYPE_CHECKING:
    from rung import Context

__all__ = ["histogram"]
_RENAMED = {"counts": "out"}  # in messages: the library's names of arguments


def histogram(x: Any, bins: int | None = None, *, range: tuple[float, float] | None = None, edges: Any = None,
              accumulate: bool = False, out: Any = None, rung: str | None = None,
              context: Context | None = None) -> Any:
    """counts[b] = number of elements of x in bin b.

    x: any shape; uint8, uint16, int32, int64, float32, float64, float16 or bfloat16. bins: of equal width over range,
    or as many as edges enclose. range: (low, high); None stands for (0, bins). Integers: low <= x < high; floats:
    low <= x <= high. edges: bins + 1 ascending numbers, int64 for integers, float64 for float64, else float32.
    out: int64 (made so) or int32; with accumulate counts are added to what it holds. Values outside, and NaN, are not
    counted. Exact; without edges, a float within 3 roundoffs of a bin's edge may be in the other bin than with NumPy.

    Raises Error for types, shapes and ranges that are not accepted, and where out overlaps x or edges.

    >>> import numpy as np
    >>> rung.histogram(np.array([0, 1, 1, 7], dtype=np.uint8), 4)
    array([1, 2, 0, 0])
    """
    low, high = (0.0, 0.0) if range is None else range
    return _histogram(context, rung, x, out, 0 if bins is None else bins, low, high, edges, bool(accumulate))
