# SPDX-License-Identifier: Apache-2.0
"""A machine without libOpenCL.so.1 lacks only the OpenCL backend. usage: absent.py RUNG"""
import os
import subprocess
import sys


def run(program, *words):
    # The variable names the library to load in place of libOpenCL.so.1; this one does not exist.
    environment = {**os.environ, "RUNG_OPENCL_LIBRARY": "libOpenCL.so.none"}
    return subprocess.run([program, *words], capture_output=True, text=True, env=environment, check=False)


def main():
    wrong = []
    asked = run(sys.argv[1], "check", "elementwise", "--backend", "opencl")
    if asked.returncode == 0 or "libOpenCL.so.none not found" not in asked.stderr:
        wrong.append(f"check --backend opencl: {asked.returncode}, {asked.stderr}")
    listed = run(sys.argv[1], "list", "elementwise")
    if listed.returncode != 0 or "libOpenCL.so.none not found" not in listed.stdout + listed.stderr:
        wrong.append(f"list: {listed.returncode}, {listed.stdout}{listed.stderr}")
    checked = run(sys.argv[1], "check", "elementwise", "--problem", "f32 100,add", "--brief")
    if checked.returncode != 0:
        wrong.append(f"check: {checked.returncode}, {checked.stderr}")
    print("\n".join(wrong) or "absent without harm")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
