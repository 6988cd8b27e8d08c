# SPDX-License-Identifier: Apache-2.0
"""Modules of kernel strings, their kernels, and launches."""
import json
import linecache
import operator
import re
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _architecture, _compile, _source, _worker
from ._arguments import Packer
from ._findings import (CudaError, Finding, LaunchError, Place, Settings, deliver, make_finding, settings)
from ._memory import DeviceMemory


class Module:
    """A compiled kernel string, loaded when its first kernel or variable is used."""

    def __init__(self, source: str, options: Sequence[str] = (), expressions: Sequence[str] = (),
                 extern_c: bool = False, label: str = "", cache: Optional[Path] = None, strict_names: bool = True):
        self.source = source
        self.options = tuple(options)
        _architecture.split_options(self.options)  # rejects an architecture now, not at the first launch
        self.expressions = tuple(expressions)
        self.extern_c = extern_c
        self.strict_names = strict_names
        self.origin = _source.origin_of_caller(source)
        self.label = label or "the kernel string"
        self._cache = cache
        self._lock = threading.RLock()
        self._compiled: Optional[_compile.Compiled] = None
        self._kernels = _source.find_kernels(source)
        self._found: Dict[str, Tuple[_worker.Worker, Dict[str, Any]]] = {}
        self._shared_limits: Dict[str, int] = {}  # bytes of dynamic shared memory, if set

    def compile(self) -> _compile.Compiled:
        with self._lock:
            if self._compiled is None:
                names = [one.name for one in self._kernels if not one.template]
                names += [one for one in self.expressions if one not in names]
                self._compiled = _compile.compile_source(self.source, self.options, names,
                                                         _source.find_variables(self.source), self.label, self._cache,
                                                         self.extern_c)
                missing = [one for one in self.expressions if one in self._compiled.missing]
                if missing:
                    raise CudaError(f"{self.label} has no kernel {missing[0]}, which name_expressions names")
            return self._compiled

    def _loaded(self, worker: _worker.Worker) -> Dict[str, Any]:
        """Returns the module's kernels and variables by name; loads the module into the worker first."""
        compiled = self.compile()
        with worker.lock:
            entries = worker.loaded.get(compiled.library)
            if entries is None:
                text = worker.request("load", data=compiled.library.encode())
                entries = {("kernel" in one, one.get("kernel", one.get("variable"))): one
                           for one in json.loads(text.decode())}
                worker.loaded[compiled.library] = entries
            worker.files[compiled.source] = self
        return entries

    def find_kernel(self, name: str, worker: _worker.Worker) -> Dict[str, Any]:
        """Returns the entry of a kernel by its name, expression, or symbol."""
        known = self._found.get(name)
        if known is None or known[0] is not worker:
            known = self._found[name] = (worker, self._find_kernel(name, worker))
            if name in self._shared_limits:
                worker.request("shared", known[1]["address"], self._shared_limits[name])
        return known[1]

    def allow_shared(self, name: str, given: Any, what: str) -> None:
        """Sets the maximum dynamic shared memory of a kernel's launches, in this worker and later ones."""
        worker = _worker.current()
        address, size = self.find_kernel(name, worker)["address"], operator.index(given)
        most = worker.request_json("device")["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"] \
            - worker.request_json("kernel", address)["SHARED_SIZE_BYTES"]
        if not 0 <= size <= most:
            raise CudaError(f"{what}: given {size}, accepted are 0 to {most}")
        worker.request("shared", address, size)
        self._shared_limits[name] = size

    def _find_kernel(self, name: str, worker: _worker.Worker) -> Dict[str, Any]:
        entries = self._loaded(worker)
        compiled = self.compile()
        entry = entries.get((True, name))
        if entry is not None and (name in self.expressions or not self.strict_names or self.extern_c):
            return entry
        address = int(worker.request("symbol", compiled.library, name)) if name.isidentifier() else 0
        for one in entries.values():
            if "kernel" in one and address and one["address"] == address:
                return one
        if entry is not None:
            raise CudaError(f"named symbol not found: {self.label} has a kernel {name}, whose symbol C++ mangles: "
                            "declare it extern \"C\" __global__, or name it in name_expressions")
        if address:
            raise CudaError(f"{self.label} has {name}, but no __global__ function spelled so, as where a macro defines "
                            "it: name it in name_expressions")
        kernels = [one["kernel"] for one in entries.values() if "kernel" in one]
        templates = [one.name for one in self._kernels if one.template and one.name == _source.split_name(name)]
        if templates:
            raise CudaError(f"named symbol not found: {name} is a template: name its instance in name_expressions, as "
                            f"\"{templates[0]}<float>\"")
        raise CudaError(f"named symbol not found: {self.label} has no kernel {name}; it has "
                        + (", ".join(kernels) or "none"))

    def kernels(self) -> List[_source.Kernel]:
        """Compiles the source; returns the kernels that it has."""
        missing = self.compile().missing
        return [one for one in self._kernels if one.name not in missing]

    def variable(self, name: str) -> DeviceMemory:
        worker = _worker.current()
        entries = self._loaded(worker)
        entry = entries.get((False, name))
        if entry is None:
            known = [key[1] for key in entries if not key[0]]
            raise CudaError(f"named symbol not found: {self.label} has no variable {name}; it has "
                            + (", ".join(known) or "none"))
        return DeviceMemory(entry["address"], entry["bytes"], worker, self)

    def parameter_names(self, name: str) -> Tuple[str, ...]:
        plain = _source.split_name(name)
        return next((one.parameters for one in self._kernels if one.name == plain), ())

    def place(self, line: int, message: str = "") -> Place:
        lines = self.source.splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        script = self.origin.script_line(line) if self.origin else None
        return Place(self.label, line, text, _source.column_of(text, message), script, True)


