# SPDX-License-Identifier: Apache-2.0
"""Rungs whose algorithm is not in their file: a kernel that only calls a helper, a CPU rung without a loop, a forward
rung with a backward kernel."""
import re

FUNCTION = re.compile(r"__device__[^;{}()]*?\b(\w+)\(")
CALL = re.compile(r"\b(\w+)(?:<[^;{}]*?>)?\(")
LOOP = re.compile(r"\b(?:for|while)\s*\(")
ELEMENT = re.compile(r"\]\s*[-+*/%|&^,;)=]")  # an indexed operand
SHORT = 10  # lines


def code_of(path):
    return re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))


def bodies(code):
    """Yields the text between the braces of each __global__ function."""
    for kernel in re.finditer(r"__global__", code):
        begin, depth = kernel.end(), 0
        while begin < len(code) and not (depth == 0 and code[begin] in "{;"):
            depth += {"(": 1, ")": -1}.get(code[begin], 0)
            begin += 1
        end, depth = begin, 0
        while end < len(code) and code[begin] == "{":
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            if depth == 0:
                yield code[begin + 1:end]
                break
            end += 1


def lines_of(body):
    return sum(1 for line in body.splitlines() if line.strip())


def only_calls(path, helpers):
    """Returns the helpers of detail/ called by a CUDA rung's longest kernel, if it is short and indexes nothing
    itself."""
    code = code_of(path)
    beside = path.with_name(re.sub(r"(\.sm90a)?\.cu$", ".cuh", path.name))
    if beside.exists():
        code += code_of(beside)
    longest = max(bodies(code), key=lines_of, default="")
    hides = lines_of(longest) < SHORT and not ELEMENT.search(longest)
    return set(CALL.findall(longest)) & helpers if hides else set()


def rungs(folder, suffix):
    for pattern in (f"[0-9]*{suffix}", f"shapes/*{suffix}", f"types/*{suffix}"):
        yield from sorted(folder.glob(pattern))


def hidden_kernels(source):
    """Yields rungs whose file lacks the algorithm, as (file, complaint)."""
    for operator in sorted(path for path in (source / "rung" / "ops").glob("*") if path.is_dir()):
        helpers = set()
        for header in [*operator.glob("cuda/detail/*.hpp"), *operator.glob("shared/cuda/*.hpp")]:
            helpers |= set(FUNCTION.findall(code_of(header)))
        forward = "backward" not in operator.name
        for path in rungs(operator / "cuda", ".cu"):
            if called := only_calls(path, helpers):
                yield path, (f"its longest kernel has fewer than {SHORT} lines and calls {', '.join(sorted(called))}: "
                             "the kernel stands in the rung, from load to store")
            if forward and "backward" in code_of(path):
                yield path, "a backward kernel belongs to an operator of its own"
        for path in rungs(operator / "cpu", ".cpp"):
            code = code_of(path)
            # `threads` is the previous step with a team of threads: it calls that step's loop.
            if not LOOP.search(code) and not path.stem.endswith("threads"):
                yield path, "no loop: a CPU rung contains the loop over its elements"
            if forward and "backward" in code:
                yield path, "a backward kernel belongs to an operator of its own"
