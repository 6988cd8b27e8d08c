# SPDX-License-Identifier: Apache-2.0
"""Times the programs beside it by two builds of `rung`, in turn. usage: speed.py BEFORE AFTER [--json] [--repeat N]
[--only NAME ...]"""
import argparse
import math
import pathlib
import resource
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COUNTED = {"multiply_naive": "SIZE=384", "multiply_tiled": "SIZE=384", "row_sums": "SIZE=1024",
           "softmax_batch": "ROWS=1024", "convolution": "SIZE=768"}


def user_seconds(command):
    """The user time of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    """Measures and prints a line per program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(COUNTED))
    given = parser.parse_args()
    builds = [given.before, given.after]
    logarithms = []
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, name + ".json") for name in ("before", "after")]
        counts = [["--json", str(file)] if given.json else [] for file in files]
        compiling = [min(user_seconds([build, "emulate", *extra, str(HERE / "softmax_batch.cu"), "-D",
                                       "ROWS=8"]) for _ in range(given.repeat)) for build, extra in zip(builds, counts)]
        for name in given.only:
            least = [math.inf, math.inf]
            for _ in range(given.repeat):
                for i, build in enumerate(builds):
                    size = ["-D", COUNTED[name]] if given.json else []
                    command = [build, "emulate", "--threads", "1", *counts[i], *size, str(HERE / (name + ".cu"))]
                    least[i] = min(least[i], user_seconds(command) - compiling[i])
            same = not given.json or files[0].read_text() == files[1].read_text()
            logarithms.append(math.log(least[0] / least[1]))
            print(f"{name:16} {least[0]:6.2f} s {least[1]:6.2f} s  {least[0] / least[1]:5.2f} times"
                  + ("" if same else "  other JSON"), flush=True)
    print(f"geometric mean {math.exp(sum(logarithms) / len(logarithms)):.2f}")


if __name__ == "__main__":
    main()