class Kernel:
    """A kernel of a module."""

    pycuda = False
    raise_shared = "kernel.max_dynamic_shared_size_bytes = {bytes}"  # advice in the message of a rejected launch

    def __init__(self, module: Module, name: str):
        self._module = module
        self.name = name

    def entry(self, worker: _worker.Worker) -> Dict[str, Any]:
        return self._module.find_kernel(self.name, worker)

    def attributes_dict(self) -> Dict[str, int]:
        worker = _worker.current()
        return worker.request_json("kernel", self.entry(worker)["address"])

    def launch(self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any], shared: int,
               cooperative: bool = False) -> None:
        """Runs the kernel and waits for it; then delivers the findings."""
        worker = _worker.current()
        with worker.lock:
            entry = self.entry(worker)
            names = self._module.parameter_names(self.name)
            packed = Packer(self.name, entry["parameters"], names, self.pycuda).pack(arguments)
            now = settings()
            try:
                words = [entry["address"], *_extent("grid", grid), *_extent("block", block), int(shared),
                         int(cooperative), len(packed.offsets), *packed.offsets]
                advice = self.raise_shared.format(bytes=int(shared))
                findings, failure = _run(worker, self.name, words, packed.data, now, advice)
                packed.copy_back()
            finally:
                if worker.alive:
                    packed.free()
        deliver(findings, now)
        if failure and not findings:
            raise LaunchError(f"kernel {self.name}: {failure}")


def _extent(what: str, given: Any) -> Tuple[int, int, int]:
    values = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(values) <= 3 or any(int(one) != one for one in values):
        raise ValueError(f"{what}: given {given!r}, accepted are one to three integers")
    values = tuple(int(one) for one in values) + (1,) * (3 - len(values))
    if any(not 0 <= one < 1 << 32 for one in values):
        raise ValueError(f"{what}: given {given!r}, accepted are integers from 1 on")
    return values  # type: ignore[return-value]


def _run(worker: _worker.Worker, name: str, words: List[Any], data: bytes, now: Settings,
         raise_shared: str) -> Tuple[List[Finding], str]:
    """Launches once under each order of the settings. The first order runs last, so that its results remain."""
    if worker.checks != now.checks:
        worker.request("checks", now.checks)
        worker.checks = now.checks
    if worker.counting != now.counters:
        worker.request("report", int(now.counters))
        worker.counting = now.counters
    several = len(now.orders) > 1
    if several:
        worker.request("snapshot")
    merged: Dict[Any, Finding] = {}
    failure = ""
    for order in (*now.orders[1:], now.orders[0]):
        if several:
            worker.request("order", order)
        if several and order != now.orders[1]:
            worker.request("restore")
        failed = worker.request("launch", *words, data=data, timeout=now.timeout).decode()
        report = worker.request_json("report", int(now.counters))
        failure = failed or failure
        unchecked = sum(one["launches"] - one["recorded"] for one in report.get("partly_recorded", ()))
        if order == now.orders[0]:
            now.note_launch(name, unchecked == worker.unchecked)
        worker.unchecked = unchecked
        for one in report["findings"]:
            finding = _finding(worker, one, raise_shared)
            known = merged.setdefault(finding.key(), finding)
            if several:
                known.data.setdefault("orders", []).append(order)
        if order == now.orders[0]:
            for kernel in report["kernels"]:
                now.report.counters.add(kernel, lambda file, line: _place(worker, file, line))
    if several:
        worker.request("order", "forward")
        worker.request("forget_snapshot")
    for finding in merged.values():
        orders = finding.data.get("orders", [])
        finding.orders = [] if len(orders) == len(now.orders) else orders
        finding.data["orders"] = finding.orders
    # Uninitialized reads last: they are often caused by a race.
    return sorted(merged.values(), key=lambda one: one.kind == "uninitialized"), failure


def _place(worker: _worker.Worker, file: str, line: int, message: str = "") -> Place:
    module = worker.module_of(file)
    if module is not None:
        return module.place(line, message)
    return Place(file, line, linecache.getline(file, line).rstrip("\n"))


def _finding(worker: _worker.Worker, found: Dict[str, Any], raise_shared: str) -> Finding:
    data = dict(found)
    refused = "the launch failed and the program never queried its error: "
    message = data["message"].replace(refused, "the launch was refused: ")
    message = re.sub(r"cudaFuncSetAttribute\(cudaFuncAttributeMaxDynamicSharedMemorySize\) raises it to (\d+)",
                     rf"{raise_shared} raises it, up to \1", message)
    advice = data.get("advice", "").replace("; and check cudaGetLastError() after each launch", "")
    if advice == "check cudaGetLastError() after each launch":
        advice = ""
    message = re.sub(r" at \S*cuda/worker\.cpp:\d+", "", message.replace("simulated GPU: ", ""))
    data["message"] = worker.in_terms_of_strings(message)
    data["advice"] = worker.in_terms_of_strings(advice)
    data["fixes"] = [dict(fix) for fix in data.get("fixes", [])]
    for fix in data["fixes"]:
        module = worker.module_of(fix["file"])
        fix["file"] = module.label if module is not None else fix["file"]
    for key, line, name in (("file", "line", "place"), ("other_file", "other_line", "other")):
        file = data.get(key, "")
        ours = file.endswith("cuda/worker.cpp")  # the call that allocates or copies on behalf of the script
        if data.get(line) and file and not ours:
            data[name] = _place(worker, file, data[line], message)
    return make_finding(data)
