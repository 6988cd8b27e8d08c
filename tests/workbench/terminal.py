# SPDX-License-Identifier: Apache-2.0
"""The program on a terminal, in a pipe and under a shell's completion. usage: terminal.py RUNG"""
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

RUNG = os.path.abspath(sys.argv.pop(1))
ESCAPE = re.compile(r"\033\[[0-9;]*[mK]")


def environment(**variables):
    """Returns this process's environment, without variables that set width and color, and with `variables`."""
    fixed = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    kept = {name: value for name, value in os.environ.items() if name not in fixed}
    kept["TERM"] = "xterm"
    kept.update(variables)
    return kept


def in_pipe(*words, **variables):
    done = subprocess.run([RUNG, *words], env=environment(**variables), capture_output=True, text=True, timeout=100,
                          check=False)
    return done.stdout + done.stderr


def on_terminal(columns, *words, **variables):
    """Returns the program's output on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def end():
        """Writes a mark after all output. Closing the terminal instead may discard unread output."""
        try:
            process.wait(timeout=100)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.write(theirs, b"\0")

    with subprocess.Popen([RUNG, *words], env=environment(**variables), stdin=theirs, stdout=theirs,
                          stderr=theirs) as process:
        waiter = threading.Thread(target=end)
        waiter.start()
        text = b""
        while not text.endswith(b"\0"):
            text += os.read(ours, 65536)
        waiter.join()
    os.close(theirs)
    os.close(ours)
    return text[:-1].decode().replace("\r\n", "\n")


def interrupted(mark, *words):
    """Returns the program's output on a terminal where Ctrl-C is pressed once it has written `mark`, and its status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    text = ""
    with subprocess.Popen([RUNG, *words], env=environment(), stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        killer = threading.Timer(100, process.kill)
        killer.start()
        try:
            while True:
                before = mark in text
                text += os.read(ours, 65536).decode(errors="replace")
                if mark in text and not before:
                    process.send_signal(signal.SIGINT)
        except OSError:  # the program has ended
            pass
        code = process.wait()
        killer.cancel()
    os.close(ours)
    return text.replace("\r\n", "\n"), code


def width(text):
    """Returns the width of the widest final line: a progress line overwrites itself."""
    return max((len(line.split("\r")[-1]) for line in ESCAPE.sub("", text).split("\n")), default=0)


class Width(unittest.TestCase):
    COMMANDS = (["list"], ["list", "softmax"], ["check", "--help"], ["amdahl", "0.9"], ["occupancy"], ["--help"])

    def test_columns_decide_in_a_pipe(self):
        for columns in (40, 60, 80, 200):
            for words in self.COMMANDS:
                if columns == 40 and "--help" in words:
                    continue  # examples, which users copy, stay on one line
                text = in_pipe(*words, COLUMNS=str(columns))
                self.assertLessEqual(width(text), columns, text)
        self.assertGreater(width(in_pipe("list", COLUMNS="200")), width(in_pipe("list", COLUMNS="60")))

    def test_a_pipe_without_columns_is_a_page(self):
        self.assertEqual(in_pipe("list"), in_pipe("list", COLUMNS="100"))

    def test_a_terminal_decides(self):
        for columns in (60, 80, 132):
            for words in self.COMMANDS:
                text = on_terminal(columns, *words)
                self.assertLessEqual(width(text), columns, text)
                self.assertEqual(ESCAPE.sub("", text), in_pipe(*words, COLUMNS=str(columns)))

    def test_the_overview_fits_one_screen(self):
        self.assertLessEqual(on_terminal(80, "list").count("\n"), 24)

    def test_wrong_words_fit_too(self):
        self.assertLessEqual(width(on_terminal(60, "list", "--nothing")), 60)


class Interrupt(unittest.TestCase):
    """Ctrl-C: the program ends as if killed by it, and prints the finished results."""

    def ended(self, mark, *words):
        text, code = interrupted(mark, *words)
        self.assertEqual(code, -signal.SIGINT, text)
        self.assertTrue(text.endswith("\n") or text.endswith("\033[K"), text)
        self.assertIn("rung: interrupted: ", text)
        return ESCAPE.sub("", text)

    def test_bench(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.json")
            text = self.ended("timing softmax best on f32 64x65", "bench", "softmax", "f32 64x64", "f32 64x65",
                              "--backend", "cpu", "--rungs", "safe,best", "--pairs", "1000", "--output", path)
            self.assertRegex(text, r"\nsoftmax f32 64x64 on cpu")
            self.assertRegex(text, r"\n +best +[0-9.]+ [num]s ")
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            self.assertFalse(kept["complete"])
            self.assertIn("f32 64x64", {row["problem"] for row in kept["rows"] if row["rung"] == "safe"})

    def test_a_pipe_hears_it_too(self):
        with subprocess.Popen([RUNG, "bench", "softmax", "f32 64x64", "--backend", "cpu", "--rungs", "safe", "--pairs",
                               "1000"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            process.stdout.readline()  # the estimated duration: the versions are timed next
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=100)
        self.assertIn("stopping after the call that runs", errors)

    def test_check(self):
        text = self.ended("[##", "check", "softmax", "--backend", "cpu")
        self.assertRegex(text, r"\nsoftmax +cpu +safe +[1-9]")
        self.assertIn(" 0 failed", text)

    def test_survey(self):
        text = self.ended("  3 %", "survey", "softmax", "--backend", "cpu", "--count", "100")
        self.assertRegex(text, r"\d problems? timed")

    def test_before_anything_is_finished(self):
        text, code = interrupted("measuring", "machine", "--refresh")
        self.assertEqual(code, -signal.SIGINT, text)
        self.assertTrue(text.endswith("\n"), text)


class Color(unittest.TestCase):
    def test_where_the_terminal_has_it(self):
        self.assertRegex(on_terminal(80, "list"), ESCAPE)
        self.assertRegex(on_terminal(80, "nothing"), ESCAPE)
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotRegex(on_terminal(80, "list", **variables), ESCAPE, variables)
        self.assertNotRegex(on_terminal(80, "list", "--color=never"), ESCAPE)

    def test_pipes_only_when_asked(self):
        self.assertNotRegex(in_pipe("list"), ESCAPE)
        self.assertRegex(in_pipe("list", FORCE_COLOR="1"), ESCAPE)
        self.assertRegex(in_pipe("list", "--color", "always", NO_COLOR="1"), ESCAPE)


class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        os.symlink(RUNG, os.path.join(self.folder, "rung"))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def bash(self, *words):
        """Returns bash's completions of the last word."""
        with open(os.path.join(self.folder, "x.npy"), "w", encoding="ascii"):
            pass
        script = ("source <(rung completion bash); complete -p rung >/dev/null || exit 9; COMP_WORDS=(rung \"$@\"); "
                  "COMP_CWORD=$#; _rung_complete 2>/dev/null; printf '%s\\n' \"${COMPREPLY[@]}\"")
        path = self.folder + os.pathsep + os.environ["PATH"]
        done = subprocess.run(["bash", "-c", script, "bash", *words], env=environment(PATH=path), cwd=self.folder,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_bash(self):
        self.assertEqual(self.bash("ben"), ["bench"])
        self.assertEqual(self.bash("check", "transp"), ["transpose"])
        self.assertEqual(self.bash("explain", "softmax/warp_p"), ["softmax/warp_per_row"])
        self.assertEqual(self.bash("list", "--js"), ["--json"])
        self.assertEqual(self.bash("list", "--color", "=", "ne"), ["never"])
        self.assertEqual(self.bash("run", "softmax", "x."), ["x.npy"])
        self.assertEqual(self.bash("emulate", "x."), ["x.npy"])
        self.assertEqual(self.bash("nothing", "x"), [])
        self.assertEqual(self.bash("explain", "softmax", "--gpu", "a4"), ["a40"])
        # A blank in a candidate does not end the word, and an open quote is not closed twice.
        self.assertEqual(self.bash("check", "softmax", "--variant", "plain\\ a"), ["plain\\", "adversarial"])
        self.assertEqual(self.bash("check", "softmax", "--variant", "'plain a"), ["plain", "adversarial"])

    def test_other_shells_read_their_scripts(self):
        for shell, check in (("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])):
            script = os.path.join(self.folder, shell)
            with open(script, "w", encoding="utf-8") as file:
                file.write(in_pipe("completion", shell))
            self.assertGreater(os.path.getsize(script), 100)
            if shutil.which(shell):
                subprocess.run([*check, script], check=True, timeout=60)


if __name__ == "__main__":
    # A script's background jobs ignore the signal, and their children inherit this, as the program would.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main()
