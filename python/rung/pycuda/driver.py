# SPDX-License-Identifier: Apache-2.0
"""PyCUDA's driver interface on the simulated GPU.

A call that enqueues work returns when the work is done, so that streams and events order nothing. Event times are times
of a simulated clock and say nothing about speed.
"""
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy

from ..cuda import _worker
from ..cuda._arguments import In, InOut, Out
from ..cuda._findings import CudaError, LaunchError
from ..cuda._memory import DeviceAllocation, DeviceMemory
from ..cuda._module import Kernel

__all__ = ["Context", "Device", "DeviceAllocation", "Error", "Event", "Function", "In", "InOut", "LaunchError",
           "LogicError", "Out", "Stream", "aligned_empty", "device_attribute", "from_device", "from_device_like",
           "function_attribute", "init", "mem_alloc", "mem_get_info", "memcpy_dtod", "memcpy_dtoh", "memcpy_dtoh_async",
           "memcpy_htod", "memcpy_htod_async", "memset_d16", "memset_d32", "memset_d8", "pagelocked_empty",
           "pagelocked_zeros", "to_device"]

Error = LogicError = MemoryError = CudaError  # pylint: disable=redefined-builtin


def init(flags: int = 0) -> None:
    """Does nothing: the simulated device starts with its first use."""
    del flags


def get_version() -> Tuple[int, int, int]:
    return (13, 0, 0)


def get_driver_version() -> int:
    return 13000


class _Names:
    """Constants by name; each value is its own name."""

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


device_attribute = _Names()
function_attribute = _Names()
ctx_flags = _Names()
func_cache = _Names()
event_flags = _Names()


class Device:
    """The simulated GPU."""

    def __init__(self, number: int = 0):
        if number != 0:
            raise LogicError(f"cuDeviceGet failed: invalid device ordinal: given {number}, there is device 0 alone")

    @staticmethod
    def count() -> int:
        return 1

    @staticmethod
    def _all() -> Dict[str, Any]:
        return _worker.current().request_json("device")

    def name(self) -> str:
        return self._all()["name"]

    def compute_capability(self) -> Tuple[int, int]:
        known = self._all()
        return (known["major"], known["minor"])

    def total_memory(self) -> int:
        return self._all()["total_bytes"]

    def get_attribute(self, attribute: str) -> int:
        known = self._all()
        if attribute not in known:
            raise LogicError(f"cuDeviceGetAttribute failed: invalid value: the simulated device has no {attribute}")
        return known[attribute]

    def get_attributes(self) -> Dict[str, int]:
        return {name: value for name, value in self._all().items() if name.isupper()}

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or not name.islower():
            raise AttributeError(name)
        return self.get_attribute(name.upper())

    def pci_bus_id(self) -> str:
        return "0000:00:00.0"

    def make_context(self, flags: Any = 0) -> "Context":
        del flags
        return Context()

    retain_primary_context = make_context


class Context:
    """The context of the simulated GPU: there is one."""

    @staticmethod
    def synchronize() -> None:
        """Returns at once: every launch has ended when its call returns."""

    @staticmethod
    def get_device() -> Device:
        return Device(0)

    @staticmethod
    def get_current() -> "Context":
        return Context()

    def push(self) -> None:
        """Does nothing."""

    @staticmethod
    def pop() -> None:
        """Does nothing."""

    def detach(self) -> None:
        """Does nothing."""

    @staticmethod
    def set_cache_config(config: Any) -> None:
        del config


class Stream:
    """A stream without effect: work is done when the call that enqueues it returns."""

    def __init__(self, flags: int = 0):
        del flags
        self.handle = 0

    def synchronize(self) -> None:
        """Returns at once."""

    def is_done(self) -> bool:
        return True

    def wait_for_event(self, event: "Event") -> None:
        del event


class Event:
    """A point of the simulated clock."""

    def __init__(self, flags: Any = 0):
        del flags
        self._time: Optional[float] = None

    def record(self, stream: Optional[Stream] = None) -> "Event":
        del stream
        self._time = float(_worker.current().request("time"))
        return self

    def synchronize(self) -> "Event":
        return self

    def query(self) -> bool:
        return True

    def time_since(self, event: "Event") -> float:
        """Returns milliseconds of the simulated clock."""
        if self._time is None or event._time is None:
            raise LogicError("cuEventElapsedTime failed: invalid resource handle: an event was not recorded")
        return self._time - event._time

    def time_till(self, event: "Event") -> float:
        return event.time_since(self)


