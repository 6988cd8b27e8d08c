# SPDX-License-Identifier: Apache-2.0
"""The program `rung`: where it is, and what it answers as JSON.

Nothing here needs the extension module.
"""
import codecs
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

_PACKAGE = pathlib.Path(os.path.abspath(__file__)).parent  # not resolved: a build tree may hold links
_INSTALLED = _PACKAGE / "_prefix" / "bin" / "rung"
_BAR = re.compile(r"\[[#.]*\] +(\d+) % +(.*)")  # a line of the program's progress on a terminal
_CODES = {2: "invalid_argument", 3: "not_available"}  # by the program's exit status
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def error(message, code="invalid_argument"):
    """Return the exception for a message: rung.Error, or its base in a package without the extension module."""
    import rung
    return rung.Error(message, code) if hasattr(rung, "Error") else ValueError(message)


def _candidates():
    yield _INSTALLED
    yield _PACKAGE.parent.parent / "bin" / "rung"  # build/dev/python/rung
    trees = (_PACKAGE.parent.parent / "build").glob("*/bin/rung")  # python/rung of the source tree
    yield from sorted(trees, key=os.path.getmtime, reverse=True)


def program():
    """Return the path of the program `rung`.

    $RUNG_PROGRAM names it; otherwise it is the package's own, that of the build tree around the package, or the one
    on PATH, in this order.
    """
    named = os.environ.get("RUNG_PROGRAM")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise error(f"RUNG_PROGRAM: '{named}' given, which is no program; accepted: the path of the program rung")
        return named
    for path in _candidates():
        if os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("rung")
    # The console script of this package is found there, too: it would only come back here.
    if found and not _is_script(found):
        return found
    raise error("the program rung is not found beside the package or on PATH; install the package, or set RUNG_PROGRAM "
                "to the program's path", "not_available")


def _is_script(path):
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:  # it may be executable alone
        return False


def main():
    """Run the program with this process's arguments: the console script `rung`."""
    try:
        path = program()
        if os.path.realpath(path) == os.path.realpath(sys.argv[0]):
            raise error(f"RUNG_PROGRAM: '{path}' given, which is this command; accepted: the path of the program rung")
    except ValueError as failed:
        print(f"rung: {failed}", file=sys.stderr)
        sys.exit(3)
    os.execv(path, [path, *sys.argv[1:]])


class _Progress:
    """Reads what the program prints on standard error: its progress, and messages."""

    def __init__(self, report):
        self._report = report
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self.messages = []

    def feed(self, data, final=False):
        lines = re.split(r"[\r\n]+", self._rest + self._decoder.decode(data, final))
        # A drawn line ends with "erase to the end", not with a newline.
        self._rest = "" if final or lines[-1].endswith("\x1b[K") else lines.pop()
        for line in lines:
            self._take(_CONTROL.sub("", line).rstrip())

    def _take(self, line):
        drawn = _BAR.fullmatch(line)
        if drawn:
            self._report(int(drawn[1]) / 100, drawn[2])
        elif line:
            self.messages.append(line)

    def message(self):
        """Return what was wrong, without the program's name."""
        errors = [line.removeprefix("rung: ") for line in self.messages if line.startswith("rung: ")]
        return "\n".join(errors or self.messages)


def _terminal():
    """Return both ends of a pseudo terminal that is wide enough for every message."""
    import fcntl
    import struct
    import termios
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 1000, 0, 0))
    return ours, theirs


def _stop(child):
    """End a child that was not waited for: as Ctrl-C does, then by force."""
    for sent, seconds in ((signal.SIGINT, 0.5), (signal.SIGINT, 1), (signal.SIGKILL, None)):
        if child.poll() is not None:
            return
        child.send_signal(sent)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            pass


def _call(command, report):
    """Run a command; return (exit status, standard output, the reader of standard error)."""
    environment = {**os.environ, "NO_COLOR": "1"}
    for name in ("COLUMNS", "FORCE_COLOR"):
        environment.pop(name, None)
    progress = _Progress(report)
    ours, theirs = _terminal()
    try:
        with tempfile.TemporaryFile() as output:
            # A session of its own: Ctrl-C reaches this process alone, which then ends the child.
            try:
                child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=theirs,
                                         env=environment, start_new_session=True)
            except OSError as failed:
                raise error(f"{command[0]} cannot be run: {failed.strerror}", "not_available") from None
            os.close(theirs)
            theirs = -1
            try:
                while True:
                    # A grandchild may hold the terminal open: the child's end is looked for, too.
                    ready = select.select([ours], [], [], 0.1)[0]
                    if not ready and child.poll() is not None:
                        break
                    try:
                        data = os.read(ours, 65536) if ready else b""
                    except OSError:  # EIO: the other end is closed
                        break
                    progress.feed(data)
                child.wait()
            finally:
                _stop(child)
            progress.feed(b"", final=True)
            output.seek(0)
            return child.returncode, output.read(), progress
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)


def run(*arguments, progress=None, file=False):
    """Run `rung ARGUMENTS... --json` and return what it printed, parsed.

    `progress` is called with the share that is done and what is being done: `progress(0.25, "f32 64x64")`. True shows
    a line on the terminal or in the notebook, False shows nothing, and None shows it where a person would see it.
    `file` is for commands that write their JSON to a file, `--json FILE`.

    Raises rung.Error with the program's message. Ctrl-C ends the program, too.
    """
    from rung import notebook
    command = [program(), *map(str, arguments)]
    with notebook.progress_line(progress) as report, tempfile.TemporaryDirectory() as folder:
        written = os.path.join(folder, "rung.json")
        # Last: it may take a value.
        command += ["--json", written] if file else ["--json"]
        status, output, said = _call(command, report)
        if status in (0, 1) and file:
            with open(written, "rb") as result:
                output = result.read()
    # 1 is that a result was wrong, which the JSON tells.
    if status not in (0, 1):
        ended = f"rung {arguments[0]} ended by signal {-status}" if status < 0 else f"rung {arguments[0]} failed"
        raise error(said.message() or ended, _CODES.get(status, "internal"))
    try:
        return json.loads(output)
    except ValueError:
        raise error(said.message() or f"rung {arguments[0]}: printed no JSON", "internal") from None
