# SPDX-License-Identifier: Apache-2.0
"""Makes random calls of every operator through librung.so, with the library's selection of rungs: mostly small calls
and some of medium size, of every type, layout and option, with ordinary values and with the special values of a
contract. Asserts that results are within the bounds of the headers, and NaN, infinite or masked where the headers say
so; that they are bitwise equal on contexts of 1, 2, 3, 7 and 16 threads, and in place; that only results are written
(inputs are read-only, arrays touch inaccessible pages); and that overlapping memory is rejected.

usage: differential.py SOURCE LIBRUNG SECONDS [--seed N] [--processes P] [--case N] [--keep-going] OPERATOR...

Each operator numbers its cases. `--case N --seed S OPERATOR` repeats one case. A case that crashes ends its process,
not the search: the parent reports operator, case and seed.
"""
import argparse
import os
import sys
import time

# NumPy on one thread; the library's teams with all threads of a context, for any number of cores.
for name, value in {"OPENBLAS_NUM_THREADS": "1", "RUNG_CPU_TEAM": "exact"}.items():
    os.environ.setdefault(name, value)

import differential_workers  # noqa: E402, after the environment that NumPy and the library read


def main():
    parser = argparse.ArgumentParser(description="Random calls against the contracts; see this file's first lines.")
    parser.add_argument("source")
    parser.add_argument("library")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=int(time.time() * 1000) % 10**9)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this case of the operators named")
    parser.add_argument("--keep-going", action="store_true", help="report wrong cases and go on")
    parser.add_argument("operators", nargs="+")
    options = parser.parse_args()
    here = [name for name in options.operators if name in differential_workers.OPERATORS]
    if not here:
        sys.exit(f"none of {options.operators} is known; known are {', '.join(differential_workers.OPERATORS)}")
    sys.exit(differential_workers.search(options, here))


if __name__ == "__main__":
    main()
