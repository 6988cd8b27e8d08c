# SPDX-License-Identifier: Apache-2.0
"""The storage part of PyCUDA's gpuarray: arrays on the device, without arithmetic."""
from typing import Any

import numpy

from ..cuda._memory import DeviceArray

__all__ = ["GPUArray", "empty", "empty_like", "to_gpu", "zeros", "zeros_like"]


class GPUArray(DeviceArray):
    """An array in device memory: get(), set(), fill(), copy(), reshape(), gpudata, ptr. It has no arithmetic."""


def to_gpu(ary: Any, allocator: Any = None) -> GPUArray:
    """Copies an array into new device memory."""
    del allocator
    ary = numpy.asarray(ary)
    made = GPUArray(ary.shape, ary.dtype)
    made.set(ary)
    return made


to_gpu_async = to_gpu


def empty(shape: Any, dtype: Any, allocator: Any = None, order: str = "C") -> GPUArray:
    """Returns an array of uninitialized memory."""
    del allocator, order
    return GPUArray(shape, dtype)


def zeros(shape: Any, dtype: Any = numpy.float64, allocator: Any = None, order: str = "C") -> GPUArray:
    del allocator, order
    return GPUArray(shape, dtype).fill(0)  # type: ignore[return-value]


def empty_like(other_ary: Any) -> GPUArray:
    return GPUArray(other_ary.shape, other_ary.dtype)


def zeros_like(other_ary: Any) -> GPUArray:
    return zeros(other_ary.shape, other_ary.dtype)
