# SPDX-License-Identifier: Apache-2.0
"""SourceModule with PyCUDA's signature."""
from pathlib import Path
from typing import Any, List, Optional, Sequence, Tuple

from ..cuda import _worker
from ..cuda._findings import CompileError
from ..cuda._memory import DeviceMemory
from ..cuda._module import Module
from .driver import Function

__all__ = ["CompileError", "SourceModule"]

DEFAULT_NVCC_FLAGS: List[str] = []


class SourceModule:
    """Kernels of one source, which is compiled immediately.

    As in PyCUDA, the source is wrapped in extern "C" { } unless `no_extern_c` is given, which templates and overloads
    need. `arch`, "sm_70" or "compute_70", sets __CUDA_ARCH__; the simulated GPU has compute capability 9.0 regardless,
    and rejects a higher `arch` or `code`. `nvcc` and `keep` do nothing. `cache_dir` is the folder of compiled sources,
    instead of $XDG_CACHE_HOME/rung/kernels.
    """

    def __init__(self, source: str, nvcc: str = "nvcc", options: Optional[Sequence[str]] = None, keep: bool = False,
                 no_extern_c: bool = False, arch: Optional[str] = None, code: Optional[str] = None,
                 cache_dir: Optional[str] = None, include_dirs: Optional[Sequence[str]] = None):
        del nvcc, keep
        options = [*(DEFAULT_NVCC_FLAGS if options is None else options)]
        options += [f"-{name}={value}" for name, value in (("code", code), ("arch", arch)) if value is not None]
        for folder in include_dirs or ():
            options += ["-I", str(folder)]
        self._module = Module(source, options, extern_c=not no_extern_c, cache=Path(cache_dir) if cache_dir else None)
        self._module.compile()

    def get_function(self, name: str) -> Function:
        """Returns the kernel of this name; with no_extern_c, of this symbol."""
        function = Function(self._module, name)
        function.entry(_worker.current())  # raises LogicError if there is none
        return function

    def get_global(self, name: str) -> Tuple[DeviceMemory, int]:
        """Returns the memory of a variable, and its size in bytes."""
        memory = self._module.variable(name)
        return memory, memory.nbytes

    def get_texref(self, name: str) -> Any:
        raise NotImplementedError(f"get_texref({name!r}): texture references left CUDA with version 12; pass a pointer")

    get_surfref = get_texref
