# SPDX-License-Identifier: Apache-2.0
"""No numbers fitted to a machine in the sources of kernels: kernels state facts (docs/choice.md), and times follow from
the rates in results/*/rates.

usage: facts.py SOURCE    complains; also prints the number of lines of facts"""
import pathlib
import re
import sys

# Files of gemm that select tiles and slices by a model of seconds. The list must only shrink.
PLANS = {"async.hpp", "dots.cu", "few_rows.cu", "gemv.cu", "grouped.cu", "skinny_stream.sm90a.cu", "small_products.cu",
         "small_tensor_products.cu", "split_k.cu", "mma_f64.cu", "tensor_cost.hpp"}

# Functions, also of one line, and lambdas in a rung's description.
FACTS = re.compile(r"^(?:template <[^\n]*>\n)?(?:inline |static )?Work (?:\w+::)*(\w+)\([^{;]*\{"
                   r"(?:[^\n]*\}$|\n.*?^\})|\.(work) = \[.*?\n? *\}(?=,|\})", re.M | re.S)
# Fractions, seconds and rates have a point or an exponent; other numbers in code are integers.
FITTED = re.compile(r"\b\d+\.(?!0\b)\d+(?:e[-+]?\d+)?|\b\d+(?:\.\d+)?e[-+]?\d+")
ESTIMATE = re.compile(r"\bdouble (?:\w+_)?(?:estimate|seconds)\(|\.estimate = |\bSpeed\{"
                      r"|\.speed = \{[^}]*\.(?:bandwidth|peak)|seconds_per|per_second")


def sources(folder):
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".cpp", ".cu", ".cuh", ".hpp") and "peers" not in path.parts:
            yield path


def code_of(path):
    return re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))


def complaints(source):
    """Yields fitted numbers, as (file, complaint)."""
    for operator in sorted(path for path in (source / "rung" / "ops").glob("*") if path.is_dir()):
        for path in sources(operator):
            code = code_of(path)
            for facts in FACTS.finditer(code):
                name = facts.group(1) or facts.group(2)
                for number in FITTED.finditer(facts.group(0)):
                    yield path, f"{name}() has {number.group(0)}, which no code says"
            for estimate in () if path.name in PLANS else ESTIMATE.finditer(code):
                yield path, f"'{estimate.group(0)}': seconds are predicted from facts and rates"


def lines_of_facts(source):
    return sum(facts.group(0).count("\n") + 1
               for folder in ("ops", "cpu", "device") for path in sources(source / "rung" / folder)
               for facts in FACTS.finditer(code_of(path)))


if __name__ == "__main__":
    wrong = list(complaints(pathlib.Path(sys.argv[1])))
    for path, what in wrong:
        print(f"{path}: {what}")
    print(f"{lines_of_facts(pathlib.Path(sys.argv[1]))} lines of facts")
    sys.exit(1 if wrong else 0)
