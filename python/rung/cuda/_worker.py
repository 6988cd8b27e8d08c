# SPDX-License-Identifier: Apache-2.0
"""The process of the simulated device (worker.cpp), one per Python process."""
import atexit
import collections
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Deque, Dict, Optional, Tuple

from . import _compile
from ._findings import CudaError, TimeoutError, WorkerError  # pylint: disable=redefined-builtin

_LONGEST_ENDING = 15.0  # seconds for a stopped worker to report its position


class Worker:
    """A running worker. Requests of different threads are serialized."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.RLock()
        self.alive = True
        self.counting = False
        self.checks = "always"
        self.unchecked = 0  # number of unchecked launches so far
        self.loaded: Dict[str, Dict[str, Any]] = {}  # descriptions of modules, by library
        self.files: Dict[str, Any] = {}              # modules, by the path of their source
        self.to_free: Deque[int] = collections.deque()  # freed by finalizers, which may run within a request
        self._shown = 0  # bytes of kernels' output already passed on
        self._start_folder = os.getcwd()  # base of the relative file names in findings
        program = _compile.worker_program()
        self._folder = tempfile.mkdtemp(prefix="rung-cuda-")
        self._out = open(os.path.join(self._folder, "out"), "w+b")  # pylint: disable=consider-using-with
        self._err = open(os.path.join(self._folder, "err"), "w+b")  # pylint: disable=consider-using-with
        ours, theirs = socket.socketpair()
        environment = dict(os.environ)
        environment.update({
            "RUNG_EMULATE_REPORT": os.path.join(self._folder, "report"), "RUNG_EMULATE_SOURCES": "",
            "RUNG_EMULATE_CAPABILITY": "90", "RUNG_EMULATE_TELL_LATER": "1", "RUNG_EMULATE_CHECKS": "1",
            "RUNG_EMULATE_COUNTERS": "0", "RUNG_EMULATE_RECORDED_LAUNCHES": "always", "RUNG_EMULATE_LEAKS": "0",
            "RUNG_EMULATE_DEVICES": "1", "RUNG_SIMT_ORDER": "forward"})
        # pylint: disable-next=consider-using-with
        self._process = subprocess.Popen([program, str(theirs.fileno())], pass_fds=[theirs.fileno()],
                                         stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err, env=environment,
                                         start_new_session=True)
        theirs.close()
        self._socket = ours

    def request(self, *words: Any, data: Any = b"", timeout: Optional[float] = None) -> bytes:
        """Sends a request and returns the reply. Raises CudaError with the worker's message if it rejects the
        request."""
        with self.lock:
            self._require_alive()
            while self.to_free:
                self._exchange(("free", self.to_free.popleft()), b"", None)
            return self._exchange(words, data, timeout)

    def request_json(self, *words: Any, data: Any = b"") -> Dict[str, Any]:
        return json.loads(self.request(*words, data=data).decode("utf-8", "replace"))

    def _require_alive(self) -> None:
        if self.pid != os.getpid():
            raise WorkerError("this device memory or module belongs to the parent process: the simulated device is not "
                              "shared by fork; allocate and compile in the child")
        if not self.alive:
            raise WorkerError("the process of the simulated device has ended and its memory is lost: allocate again")

    def _exchange(self, words: Tuple[Any, ...], data: Any, timeout: Optional[float]) -> bytes:
        view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)
        head = " ".join(str(word) for word in words) + f" {view.nbytes}\n"
        try:
            self._socket.settimeout(None)
            self._socket.sendall(head.encode())
            if view.nbytes:
                self._socket.sendall(view)
            status = self._receive_line(timeout)
            kind, size = status.split()
            payload = self._receive(int(size))
        except socket.timeout:
            text = self.stop(signal.SIGALRM)
            raise TimeoutError(f"a kernel did not end within {timeout:g} s and was stopped; its device memory is lost\n"
                               + text) from None
        except (OSError, EOFError):
            raise WorkerError("the process of the simulated device ended unexpectedly; its memory is lost\n"
                              + self.stop(None)) from None
        except BaseException:  # Ctrl-C: the next request would read this request's reply
            self.stop(signal.SIGTERM)
            raise
        self.pass_output()
        if kind != "ok":
            raise CudaError(payload.decode("utf-8", "replace"))
        return payload

    def _receive_line(self, timeout: Optional[float]) -> str:
        end = None if timeout is None else time.monotonic() + timeout
        line = b""
        while not line.endswith(b"\n"):
            if end is not None:
                self._socket.settimeout(max(0.001, end - time.monotonic()))
            one = self._socket.recv(1)
            if not one:
                raise EOFError
            line += one
        self._socket.settimeout(None)
        return line.decode()

    def _receive(self, size: int) -> bytes:
        data = bytearray(size)
        view, at = memoryview(data), 0
        while at < size:
            got = self._socket.recv_into(view[at:])
            if got == 0:
                raise EOFError
            at += got
        return bytes(data)

    def pass_output(self) -> None:
        """Writes the kernels' printed output to sys.stdout, so that a notebook shows it."""
        if os.fstat(self._out.fileno()).st_size == self._shown:
            return
        text = os.pread(self._out.fileno(), 1 << 24, self._shown)
        self._shown += len(text)
        sys.stdout.write(text.decode("utf-8", "replace"))
        sys.stdout.flush()

    def stop(self, number: Optional[int]) -> str:
        """Ends the worker, by signal `number` if given; returns its last output."""
        self.alive = False
        if number is not None and self._process.poll() is None:
            self._process.send_signal(number)
        try:
            self._process.wait(_LONGEST_ENDING if number is not None else 5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._socket.close()
        self.pass_output()
        with open(self._err.name, "rb") as file:
            text = file.read().decode("utf-8", "replace")[-4000:].strip()
        self._remove_files()
        return self.in_terms_of_strings(text)

    def module_of(self, file: str) -> Any:
        """Returns the module whose source a finding names; None for a header."""
        return self.files.get(os.path.join(self._start_folder, file))

    def in_terms_of_strings(self, text: str) -> str:
        for path, module in self.files.items():
            text = text.replace(path + ":", module.label + ", line ")
        return text

    def close(self) -> None:
        if self.pid != os.getpid() or not self.alive:
            return
        self.alive = False
        self._process.kill()
        self._process.wait()
        self._socket.close()
        self._remove_files()

    def _remove_files(self) -> None:
        self._out.close()
        self._err.close()
        shutil.rmtree(self._folder, ignore_errors=True)


_current: Optional[Worker] = None
_current_lock = threading.Lock()


def current() -> Worker:
    """Returns the worker of this process; starts one if there is none or the last one has ended."""
    global _current  # pylint: disable=global-statement
    with _current_lock:
        if _current is None or not _current.alive or _current.pid != os.getpid():
            _current = Worker()
        return _current


def _at_fork() -> None:
    global _current, _current_lock  # pylint: disable=global-statement
    _current, _current_lock = None, threading.Lock()


@atexit.register
def _at_exit() -> None:
    if _current is not None:
        _current.close()


os.register_at_fork(after_in_child=_at_fork)
