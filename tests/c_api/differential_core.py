# SPDX-License-Identifier: Apache-2.0
"""differential.py's calls of C functions without a context: copies between layouts, numbers of windows, types of
results."""
import ctypes

from comparison import Wrong, same_bits
from rung_types import E4M3, E5M2, FLOATS, INTEGERS

KINDS_OF_SUM = ("SUM", "PRODUCT")


def core(case):
    case.one_of(copy, copy, extents, reduced_types)(case)


def copy(case):
    """Expects rung_copy to keep every bit for any strides, and to reject overlapping memory."""
    library, dtype, shape = case.api.library, case.one_of(*FLOATS, *INTEGERS, E4M3, E5M2), case.shape()
    x, y = case.input(dtype, shape, 3, "special"), case.output(dtype, shape)
    case.description = f"copy {dtype} {shape}"
    case.api.announce(f"{case.description}: {x} to {y}")
    x.region.allow_writes(False)
    y.prepare(0)
    status = library.rung_copy(ctypes.byref(case.api.tensor(x)), ctypes.byref(case.api.tensor(y)))
    case.calls += 1
    if status != 0:
        raise Wrong(f"rung_copy: status {status}, {library.rung_last_error().decode()}")
    if y.damage() is not None:
        raise Wrong(f"rung_copy writes outside of {y}")
    same_bits("a copy", x.stored, y.stored, dtype)
    if y.size and library.rung_copy(ctypes.byref(case.api.tensor(y)), ctypes.byref(case.api.tensor(y))) != 1:
        raise Wrong("rung_copy of a tensor to itself is not refused")


def extents(case):
    """Expects the numbers of windows along an axis that counting gives."""
    random, library = case.random, case.api.library
    n, kernel, stride, dilation = (int(random.integers(1, most)) for most in (60, 9, 6, 5))
    padding, ceil = int(random.integers(0, dilation * (kernel - 1) // 2 + 1)), case.flag()
    span = dilation * (kernel - 1) + 1
    places = [at for at in range(-padding, n + padding, stride) if at + span <= n + padding]
    found = ctypes.c_int64(-1)
    case.description = f"extents {n}, kernel {kernel}, stride {stride}, padding {padding}, dilation {dilation}"
    case.calls += 1
    if hasattr(library, "rung_convolved_extent"):
        status = library.rung_convolved_extent(ctypes.c_int64(n), ctypes.c_int64(kernel), stride, padding, dilation,
                                               ctypes.byref(found))
        if (status, found.value) != (0, len(places)) and (places or status != 1):
            raise Wrong(f"rung_convolved_extent: status {status}, {found.value} in place of {len(places)}")
    if hasattr(library, "rung_pooled_extent"):
        if ceil:
            # A last window may extend beyond the padding, but must begin within the image or the padding before it.
            while (places[-1] + stride if places else -padding) < n and (
                    (places[-1] if places else -padding - stride) + span < n + padding):
                places.append(places[-1] + stride if places else -padding)
        if not all(any(0 <= at + tap * dilation < n for tap in range(kernel)) for at in places):
            places = []  # a window wholly outside the image is rejected
        status = library.rung_pooled_extent(ctypes.c_int64(n), kernel, stride, padding, dilation, int(ceil),
                                            ctypes.byref(found))
        if (status, found.value) != (0, len(places)) and (places or status != 1):
            raise Wrong(f"rung_pooled_extent, ceil {ceil}: status {status}, {found.value} in place of {len(places)}")


def reduced_types(case):
    """Expects the default type of a reduction's result."""
    if not hasattr(case.api.library, "rung_reduced_dtype"):
        return
    dtype = case.one_of(*FLOATS, *INTEGERS)
    name = case.one_of("SUM", "PRODUCT", "MIN", "MAX", "MEAN", "ARGMIN", "ARGMAX")
    wanted = dtype.code
    if name.startswith("ARG") or not dtype.floating and name in KINDS_OF_SUM:
        wanted = "RUNG_I64"
    elif not dtype.floating and name == "MEAN":
        wanted = "RUNG_F64"
    found, constants = ctypes.c_int(-1), case.api.constants
    case.description = f"reduced type of {name} of {dtype}"
    case.calls += 1
    status = case.api.library.rung_reduced_dtype(constants[f"RUNG_REDUCE_{name}"], constants[dtype.code],
                                                 ctypes.byref(found))
    if (status, found.value) != (0, constants[wanted]):
        raise Wrong(f"rung_reduced_dtype of {name} of {dtype}: status {status}, {found.value}; {wanted} is wanted")
