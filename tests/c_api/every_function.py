# SPDX-License-Identifier: Apache-2.0
"""Asserts that C has the functions, options and enumerations of each operator's C++ header, under the names that follow
from the C++ names; and that a test calls each C function.

usage: every_function.py SOURCE
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tools"))
import headers  # noqa: E402

# Conversions to text; in C the enumerators' names suffice.
CPP_ALONE = {"to_string"}


def snake(name):
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def wanted_tensors(signature, structures):
    """Yields the names of the tensors that a C++ function takes, including those in a structure of inputs."""
    for kind, name, _ in headers.parameters(signature):
        structure = re.sub(r"const |[&*]", "", kind).strip()
        if structure in ("ConstTensorRef", "TensorRef"):
            yield name
        elif structure in structures and not structure.endswith("Options"):
            yield from (field for _, field, _ in structures[structure])


def options_of(signatures):
    """Returns the structure that a C++ function takes before the rung to use; None if it takes none."""
    kinds = [re.sub(r"const |[&*]", "", kind).strip() for kind, _, _ in headers.parameters(signatures[0])]
    return kinds[-2] if kinds[-1:] == ["Pick"] and kinds[-2].endswith("Options") else None


def with_borrowed(path):
    """Returns the headers of the operators that an operator's header includes, for their options, followed by its own
    text."""
    text = path.read_text()
    others = re.findall(r'^#include "(rung/ops/\w+/\w+\.hp*)"', text, re.M)
    return "\n".join([(SOURCE / other).read_text() for other in others] + [text])


def complaints(folder):
    """Yields the omissions in an operator's folder."""
    name = folder.name
    cpp = (folder / f"{name}.hpp").read_text()
    for path in (folder / f"{name}.h", folder / "op/c_api.cpp", folder / f"test/{name}_test.c"):
        if not path.exists():
            yield f"there is no {path.relative_to(SOURCE)}"
            return
    c = (folder / f"{name}.h").read_text()
    structures = headers.structures(with_borrowed(folder / f"{name}.hpp"))
    all_c = with_borrowed(folder / f"{name}.h")
    c_structures, c_functions = headers.c_structures(all_c), headers.c_functions(all_c)
    for function, signatures in headers.functions(cpp).items():
        if function in CPP_ALONE:
            continue
        if f"rung_{function}" not in c_functions:
            yield f"{name}.h has no rung_{function}"
            continue
        tensors = [parameter for kind, parameter, _ in headers.parameters(c_functions[f"rung_{function}"])
                   if kind == "const rung_tensor*"]
        if tensors != list(wanted_tensors(signatures[0], structures)):
            yield f"rung_{function} takes the tensors {tensors}, others than {signatures[0]}"
    for structure in sorted(set(filter(None, map(options_of, headers.functions(cpp).values())))):
        fields, in_c = structures[structure], f"rung_{snake(structure)}"
        if in_c not in c_structures:
            yield f"{name}.h has no struct {in_c}"
            continue
        if f"{in_c}_init" not in c_functions:
            yield f"{name}.h has no {in_c}_init"
        names = [field for _, field in c_structures[in_c]]
        for field in [field for _, field, _ in fields] + ["size", "rung"]:
            if field not in names:
                yield f"struct {in_c} has no field {field}"
        if names[:1] != ["size"]:
            yield f"struct {in_c} does not begin with size"
    c_enumerations = headers.c_enumerations(c)
    used = [kind for fields in structures.values() for kind, _, _ in fields]
    for enumeration, values in headers.enumerations(cpp).items():
        if enumeration not in used:
            continue  # no option: it distinguishes functions
        found = [entries for entries in c_enumerations.values() if len(entries) == len(values)
                 and all(entry.lower().endswith(f"_{value}") for entry, value in zip(entries, values))]
        if len(found) != 1:
            yield f"{name}.h has no enumeration with the values of {enumeration}: {values}"


def called(calls):
    """Yields the C functions that no test calls."""
    for header in sorted(SOURCE.glob("rung/ops/*/*.h")) + [SOURCE / "rung/c/api.h"]:
        for function in headers.c_functions(header.read_text()):
            # CHECK_OPTIONS calls the functions that set options.
            if not re.search(rf"\b{function}\b", calls) and \
                    not re.search(rf"CHECK_OPTIONS\({function.removesuffix('_init')},", calls):
                yield f"{function} ({header.relative_to(SOURCE)}) is called by no test in C"


def main():
    operators = [path.parent for path in sorted(SOURCE.glob("rung/ops/*/*.hpp")) if path.stem == path.parent.name]
    if not operators:
        sys.exit(f"no operators under {SOURCE}")
    found = [complaint for folder in operators for complaint in complaints(folder)]
    tests = sorted(SOURCE.glob("tests/c_api/*.c")) + sorted(SOURCE.glob("rung/ops/*/test/*_test.c"))
    found += called("\n".join(path.read_text() for path in tests))
    print("\n".join(found) if found else f"{len(operators)} operators, each in C too")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