class Function(Kernel):
    """A kernel: f(*args, block=(x, y, z), grid=(1, 1)). Arguments must be NumPy values, whose sizes are known."""

    pycuda = True
    raise_shared = "kernel.set_attribute(function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, {bytes})"

    def __init__(self, module: Any, name: str):
        super().__init__(module, name)
        self._prepared: List[str] = []

    def __call__(self, *args: Any, **options: Any) -> Optional[float]:
        grid, block = options.pop("grid", (1, 1)), options.pop("block", None)
        shared, timed = options.pop("shared", 0), options.pop("time_kernel", False)
        for name in ("stream", "texrefs"):
            options.pop(name, None)
        if options:
            raise ValueError("extra keyword arguments: " + ",".join(options))
        if block is None:
            raise ValueError("must specify block size")
        return self._timed(grid, block, args, shared) if timed else self.launch(grid, block, args, shared)

    def _timed(self, grid: Any, block: Any, args: Sequence[Any], shared: int) -> float:
        begin, end = Event().record(), Event()
        self.launch(grid, block, args, shared)
        return end.record().time_since(begin) * 1e-3

    def prepare(self, arg_types: Sequence[Any], texrefs: Sequence[Any] = ()) -> "Function":
        """Stores the types of the arguments: "P" for a pointer, else a letter of struct's or a NumPy type."""
        del texrefs
        self._prepared = ["P" if one == "P" else numpy.dtype(one).char for one in arg_types]
        return self

    def _converted(self, args: Sequence[Any]) -> List[Any]:
        if not self._prepared:
            raise LogicError("the function was not prepared: call prepare() first")
        if len(args) != len(self._prepared):
            raise TypeError(f"kernel {self.name} was prepared for {len(self._prepared)} arguments, given {len(args)}")
        return [numpy.intp(int(value)) if kind == "P" else numpy.dtype(kind).type(value)
                for kind, value in zip(self._prepared, args)]

    def prepared_call(self, grid: Any, block: Any, *args: Any, **options: Any) -> None:
        shared = options.pop("shared_size", 0)
        if options:
            raise TypeError("unknown keyword arguments: " + ", ".join(options))
        self.launch(grid, block, self._converted(args), shared)

    def prepared_async_call(self, grid: Any, block: Any, stream: Any, *args: Any, **options: Any) -> None:
        del stream
        self.prepared_call(grid, block, *args, **options)

    def prepared_timed_call(self, grid: Any, block: Any, *args: Any, **options: Any) -> Callable[[], float]:
        seconds = self._timed(grid, block, self._converted(args), options.pop("shared_size", 0))
        return lambda: seconds

    def get_attribute(self, attribute: str) -> int:
        return self.attributes_dict()[attribute]

    def set_attribute(self, attribute: str, value: int) -> None:
        """Sets function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, without which a launch above 48 KiB is rejected."""
        if attribute != function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES:
            raise LogicError(f"set_attribute: given {attribute}, accepted is MAX_DYNAMIC_SHARED_SIZE_BYTES")
        self._module.allow_shared(self.name, value, attribute)

    def set_cache_config(self, config: Any) -> None:
        """Does nothing."""

    def __getattr__(self, name: str) -> int:
        names = {"num_regs", "shared_size_bytes", "local_size_bytes", "const_size_bytes", "max_threads_per_block"}
        if name not in names:
            raise AttributeError(name)
        return self.attributes_dict()[name.upper()]


def mem_alloc(bytes: int) -> DeviceAllocation:  # pylint: disable=redefined-builtin
    """Returns new, uninitialized device memory."""
    return DeviceAllocation(bytes)


def mem_get_info() -> Tuple[int, int]:
    known = _worker.current().request_json("device")
    return (known["free_bytes"], known["total_bytes"])


def to_device(bf_obj: Any) -> DeviceAllocation:
    """Copies an array into new device memory."""
    array = numpy.ascontiguousarray(bf_obj)
    memory = DeviceAllocation(array.nbytes)
    memory.write(array)
    return memory


def from_device(devptr: Any, shape: Any, dtype: Any, order: str = "C") -> numpy.ndarray:
    result = numpy.empty(shape, dtype, order)
    memcpy_dtoh(result, devptr)
    return result


def from_device_like(devptr: Any, other_ary: numpy.ndarray) -> numpy.ndarray:
    result = numpy.empty_like(other_ary)
    memcpy_dtoh(result, devptr)
    return result


def _bytes_of(array: Any) -> numpy.ndarray:
    array = numpy.asarray(array)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError("ndarray is not contiguous")
    return (array if array.flags.c_contiguous else array.T).reshape(-1).view(numpy.uint8)


def memcpy_htod(dest: Any, src: Any) -> None:
    """Copies a host array to device memory."""
    data = _bytes_of(src)
    if data.nbytes:
        _worker.current().request("write", int(dest), data=numpy.ascontiguousarray(data))


def memcpy_dtoh(dest: Any, src: Any) -> None:
    """Fills a host array from device memory."""
    data = _bytes_of(dest)
    if not data.flags.writeable:
        raise ValueError("the destination of memcpy_dtoh is read-only")
    if data.nbytes:
        data[:] = numpy.frombuffer(_worker.current().request("read", int(src), data.nbytes), numpy.uint8)


def memcpy_htod_async(dest: Any, src: Any, stream: Any = None) -> None:
    del stream
    memcpy_htod(dest, src)


def memcpy_dtoh_async(dest: Any, src: Any, stream: Any = None) -> None:
    del stream
    memcpy_dtoh(dest, src)


def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    """Copies bytes within the device."""
    _worker.current().request("copy", int(dest), int(src), int(size))


def _fill(dest: Any, value: int, size: int, count: int) -> None:
    _worker.current().request("fill", int(dest), int(value) & ((1 << (8 * size)) - 1), size, int(count))


def memset_d8(dest: Any, data: int, count: int) -> None:
    _fill(dest, data, 1, count)


def memset_d16(dest: Any, data: int, count: int) -> None:
    _fill(dest, data, 2, count)


def memset_d32(dest: Any, data: int, count: int) -> None:
    _fill(dest, data, 4, count)


def pagelocked_empty(shape: Any, dtype: Any, order: str = "C", mem_flags: int = 0) -> numpy.ndarray:
    """Returns an ordinary host array: the simulated device copies from any host memory alike."""
    del mem_flags
    return numpy.empty(shape, dtype, order)


def pagelocked_zeros(shape: Any, dtype: Any, order: str = "C", mem_flags: int = 0) -> numpy.ndarray:
    del mem_flags
    return numpy.zeros(shape, dtype, order)


aligned_empty = pagelocked_empty
