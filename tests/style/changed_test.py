# SPDX-License-Identifier: Apache-2.0
"""changed.py on a small repository: what it says for each kind of change. usage: changed_test.py"""
import pathlib
import subprocess
import sys
import tempfile

from changed import to_look_at

FILES = {
    "README.md": "", "docs/a.md": "", "tools/a.py": "", "tests/style/style.py": "",
    "rung/core/error.hpp": "struct Error {};\n",
    "rung/ops/gemm/gemm.hpp": "", "rung/ops/gemm/README.md": "", "rung/ops/gemm/cuda/010_naive.cu": "",
    "rung/ops/conv/cpu/010_naive.cpp": '#include "rung/ops/gemm/gemm.hpp"\n',
    "rung/ops/conv/op/axes.hpp": "",
    "rung/ops/pool/pool.hpp": '#include "rung/ops/conv/op/axes.hpp"\n',
    "rung/ops/scan/scan.hpp": "",
}
# What is written to (or, with "", removed), and what is then to be looked at.
CASES = [
    ({}, "nothing"),
    ({"README.md": "x", "docs/a.md": "x", "tools/a.py": "x", "tests/style/style.py": "x"}, "nothing"),
    ({"rung/ops/gemm/README.md": "x"}, "nothing"),
    ({"rung/ops/scan/scan.hpp": "x"}, "scan"),
    ({"rung/ops/scan/cpu/010_new.cpp": "x"}, "scan"),          # not tracked yet
    ({"rung/ops/gemm/cuda/010_naive.cu": "x"}, "conv;gemm;pool"),  # with who uses it, and who uses those
    ({"rung/ops/pool/pool.hpp": "x", "rung/ops/scan/scan.hpp": "x"}, "pool;scan"),
    ({"rung/ops/scan/scan.hpp": ""}, "nothing"),               # the whole operator is gone
    ({"rung/core/error.hpp": "x"}, "everything"),
    ({"rung/core/error.hpp": "", "rung/ops/scan/error.hpp": "struct Error {};\n"}, "everything"),  # moved
    *(({path: "x"}, "everything") for path in (
        "rung/cpu/a.hpp", "rung/device/a.hpp", "rung/simt/a.cpp", "rung/peers/a.hpp", "rung/bench/a.cpp",
        "tests/support/a.hpp", "tests/c_api/check.c", "tests/CMakeLists.txt", "cmake/a.cmake", "rung.sh")),
    ({"tests/core/new_test.cpp": "x"}, "everything"),
    ({"rung/ops/scan/scan.hpp": "x", "CMakeLists.txt": "x"}, "everything"),
]


def git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True,
                          capture_output=True, text=True).stdout.strip()


def main():
    failed = 0
    for changes, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in FILES.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            git(root, "init", "-q")
            git(root, "add", ".")
            git(root, "commit", "-q", "-m", "all")
            commit = git(root, "rev-parse", "HEAD")
            for name, text in sorted(changes.items(), key=lambda change: not change[1]):  # removals last
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                if text:
                    (root / name).write_text(text, encoding="utf-8")
                else:
                    (root / name).unlink()
                    (root / name).parent.rmdir()
                    git(root, "add", ".")  # or git sees no move
            found = to_look_at(root, commit)
            if to_look_at(root, "0" * 40) != "everything":
                print("an unknown commit is not taken for everything")
                failed += 1
            if found != expected:
                print(f"{changes}: '{found}', not '{expected}'")
                failed += 1
    print(f"{len(CASES)} cases, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
