# SPDX-License-Identifier: Apache-2.0
"""Compilation of kernel strings to libraries by `rung emulate --build`, and their cache on disk."""
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple

from . import _architecture
from ._findings import CompileError, CudaError

_FORMAT = 6  # version of the cache
_MOST_SOURCES = 300  # sources in the cache
_TRAILER = Path(__file__).with_name("trailer.h")
_WORKER = Path(__file__).with_name("worker.cpp")
# Repeated launches run code without hooks if checked() allows it. That code is compiled together with the checked code,
# so that a kernel is the same in both modes. Modules are loaded one after another: without -fno-gnu-unique a kernel
# template of one module would use another module's variables.
_BUILD = ("--build", "--counters", "--checks", "repeated", "-Xcompiler", "-fPIC", "-Xcompiler", "-fno-gnu-unique")


@functools.lru_cache(maxsize=None)
def rung_program() -> str:
    """Returns the path of the `rung` program: $RUNG_PROGRAM, else the package's, else the one on the PATH."""
    given = os.environ.get("RUNG_PROGRAM")
    if given:
        return given
    try:
        from .._program import program  # type: ignore  # pylint: disable=import-outside-toplevel,import-error
        return str(program())
    except ImportError:
        pass
    beside = Path(__file__).resolve().parent.parent / "_prefix" / "bin" / "rung"
    found = str(beside) if beside.exists() else shutil.which("rung")
    if found is None:
        raise CudaError("rung.cuda needs the program rung, which is neither beside the package nor in the PATH: "
                        "install rung, or set RUNG_PROGRAM to its path")
    return found


def compiler() -> str:
    """Returns the C++ compiler: $CXX, or g++."""
    name = os.environ.get("CXX") or "g++"
    found = shutil.which(name)
    if found is None:
        raise CudaError(f"kernel strings are compiled by {name}, which is not installed (Debian and Ubuntu: apt "
                        "install g++)")
    return found


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "rung" / "kernels"


@functools.lru_cache(maxsize=None)
def _version_of(program: str, _: int) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout


def _libraries() -> List[Path]:
    """Returns the libraries, installed beside the program, that compiled kernels are linked with."""
    root = Path(os.path.realpath(rung_program())).parent.parent
    for folder in (root / "lib", root / "lib64", *sorted(root.glob("lib/*-linux-gnu"))):
        found = sorted({path.resolve() for path in folder.glob("librung_emulate.so*")})
        if found:
            return found + sorted({path.resolve() for path in folder.glob("librung.so*")})
    return []


