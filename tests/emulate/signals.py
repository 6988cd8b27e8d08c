# SPDX-License-Identifier: Apache-2.0
"""`rung emulate` removes its temporary folder if it ends early: by a closed pipe, or by a signal at any moment. usage:
signals.py RUNG"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

GOOD = "#include <unistd.h>\nint main() { sleep(1); return 7; }\n"
# Compiled twice, with an error: first the compilers' messages, then rung's.
BAD = "__global__ void kernel(int* p) {}\nint main() {\n  kernel<<<1, 32>>>(1.5);\n  kernle<<<1, 32>>>(0);\n}\n"
LOUD = '#include <cstdio>\nint main() {\n  for (int i = 0; i < 100000; ++i) puts("a line of the program");\n}\n'


class Bench:
    """A folder with programs, and a temporary folder of `rung emulate` that must be empty afterwards."""

    def __init__(self, rung, folder):
        self.rung, self.folder, self.scratch = rung, pathlib.Path(folder), pathlib.Path(folder, "scratch")
        self.scratch.mkdir()
        self.environment = dict(os.environ, TMPDIR=str(self.scratch))

    def start(self, source, *options, **how):
        """Starts `rung emulate` on this source."""
        (self.folder / "program.cu").write_text(source)
        return subprocess.Popen([self.rung, "emulate", *options, "program.cu"], cwd=self.folder, env=self.environment,
                                **how)

    def left(self, name):
        """Returns the files that the run has left, and removes them."""
        left = os.listdir(self.scratch)
        for one in left:
            shutil.rmtree(self.scratch / one)
        return [f"{name}: left {one}" for one in left]


def wrong_after_closed_pipe(bench):
    """Returns complaints if the reader of messages or output exits early, as with `| head -1`."""
    wrong = []
    for name, source, redirection in (("bad", BAD, "stderr"), ("loud", LOUD, "stdout")):
        for options in ((), ("--checks", "always")):
            how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, redirection: subprocess.PIPE}
            with bench.start(source, *options, **how) as run:
                getattr(run, redirection).close()
                run.wait(100)
            wrong += bench.left(f"closed pipe, {name} {' '.join(options)}")
    return wrong


def wrong_behind_head(bench):
    """Returns complaints if a program whose reader exited prints a message or has another exit code than SIGPIPE's."""
    with bench.start(LOUD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        line = run.stdout.readline()
        run.stdout.close()
        told = run.stderr.read()
        run.wait(100)
    if (line, told, run.returncode) == ("a line of the program\n", "", 128 + signal.SIGPIPE):
        return bench.left("behind head")
    return [f"behind head: exit code {run.returncode}\n{line}{told}"]


def wrong_after_signal(bench):
    """Sends SIGTERM, SIGHUP and SIGINT at several moments: during reading, compiling, linking and running."""
    wrong = []
    for number, name in ((signal.SIGTERM, "TERM"), (signal.SIGHUP, "HUP"), (signal.SIGINT, "INT")):
        for delay in (0, 0.02, 0.3, 0.8, 2):
            with bench.start(GOOD, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
                while run.poll() is None and not os.listdir(bench.scratch):
                    time.sleep(0.001)
                time.sleep(delay)
                run.send_signal(number)
                _, told = run.communicate(timeout=100)
            wrong += bench.left(f"SIG{name} after {delay} s")
            if run.returncode not in (128 + number, 7):  # 7: the program had ended before
                wrong.append(f"SIG{name} after {delay} s: exit code {run.returncode}\n{told}")
    return wrong


def wrong_when_ignored(bench):
    """Expects that signals ignored by nohup do not end it."""
    with bench.start(GOOD, stderr=subprocess.PIPE, text=True,
                     preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as run:
        for _ in range(8):
            time.sleep(0.2)
            run.send_signal(signal.SIGHUP)
        _, told = run.communicate(timeout=100)
    return [] if run.returncode == 7 else [f"nohup: exit code {run.returncode}\n{told}"]


def main():
    # A script's background jobs ignore some signals, and their children inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(sys.argv[1]), folder)
        wrong = []
        for one in (wrong_after_closed_pipe, wrong_behind_head, wrong_after_signal, wrong_when_ignored):
            wrong += one(bench)
    print("\n".join([*wrong, f"{len(wrong)} wrong"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
