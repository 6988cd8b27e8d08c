#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launcher.py SOURCE: rung.sh with a fake cmake, a fake ninja and fake packages, which record their arguments.

A command builds only what it needs; help, the version and misspelled words build and install nothing."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()

CMAKE = """#!/bin/bash
echo "cmake $*" >>"$CALLS"
for word in "$@"; do
  case $word in
    -D*) name=${word#-D}; echo "${name%%=*}:STRING=${name#*=}" >>"$ROOT/build/release/CMakeCache.txt.new" ;;
  esac
done
mv "$ROOT/build/release/CMakeCache.txt.new" "$ROOT/build/release/CMakeCache.txt"
touch "$ROOT/build/release/build.ninja"
"""
NINJA = """#!/bin/bash
echo "ninja $*" >>"$CALLS"
echo '[0/1] Re-checking globbed directories...'
for i in {1..40}; do echo "[$i/40] compiling"; done
mkdir -p "$ROOT/build/release/bin"
printf '#!/bin/bash\\necho "program $*"\\n' >"$ROOT/build/release/bin/rung"
chmod +x "$ROOT/build/release/bin/rung"
"""
INSTALLED = "#!/bin/bash\nprintf 'install ok installed'\n"
REFUSED = '#!/bin/bash\necho "$(basename "$0") $*" >>"$CALLS"\nexit 1\n'


