#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""operator_examples.py CXX ROOT GENERATED: the first C++ listing of each operator's README, which is also the
operator's example in docs/api.md, compiles in a program that includes only rung/rung.hpp. All its variables are
tensors; t is a number.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

TENSORS = """a b beta bias c counts dgamma dk dout dq dsinks dv dw dx dy edges gamma gradient gradients k labels
logits lse m mask mean n o of_each_row outputs parameters q residual result rstd sinks slopes sum table
targets v velocity w weights where x y z""".split()
PROGRAM = """#include <rung/rung.hpp>
void example(rung::Context& context, int t{tensors}) {{
  static_cast<void>(t);
{body}}}
"""


def example(readme):
    found = re.search(r"^```cpp\n(.*?)^```", readme, re.M | re.S)
    return found[1] if found else ""


def errors(command, root, generated, code, scratch):
    """Returns the compiler's messages on an example; "" if it compiles."""
    unused = "".join(f"  static_cast<void>({name});\n" for name in TENSORS)
    tensors = "".join(f", rung::TensorRef {name}" for name in TENSORS)
    source = pathlib.Path(scratch) / "example.cpp"
    source.write_text(PROGRAM.format(tensors=tensors, body=unused + code))
    done = subprocess.run([command, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                           "-Wno-unused-variable", "-Wno-missing-field-initializers", f"-I{root}",
                           f"-I{generated}", source],
                          capture_output=True, text=True, check=False)
    return done.stderr


def main():
    command, root, generated = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    readmes = sorted(root.glob("rung/ops/*/README.md"))
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        for readme in readmes:
            code = example(readme.read_text(encoding="utf-8"))
            said = errors(command, root, generated, code, scratch) if code else "there is no ```cpp"
            if said:
                wrong.append(f"{readme.relative_to(root)}:\n{said[:2000]}")
    print("\n".join(wrong) or f"{len(readmes)} operators' examples compile")
    sys.exit(bool(wrong) or not readmes)


if __name__ == "__main__":
    main()
