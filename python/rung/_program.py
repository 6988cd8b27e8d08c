# SPDX-License-Identifier: Apache-2.0
"""The program `rung`: its location, and its JSON output.

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

    $RUNG_PROGRAM names it; otherwise it is the first found of the package's own program, the one in the build tree
    around the package, and the one on PATH.
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
    # PATH also leads to this package's console script, which would call itself here.
    if found and not _is_script(found):
        return found
    raise error("the program rung is not found beside the package or on PATH; install the package, or set RUNG_PROGRAM "
                "to the program's path", "not_available")


def _is_script(path):
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:  # the file may be executable, but not readable
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
    """Parser of the program's standard error: progress lines and messages."""

    def __init__(self, report):
        self._report = report
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self.messages = []

    def feed(self, data, final=False):
        lines = re.split(r"[\r\n]+", self._rest + self._decoder.decode(data, final))
        # A progress line ends with the control sequence "erase to end of line", not with a newline.
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
        """Return the error messages, without the program's name."""
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
    """End a child that is still running: by SIGINT, as Ctrl-C does, then by SIGKILL."""
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
            # A separate session: Ctrl-C reaches this process alone, which then ends the child.
            try:
                child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=theirs,
                                         env=environment, start_new_session=True)
            except OSError as failed:
                raise error(f"{command[0]} cannot be run: {failed.strerror}", "not_available") from None
            os.close(theirs)
            theirs = -1
            try:
                while True:
                    # A grandchild may hold the terminal open, so the loop also polls for the child's end.
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

    `progress` is a function that is called with the fraction done and the current item: `progress(0.25, "f32 64x64")`.
    True shows a line on the terminal or in the notebook, False shows nothing, and None shows the line only if the
    output is interactive. `file` is for commands that write their JSON to a file, `--json FILE`.

    Raises rung.Error with the program's message. Ctrl-C ends the program, too.
    """
    from rung import notebook
    command = [program(), *map(str, arguments)]
    with notebook.progress_line(progress) as report, tempfile.TemporaryDirectory() as folder:
        written = os.path.join(folder, "rung.json")
        # --json comes last, since it may take a value.
        command += ["--json", written] if file else ["--json"]
        status, output, said = _call(command, report)
        if status in (0, 1) and file:
            with open(written, "rb") as result:
                output = result.read()
    # Status 1 means a wrong result, which the JSON reports.
    if status not in (0, 1):
        ended = f"rung {arguments[0]} ended by signal {-status}" if status < 0 else f"rung {arguments[0]} failed"
        raise error(said.message() or ended, _CODES.get(status, "internal"))
    try:
        return json.loads(output)
    except ValueError:
        raise error(said.message() or f"rung {arguments[0]}: printed no JSON", "internal") from None
