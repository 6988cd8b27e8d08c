# SPDX-License-Identifier: Apache-2.0
"""An operator can be built with only the operators in its file `uses` (one name per line), and those that these use: no
object of it may need a function that only another operator's objects define. usage: uses.py SOURCE BUILD"""
import collections
import pathlib
import re
import subprocess
import sys

OBJECT = re.compile(r"/rung_(?:operators|cpu|cuda|opencl)\.dir/(?:generated/split/)?rung/ops/(\w+)/"
                    r"|/rung_simt_kernels\.dir/.*/ops/(\w+)/")


def used_by(source, operator):
    found, waiting = {operator}, [operator]
    while waiting:
        path = source / "rung/ops" / waiting.pop() / "uses"
        names = set(re.findall(r"^[a-z]\w*", path.read_text(), re.M)) if path.exists() else set()
        waiting += names - found
        found |= names
    return found


def symbols(build):
    """Returns, per operator, the symbols that its objects need, and those that they define."""
    needed, defined = collections.defaultdict(set), collections.defaultdict(set)
    for path in sorted(build.rglob("*.o")):
        match = OBJECT.search(str(path))
        if not match:
            continue
        operator = match[1] or match[2]
        for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
            words = line.split()
            if words[-2] == "U":
                needed[operator].add(words[-1])
            elif words[-2] in "TWVBDRu":
                defined[operator].add(words[-1])
    return needed, defined


def main():
    source, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    needed, defined = symbols(build)
    homes = collections.defaultdict(set)
    for operator, names in defined.items():
        for name in names:
            homes[name].add(operator)
    missing = collections.defaultdict(set)
    for operator, names in needed.items():
        there = used_by(source, operator)
        for name in names:
            if homes[name] and not homes[name] & there:
                missing[operator, min(homes[name])].add(name)
    for (operator, other), names in sorted(missing.items()):
        print(f"rung/ops/{operator}/uses does not name {other}, which has {min(names)}")
    if not defined:
        sys.exit(f"no operator's objects are below {build}")
    print(f"{len(defined)} operators, {len(missing)} missing names")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
