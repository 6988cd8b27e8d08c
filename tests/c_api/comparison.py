# SPDX-License-Identifier: Apache-2.0
"""Comparison of results with expected values, for differential.py."""
import numpy as np


class Wrong(Exception):
    """A call that violates its contract; the text says which part."""


def first_place(mask):
    return tuple(int(i) for i in np.argwhere(np.atleast_1d(mask))[0])


def close(what, got, wanted, bound, dtype, free=False):
    """Asserts that every element of `got`, of type `dtype`, is within its bound and one rounding of `wanted`, and NaN
    where `wanted` is. Elements where `free` is true are not compared."""
    wanted = np.asarray(wanted)
    with np.errstate(all="ignore"):
        if not dtype.floating:
            good = (got == wanted) | free
        else:
            allowed = bound + dtype.rounding(wanted) * (1 + 1e-6)
            good = (np.abs(got - wanted) <= allowed) & np.isfinite(wanted)
            good |= (np.isnan(got) & np.isnan(wanted)) | (got == wanted) | free
            # Infinity is right if the wanted value is within its bound of a value that rounds to infinity.
            rounds_to_infinity = dtype.largest * (1 + dtype.own_unit / 2)
            good |= np.isinf(got) & (np.sign(got) == np.sign(wanted)) & (np.abs(wanted) + bound >= rounds_to_infinity)
    if not np.all(good):
        at = first_place(~good)
        got, wanted = np.broadcast_arrays(np.atleast_1d(got), np.atleast_1d(wanted))
        of = np.broadcast_to(bound, good.shape)[at] if np.ndim(good) else bound
        raise Wrong(f"{what}: {got[at]!r} at {at}, but {wanted[at]!r} is wanted, within {float(of):.3g}; "
                    f"{np.count_nonzero(~good)} of {good.size} elements are wrong")


def same_bits(what, one, other, dtype):
    """Asserts that stored elements are bitwise equal; all NaNs count as equal, +0 and -0 do not."""
    if np.array_equal(one.view(dtype.bits) if one.dtype != dtype.bits else one,
                      other.view(dtype.bits) if other.dtype != dtype.bits else other):
        return
    good = one.view(dtype.bits) == other.view(dtype.bits)
    first, second = dtype.wide(one), dtype.wide(other)
    if dtype.floating:
        good |= np.isnan(first) & np.isnan(second)
    if not np.all(good):
        at = first_place(~good)
        first, second = np.atleast_1d(first), np.atleast_1d(second)
        raise Wrong(f"{what}: {first[at]!r} and {second[at]!r} at {at}; "
                    f"{np.count_nonzero(~good)} of {good.size} elements differ")


def equal(what, one, other):
    """Asserts that values are equal; NaN equals NaN."""
    if not np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"):
        raise Wrong(what)
