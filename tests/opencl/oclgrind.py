# SPDX-License-Identifier: Apache-2.0
"""OpenCL kernels under Oclgrind, a simulated device that reports data races, out-of-bounds accesses and more.

usage: oclgrind.py kernels RUNG OPERATOR    every rung of the operator, on small problems: nothing is reported
       oclgrind.py planted TEST_OPENCL      kernels with a planted fault: it is reported, and nothing in the right one
Exits with 77, skipped, where Oclgrind is not installed."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# Shapes with partial groups and tiles, and several passes or groups; small, since work-items are interpreted.
PROBLEMS = {
    "elementwise": ["f32 300,add"],
    "gemm": ["f32 35x37x17,batch=2,beta=0.5"],
    "transpose": ["f32 37x41", "f32 2x5x40"],
    "reduce": ["f32 1000", "f32 4500"],
    "stencil": ["f32 19x33,mask=3x5", "f32 70,mask=4,iterations=2"],
    "histogram": ["u8 3000,bins=256", "f32 2500,bins=13,outside", "i32 2100,bins=77,low=-50,high=60"],
}


def watched(command):
    """Runs a command under Oclgrind. Returns (its exit status and output, Oclgrind's report)."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        done = subprocess.run(["oclgrind", "--data-races", "--uninitialized", "--check-api", "--max-errors", "20",
                               # Oclgrind 21.10 does not support `freeze`, which the optimizer emits.
                               "--build-options", "-cl-opt-disable", "--log", str(log),
                               *command], capture_output=True, text=True, check=False)
        return done, log.read_text(encoding="utf-8") if log.exists() else ""


def rungs_of(program, operator):
    listed = json.loads(subprocess.run([program, "list", operator, "--json"], check=True, capture_output=True,
                                       text=True).stdout)
    return [rung["rung"] for rung in listed if rung["backend"] == "opencl" and not rung["peer"]]


def check_kernels(program, operator):
    failed = 0
    for rung in rungs_of(program, operator):
        ran = False
        for problem in PROBLEMS[operator]:
            done, report = watched([program, "check", f"{operator}/{rung}", "--backend", "opencl", "--brief",
                                    "--problem", problem])
            passed = re.search(r"[1-9]\d* passed", done.stdout)
            ran = ran or bool(passed)
            if done.returncode != 0 or report:
                print(f"{operator}/{rung}, {problem}: {done.returncode}\n{done.stdout}{done.stderr}{report}")
                failed += 1
        if not ran:
            print(f"{operator}/{rung}: nothing ran")
            failed += 1
        print(f"{operator}/{rung}: looked at")
    return failed


def check_planted(program):
    failed = 0
    for name, words in (("Nothing", None), ("Overrun", "Invalid write"), ("Race", "data race")):
        done, report = watched([program, "--gtest_also_run_disabled_tests",
                                f"--gtest_filter=OpenCl.DISABLED_Planted{name}"])
        found = words in report if words else not report
        if "1 test from" not in done.stdout or "SKIPPED" in done.stdout or not found:
            print(f"planted: {name}: wanted in Oclgrind's report is {words or 'nothing'}, there is:\n{report}\n"
                  f"{done.stdout}{done.stderr}")
            failed += 1
    return failed


def main():
    if shutil.which("oclgrind") is None:
        print("skipped: oclgrind is not installed")
        return SKIPPED
    if sys.argv[1] == "planted":
        return check_planted(sys.argv[2]) != 0
    return check_kernels(sys.argv[2], sys.argv[3]) != 0


if __name__ == "__main__":
    sys.exit(main())
