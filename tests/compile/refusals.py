#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""refusals.py CXX ROOT: a call that must not compile gives a message that names the reason, in few lines.

Also tests clang++ if it is installed: its messages are worded differently.
"""
import pathlib
import shutil
import subprocess
import sys

MOST_LINES = 15
CONST = "the_elements_are_const_but_this_tensor_is_written"
NO_DTYPE = "rung_has_no_DType_for_these_elements"
SCATTERED = "the_elements_are_not_contiguous_in_memory"
TEMPORARY = "the_container_is_temporary_and_its_elements_would_be_gone"
UNTYPED = "a_pointer_to_void_or_byte_needs_a_DType"
TYPED = "a_container_comes_without_a_DType"
NUMBER = "a_number_is_no_tensor_pass_its_address_and_the_shape_1"
REASONS = {
    1: CONST, 2: CONST, 3: CONST, 4: CONST, 5: CONST, 6: CONST,
    10: NO_DTYPE, 11: NO_DTYPE, 12: NO_DTYPE, 13: NO_DTYPE, 14: NO_DTYPE,
    20: SCATTERED, 21: SCATTERED, 30: TEMPORARY, 31: TEMPORARY, 40: UNTYPED, 41: TYPED, 50: NUMBER,
    51: NUMBER,
}


def compile_case(compiler, root, case):
    source = root / "tests" / "compile" / "refused_arguments.cpp"
    return subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Werror=narrowing", f"-I{root}", f"-DCASE={case}",
                           source], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})


def wrong_with(compiler, root):
    """Returns complaints about the compiler's messages."""
    wrong = []
    accepted = compile_case(compiler, root, 0)
    if accepted.returncode != 0:
        wrong.append(f"{compiler}: case 0 does not compile:\n{accepted.stderr}")
    for case, reason in REASONS.items():
        done = compile_case(compiler, root, case)
        lines = done.stderr.splitlines()
        if "_Float16" in done.stderr and reason not in done.stderr:
            continue  # a compiler without that type
        if done.returncode == 0:
            wrong.append(f"{compiler}: case {case} compiles")
        elif reason not in done.stderr or len(lines) > MOST_LINES:
            wrong.append(f"{compiler}: case {case}: {len(lines)} lines, expected at most {MOST_LINES} with {reason}:\n"
                         + "\n".join(lines[:20]))
    return wrong


def main():
    compiler, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    wrong = wrong_with(compiler, root)
    clang = shutil.which("clang++")
    if clang:
        wrong += wrong_with(clang, root)
    print("\n".join(wrong) or f"{len(REASONS)} refusals name their reason")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
