# SPDX-License-Identifier: Apache-2.0
"""Runs tests of the Python package by pytest. usage: run.py PACKAGES PROGRAM FILE...
PACKAGES: the folder with the package rung. Without pytest or NumPy the exit code is 77, "skipped" for ctest."""
import importlib.util
import os
import subprocess
import sys

SKIPPED = 77


def main():
    packages, program, *files = sys.argv[1:]
    missing = [name for name in ("pytest", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{sys.executable} has no {' and no '.join(missing)} (Debian and Ubuntu: apt install python3-pytest "
              "python3-numpy python3-hypothesis)")
        return SKIPPED
    path = os.pathsep.join([packages, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "RUNG_PROGRAM": program, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files], env=environment,
                          check=False).returncode


sys.exit(main())