@functools.lru_cache(maxsize=None)
def _hash_of(path: Path, *_: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _identity(path: Path) -> str:
    """Returns a stamp that distinguishes builds of one version: librung_emulate's hash; for librung.so, which is
    large, its time and size."""
    stat = os.stat(path)
    if path.name.startswith("librung_emulate."):
        return _hash_of(path, stat.st_mtime_ns, stat.st_size)
    return f"{path} {stat.st_mtime_ns} {stat.st_size}"


def _versions() -> List[str]:
    programs = [os.path.realpath(rung_program()), os.path.realpath(compiler())]
    stamps = [os.stat(one).st_mtime_ns for one in programs]
    return [f"{program} {stamp} {_version_of(program, stamp)}" for program, stamp in zip(programs, stamps)] \
        + [_identity(one) for one in _libraries()]


def key_of(*parts: Any) -> str:
    return hashlib.sha256(json.dumps([_FORMAT, _versions(), parts], default=str).encode()).hexdigest()[:32]


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder: one process at a time compiles into it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{folder.name}.lock", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: Sequence[str]) -> Tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stderr + done.stdout


def worker_program() -> str:
    """Returns the path of the compiled worker.cpp; compiles it the first time."""
    folder = cache_folder() / ("worker-" + key_of(_WORKER.read_text(encoding="utf-8")))
    program = folder / "worker"
    with _locked(folder):
        if not program.exists():
            folder.mkdir(parents=True, exist_ok=True)
            code, text = _run([rung_program(), "emulate", "--build", "--no-checks", "-o", str(folder / "new"),
                               str(_WORKER)])
            if code != 0:
                raise CudaError("the worker of rung.cuda cannot be compiled; it needs g++ and rung's headers:\n" + text)
            os.replace(folder / "new", program)
    return str(program)


class Compiled:
    """A compiled source: its library, and the file that findings name."""

    def __init__(self, folder: Path, library: str, missing: Iterable[str]):
        self.library = str(folder / library)
        self.source = str(folder / "kernel.cu")
        self.missing = list(missing)  # names that the source does not have after all


def _dependencies(folder: Path) -> List[List[Any]]:
    """Returns the files that the source includes, with their modification times."""
    text = (folder / "kernel.o.ii").read_text(encoding="utf-8", errors="replace")
    found = []
    for name in sorted(set(re.findall(r'^# \d+ "([^"<]+)"', text, flags=re.M))):
        path = Path(name)
        if not str(path).startswith(("/usr/", str(folder))) and path.is_file():
            found.append([str(path.resolve()), path.stat().st_mtime_ns])
    return found


def _is_fresh(folder: Path) -> Optional[Compiled]:
    try:
        with open(folder / "done.json", encoding="utf-8") as file:
            done = json.load(file)
        if all(os.stat(path).st_mtime_ns == time for path, time in done["dependencies"]):
            os.utime(folder / "done.json")
            return Compiled(folder, done["library"], done["missing"])
    except (OSError, ValueError, KeyError):
        pass
    return None


def compile_source(source: str, options: Sequence[str], kernels: Sequence[str], variables: Sequence[str],
                   label: str, cache: Optional[Path] = None, extern_c: bool = False) -> Compiled:
    """Compiles a source to a library that describes these kernels (expressions, for templates) and variables."""
    rest, capability = _architecture.split_options(options)
    options = [*rest, "--compute-capability", f"{capability // 10}.{capability % 10}"]
    folder = (cache or cache_folder()) / key_of(source, options, list(kernels), list(variables), extern_c,
                                                _TRAILER.read_text(encoding="utf-8"),
                                                os.getcwd() if '#include "' in source or "-I" in str(options) else "")
    with _locked(folder):
        done = _is_fresh(folder)
        if done is not None:
            return done
        compiler()  # raises with installation advice if there is none
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.cu").write_text(source, encoding="utf-8")
        return _compile(folder, list(options), list(kernels), list(variables), label, extern_c)


def _prune(root: Path) -> None:
    """Removes the least recently used sources if the cache has too many: a source takes some 2 MB."""
    folders = sorted(root.glob("*/done.json"), key=lambda one: one.stat().st_mtime)
    for done in folders[:-_MOST_SOURCES]:
        shutil.rmtree(done.parent, ignore_errors=True)


def _compile(folder: Path, options: List[str], kernels: List[str], variables: List[str], label: str,
             extern_c: bool) -> Compiled:
    wanted = [("variable", name) for name in variables] + [("kernel", name) for name in kernels]
    missing: List[str] = []
    source = (folder / "kernel.cu").read_text(encoding="utf-8")
    while True:
        # Findings and advice refer to kernel.cu; the compiled file is the same text followed by a trailer.
        text, first = _with_trailer(folder / "kernel.cu", source, wanted, extern_c)
        (folder / "whole.cu").write_text(text, encoding="utf-8")
        command = [rung_program(), "emulate", *_BUILD, "-c", "-I", os.getcwd(), *options, "-o",
                   str(folder / "kernel.o"), str(folder / "whole.cu")]
        code, messages = _run(command)
        if code == 0:
            break
        absent = {int(line) - first for line in re.findall(r"rung_module:(\d+):\d+: error", messages)}
        names = [name for i, (_, name) in enumerate(wanted) if i in absent]
        own = f"{folder / 'kernel.cu'}:" in messages
        if not names or own:
            raise CompileError(f"{label} does not compile", _in_terms_of(label, folder, messages), command)
        missing += names
        wanted = [one for one in wanted if one[1] not in names]
    # After a header changed, a process may still have the previous library loaded, so the new one gets another name.
    library = f"kernel-{hashlib.sha256((folder / 'kernel.o.ii').read_bytes()).hexdigest()[:16]}.so"
    command = [rung_program(), "emulate", *_BUILD, "-shared", "-o", str(folder / library), str(folder / "kernel.o")]
    code, messages = _run(command)
    if code != 0:
        raise CompileError(f"{label} does not link", _in_terms_of(label, folder, messages), command)
    with open(folder / "done.json", "w", encoding="utf-8") as file:
        json.dump({"library": library, "missing": missing, "dependencies": _dependencies(folder)}, file)
    (folder / "kernel.o").unlink()
    _prune(folder.parent)
    return Compiled(folder, library, missing)


def _with_trailer(path: Path, source: str, wanted: List[Tuple[str, str]], extern_c: bool) -> Tuple[str, int]:
    """Returns the source with its trailer, and the trailer's line at which `wanted` begins, one entry per line."""
    lines = [f'#line 1 "{path}"', source]
    if extern_c:
        lines = ['extern "C" {', *lines, "}"]
    lines += ['#line 1 "rung_module"', _TRAILER.read_text(encoding="utf-8").rstrip()]
    first = lines[-1].count("\n") + 2
    for kind, name in wanted:
        literal = json.dumps(name)
        value = f"{name}, note" if kind == "variable" else f"&{name}"
        lines.append(f"  rung_module::{kind}(text, {literal}, {value});")
    lines += ["  return rung_module::finish(text);", "}", ""]
    return "\n".join(lines), first


def _in_terms_of(label: str, folder: Path, messages: str) -> str:
    """Returns the compiler's messages with the string's label in place of the cache's paths."""
    messages = messages.replace(str(folder / "kernel.cu"), label)
    messages = re.sub(rf"^.*{re.escape(str(folder))}.*(does not compile|cannot be preprocessed).*\n?", "", messages,
                      flags=re.M)
    return messages.replace(str(folder / "whole.cu"), label)
