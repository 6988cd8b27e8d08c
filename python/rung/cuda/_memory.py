# SPDX-License-Identifier: Apache-2.0
"""Device memory: allocations, and arrays in device memory."""
from typing import Any, Optional, Tuple

import numpy

from . import _worker


class DeviceMemory:
    """Bytes of the simulated device with another owner: a module's variable, or part of an allocation."""

    def __init__(self, ptr: int, nbytes: int, worker: Optional[_worker.Worker] = None, owner: Any = None):
        self.ptr = ptr
        self.nbytes = nbytes
        self._worker = worker or _worker.current()
        self._owner = owner

    @property
    def size(self) -> int:
        return self.nbytes

    def __int__(self) -> int:
        return self.ptr

    def __index__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> "DeviceMemory":
        return DeviceMemory(self.ptr + int(offset), self.nbytes - int(offset), self._worker, self)

    def as_buffer(self, size: int, offset: int = 0) -> "DeviceMemory":
        return DeviceMemory(self.ptr + offset, size, self._worker, self)

    def write(self, array: Any, offset: int = 0) -> None:
        """Copies a host array to the device."""
        source = numpy.ascontiguousarray(array)
        self._worker.request("write", self.ptr + offset, data=source.reshape(-1).view(numpy.uint8))

    def read(self, dtype: Any = numpy.uint8, shape: Any = None) -> numpy.ndarray:
        """Returns a copy of the memory as a host array."""
        dtype = numpy.dtype(dtype)
        count = self.nbytes // dtype.itemsize if shape is None else int(numpy.prod(shape))
        data = self._worker.request("read", self.ptr, count * dtype.itemsize)
        array = numpy.frombuffer(bytearray(data), dtype)
        return array if shape is None else array.reshape(shape)


class DeviceAllocation(DeviceMemory):
    """Memory of the simulated device, freed when the last reference to it is dropped."""

    def __init__(self, nbytes: int):
        worker = _worker.current()
        super().__init__(int(worker.request("allocate", max(int(nbytes), 1))), int(nbytes), worker)
        self._freed = False

    def free(self) -> None:
        """Frees the memory now."""
        if not self._freed:
            self._freed = True
            self._worker.request("free", self.ptr)

    def __del__(self) -> None:
        # Deferred: a finalizer may run in the middle of a request.
        if not getattr(self, "_freed", True):
            self._freed = True
            self._worker.to_free.append(self.ptr)


class DeviceArray:
    """An array in device memory. `get()` copies it to the host, `set(array)` from there."""

    def __init__(self, shape: Any, dtype: Any = numpy.float32, memory: Optional[DeviceMemory] = None):
        self.shape: Tuple[int, ...] = tuple(int(n) for n in shape) if numpy.iterable(shape) else (int(shape),)
        self.dtype = numpy.dtype(dtype)
        self.size = int(numpy.prod(self.shape, dtype=numpy.int64))
        self.nbytes = self.size * self.dtype.itemsize
        self.gpudata = memory or DeviceAllocation(self.nbytes)

    @property
    def ptr(self) -> int:
        return self.gpudata.ptr

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def set(self, array: Any) -> None:
        array = numpy.asarray(array)
        if array.size != self.size or array.dtype != self.dtype:
            raise ValueError(f"the device array is {self.dtype} {self.shape}, the array given {array.dtype} "
                             f"{array.shape}")
        self.gpudata.write(array)

    def get(self, ary: Optional[numpy.ndarray] = None, **_: Any) -> numpy.ndarray:
        host = self.gpudata.as_buffer(self.nbytes).read(self.dtype, self.shape)
        if ary is None:
            return host
        ary[...] = host
        return ary

    def fill(self, value: Any, stream: Any = None) -> "DeviceArray":
        del stream
        self.set(numpy.full(self.shape, value, self.dtype))
        return self

    def copy(self) -> "DeviceArray":
        other = type(self)(self.shape, self.dtype)
        # pylint: disable-next=protected-access
        self.gpudata._worker.request("copy", other.ptr, self.ptr, self.nbytes)
        return other

    def reshape(self, *shape: Any) -> "DeviceArray":
        if len(shape) == 1 and numpy.iterable(shape[0]):
            shape = tuple(shape[0])
        shape = tuple(self.size // -int(numpy.prod(shape)) if n == -1 else n for n in shape)
        if int(numpy.prod(shape)) != self.size:
            raise ValueError(f"{self.size} elements do not have the shape {shape}")
        return type(self)(shape, self.dtype, self.gpudata)

    def __repr__(self) -> str:
        return repr(self.get())


def to_device(array: Any) -> DeviceArray:
    """Copies a host array into new device memory."""
    array = numpy.asarray(array)
    made = DeviceArray(array.shape, array.dtype)
    made.set(array)
    return made
