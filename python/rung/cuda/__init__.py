# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels from Python strings on the simulated GPU: no GPU, no CUDA toolkit, g++ alone.

    import numpy as np
    from rung import cuda

    module = cuda.RawModule(code=r'''
    extern "C" __global__ void axpy(int n, float a, const float* x, float* y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = a * x[i] + y[i];
    }''')
    x, y = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    module.get_function("axpy")((4,), (256,), (1000, np.float32(2), x, y))

`RawModule` and `RawKernel` have CuPy's signatures and take NumPy arrays: an array is device memory for the launch, and
holds what the kernel has written when the call returns. `to_device(a)` makes an array that stays on the device.
`rung.pycuda` has PyCUDA's names instead.

Every launch is checked as `rung emulate` checks it. A race, an access out of bounds, a read of uninitialized memory or
a misused barrier raises: RaceError, BoundsError, UninitializedError, BarrierError ..., all of them a Finding, with both
lines of the string, the threads, and advice. `with checked(action="collect") as report:` lists findings and counters.
"""
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._arguments import In, InOut, Out
from ._findings import TimeoutError  # pylint: disable=redefined-builtin
from ._findings import (BarrierError, BoundsError, CompileError, Counters, CudaError, DeadlockError, Finding,
                        KernelError, LaunchError, MisalignedError, Place, RaceError, Report, UninitializedError,
                        UseAfterFreeError, WarpSyncError, WorkerError, checked)
from ._memory import DeviceAllocation, DeviceArray, DeviceMemory, to_device
from ._module import Kernel as _Kernel
from ._module import Module as _Module

__all__ = ["BarrierError", "BoundsError", "CompileError", "Counters", "CudaError", "DeadlockError", "DeviceAllocation",
           "DeviceArray", "DeviceMemory", "Finding", "In", "InOut", "KernelError", "LaunchError", "MisalignedError",
           "Out", "Place", "RaceError", "RawKernel", "RawModule", "Report", "TimeoutError", "UninitializedError",
           "UseAfterFreeError", "WarpSyncError", "WorkerError", "checked", "to_device"]


class RawModule:
    """Kernels of one source, with CuPy's signature: `code` or `path`, not both.

    Kernels are found by their symbol, so that they are declared `extern "C"` or named in `name_expressions`, as
    templates must be: RawModule(code=..., name_expressions=["scale<float>"]).get_function("scale<float>"). `options` go
    to the compiler ("-DN=16", "-I..."). "-arch=sm_70" and -gencode set __CUDA_ARCH__; the device has compute capability
    9.0 regardless, and architectures that it could not run are rejected. `backend` and `jitify` do nothing. The source
    is compiled when its first kernel or variable is used, and once per source: the results are kept in
    $XDG_CACHE_HOME/rung/kernels.
    """

    def __init__(self, code: Optional[str] = None, *, path: Optional[str] = None, options: Sequence[str] = (),
                 backend: str = "nvrtc", translate_cucomplex: bool = False, enable_cooperative_groups: bool = False,
                 name_expressions: Optional[Sequence[str]] = None, jitify: bool = False):
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if isinstance(options, str):
            raise TypeError(f"options: given the string {options!r}, accepted is a tuple of strings")
        if name_expressions is not None and backend == "nvcc":
            raise ValueError("nvcc backend does not support name_expressions")
        del translate_cucomplex, jitify  # cuComplex.h is available unchanged
        if code is None:
            code, label = Path(path).read_text(encoding="utf-8"), str(path)  # type: ignore[arg-type]
        else:
            label = ""
        self.name_expressions = tuple(name_expressions or ())
        self._cooperative = enable_cooperative_groups
        self._module = _Module(code, options, self.name_expressions, label=label)

    def compile(self, log_stream: Any = None) -> None:
        """Compiles the source now. Raises CompileError with the compiler's messages."""
        del log_stream
        self._module.compile()

    def get_function(self, name: str) -> "RawKernel":
        """Returns the kernel with this symbol or name expression."""
        return RawKernel._of(self._module, name, self._cooperative)  # pylint: disable=protected-access

    def get_global(self, name: str) -> DeviceMemory:
        """Returns the memory of a `__constant__` or `__device__` variable: `.write(array)`, `.read(dtype)`."""
        return self._module.variable(name)


class RawKernel(_Kernel):
    """A kernel, with CuPy's signature: RawKernel(code, name)(grid, block, args, shared_mem=0)."""

    def __init__(self, code: str, name: str, options: Sequence[str] = (), backend: str = "nvrtc",
                 translate_cucomplex: bool = False, *, enable_cooperative_groups: bool = False, jitify: bool = False):
        del backend, translate_cucomplex, jitify
        super().__init__(_Module(code, options, strict_names=True), name)
        self._cooperative = enable_cooperative_groups

    @classmethod
    def _of(cls, module: _Module, name: str, cooperative: bool) -> "RawKernel":
        kernel = cls.__new__(cls)
        _Kernel.__init__(kernel, module, name)
        kernel._cooperative = cooperative
        kernel.entry(_current())  # raises if there is none
        return kernel

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int = 0,
                 stream: Any = None) -> None:
        """Launches the kernel and waits for it."""
        del stream
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"args: given {type(args).__name__}, accepted is a tuple: (x,) of one argument")
        self.launch(grid, block, args, shared_mem, self._cooperative)

    def compile(self, log_stream: Any = None) -> None:
        """Compiles the source now. Raises CompileError with the compiler's messages."""
        del log_stream
        self.entry(_current())

    @property
    def attributes(self) -> Dict[str, int]:
        """Attributes of the kernel, by CuPy's names. Registers are not counted: num_regs is always 32."""
        return {name.lower(): value for name, value in self.attributes_dict().items()}

    @property
    def max_threads_per_block(self) -> int:
        return self.attributes["max_threads_per_block"]

    @property
    def shared_size_bytes(self) -> int:
        return self.attributes["shared_size_bytes"]

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Bytes of dynamic shared memory that a launch may use: 48 KiB less the static bytes, until set higher."""
        return self.attributes["max_dynamic_shared_size_bytes"]

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self._module.allow_shared(self.name, size, "max_dynamic_shared_size_bytes")


def _current():
    from . import _worker  # pylint: disable=import-outside-toplevel
    return _worker.current()


def device_attributes() -> Dict[str, Any]:
    """Returns the attributes of the simulated device, by the driver's names: MULTIPROCESSOR_COUNT, WARP_SIZE ..."""
    return _current().request_json("device")


def functions_of(code: str, options: Sequence[str] = (), label: str = "") -> Tuple[List[str], Dict[str, RawKernel]]:
    """Compiles a source; returns the names of its kernel templates, and its other kernels by name."""
    module = _Module(code, options, label=label, strict_names=False)
    kernels = module.kernels()
    made = {one.name.split("::")[-1]: RawKernel._of(module, one.name, False)  # pylint: disable=protected-access
            for one in kernels if not one.template}
    return [one.name for one in kernels if one.template], made