class Launcher(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name) / "rung"
        self.calls = pathlib.Path(scratch.name) / "calls"
        (self.root / "rung/workbench").mkdir(parents=True)
        shutil.copy(SOURCE / "rung.sh", self.root)
        (self.root / "rung/core").mkdir()
        shutil.copy(SOURCE / "rung/core/version.h", self.root / "rung/core")
        for source in (SOURCE / "rung/workbench").glob("*.cpp"):
            shutil.copy(source, self.root / "rung/workbench")
        for operator in (SOURCE / "rung/ops").iterdir():
            if operator.is_dir():
                (self.root / "rung/ops" / operator.name).mkdir(parents=True)
        (self.root / "rung/ops/gemm/peers/eigen").mkdir(parents=True)
        (self.root / "rung/ops/gemm/peers/eigen/CMakeLists.txt").touch()
        self.tools = pathlib.Path(scratch.name) / "bin"
        self.tools.mkdir()
        for name, text in (("cmake", CMAKE), ("ninja", NINJA), ("dpkg-query", INSTALLED), ("apt-get", REFUSED),
                           ("nvcc", REFUSED), ("sudo", REFUSED)):
            (self.tools / name).write_text(text, encoding="utf-8")
            (self.tools / name).chmod(0o755)

    def run_launcher(self, *words):
        """Runs rung.sh; returns its exit status, both outputs, and CMake's last arguments."""
        self.calls.write_text("", encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "RUNG_"))}
        environment |= {"PATH": f"{self.tools}:{os.environ['PATH']}", "CALLS": str(self.calls), "ROOT": str(self.root)}
        done = subprocess.run([self.root / "rung.sh", *words], env=environment, text=True, capture_output=True,
                              check=False)
        configured = [line for line in self.calls.read_text(encoding="utf-8").splitlines()
                      if line.startswith("cmake ")]
        return done.returncode, done.stdout, done.stderr, configured[-1].split(" ") if configured else []

    def test_builds_nothing_for_help_version_and_misspelt_words(self):
        for words, status, out, err in (
                (["--help"], 0, "bench        how fast", ""), (["-h"], 0, "./rung.sh test", ""),
                (["--version"], 0, "rung 0.", ""), (["bnch"], 2, "", "no command 'bnch' (did you mean 'bench'?)"),
                (["xyz"], 2, "", "no command 'xyz'\n"), (["rouse"], 2, "", "(did you mean 'reuse'?)"),
                (["litles-law"], 2, "", "(did you mean 'littles-law'?)"), (["--help"], 0, "littles-law  how many", ""),
                (["bench", "gmem"], 2, "", "no operator 'gmem' (did you mean 'gemm'?); accepted: activation_backward"),
                (["peers", "gem"], 2, "", "no operator 'gem'"), (["build", "gemm", "scan"], 2, "", "'scan' given"),
                (["packages", "now"], 2, "", "'now' given"), (["fuzz", "abc"], 2, "", "accepted: seconds"),
                (["test", "--al"], 2, "", "'--al' given; accepted: --all"), (["docs", "x"], 2, "", "'x' given"),
                *((([name, "--help"], 0, f"./rung.sh {name}", "")) for name in
                  ("test", "build", "asan", "fuzz", "lint", "docs", "example", "peers", "packages")),
                (["check", "gmem/threads"], 2, "", "no operator 'gmem'"), (["--hepl"], 2, "", "no command '--hepl'")):
            with self.subTest(words=words):
                code, stdout, stderr, _ = self.run_launcher(*words)
                self.assertEqual(code, status, stderr)
                self.assertIn(out, stdout)
                self.assertIn(err, stderr)
                self.assertEqual(self.calls.read_text(encoding="utf-8"), "")
                self.assertFalse((self.root / "build").exists())

    def test_builds_what_a_command_needs(self):
        for words, wanted in (
                (["list"], ["-DRUNG_OPERATORS=none", "-DRUNG_SIMT=OFF", "-DRUNG_CPU_NATIVE=ON", "-DRUNG_TESTS=OFF"]),
                *(([*words], ["-DRUNG_OPERATORS=none", "-DRUNG_SIMT=OFF"]) for words in
                  (["machine"], ["reuse", "register", "4x8", "--n", "64"], ["littles-law", "--latency", "1ns"],
                   ["conv-shape", "1x1x8x8"], ["work", "tree", "--n", "8"], ["occupancy"])),
                (["bench", "--help"], ["-DRUNG_OPERATORS=none", "-DRUNG_SIMT=OFF"]),
                (["run"], ["-DRUNG_OPERATORS=none"]),
                (["run", "softmax", "--help"], ["-DRUNG_OPERATORS=softmax", "-DRUNG_SIMT=OFF"]),
                (["emulate", "--help"], ["-DRUNG_OPERATORS=none", "-DRUNG_SIMT=ON"]),
                (["bench", "--gate"], ["-DRUNG_OPERATORS="]), (["bench", "--pairs", "3"], ["-DRUNG_OPERATORS=none"]),
                (["bench", "gemm"], ["-DRUNG_OPERATORS=gemm", "-DRUNG_SIMT=OFF", "-DRUNG_PEERS=", "-DRUNG_CUDA=OFF"]),
                (["bench", "gemm", "--backend", "simt"], ["-DRUNG_SIMT=ON"]),
                (["bench", "gemm", "--rungs", "threads,eigen"], ["-DRUNG_PEERS=ON"]),
                (["check", "gemm/threads"], ["-DRUNG_OPERATORS=gemm", "-DRUNG_SIMT=ON"]),
                (["check", "gemm", "--backend", "cpu"], ["-DRUNG_OPERATORS=gemm", "-DRUNG_SIMT=OFF"]),
                (["check", "gemm", "--backend=opencl"], ["-DRUNG_OPERATORS=gemm", "-DRUNG_SIMT=OFF"]),
                (["explain", "scan"], ["-DRUNG_OPERATORS=scan", "-DRUNG_SIMT=ON"]),
                (["emulate", "a.cu"], ["-DRUNG_OPERATORS=none", "-DRUNG_SIMT=ON"]),
                (["nvcc", "-c", "a.cu"], ["-DRUNG_OPERATORS=none", "-DRUNG_SIMT=ON"]),
                (["peers", "gemm"], ["-DRUNG_OPERATORS=gemm", "-DRUNG_PEERS=ON"]),
                (["build", "scan"], ["-DRUNG_OPERATORS=scan", "-DRUNG_SIMT=ON"]),
                (["check"], ["-DRUNG_OPERATORS="])):
            with self.subTest(words=words):
                shutil.rmtree(self.root / "build", ignore_errors=True)
                code, stdout, stderr, configured = self.run_launcher(*words)
                self.assertEqual(code, 0, stderr)
                for option in wanted:
                    self.assertIn(option, configured)
                if words[0] not in ("peers", "build"):
                    self.assertIn("program " + " ".join(words), stdout)

    def test_keeps_what_was_built(self):
        self.run_launcher("bench", "gemm")
        *_, configured = self.run_launcher("check", "scan")
        self.assertIn("-DRUNG_OPERATORS=gemm;scan", configured)
        # Only the link differs: the simulator is omitted again, and no object is compiled twice.
        *_, configured = self.run_launcher("bench", "gemm")
        self.assertIn("-DRUNG_OPERATORS=gemm;scan", configured)
        self.assertIn("-DRUNG_SIMT=OFF", configured)
        *_, configured = self.run_launcher("peers", "gemm")
        self.assertIn("-DRUNG_PEERS=ON", configured)
        for words in (["bench", "gemm"], ["list"]):
            *_, configured = self.run_launcher(*words)
            self.assertEqual(configured, [])  # configured already

    def test_shows_progress_in_a_log(self):
        _, _, stderr, _ = self.run_launcher("bench", "gemm")
        self.assertIn("building the workbench and gemm: 40 steps", stderr)
        for finished in range(4, 40, 4):
            self.assertIn(f"rung.sh: {finished} of 40 steps", stderr)
        self.assertEqual(stderr.count(" of 40 steps"), 9)
        self.assertIn("built in ", stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
