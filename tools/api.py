#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""api.py [--check]: writes docs/api.md, the list of rung's whole interface, from the headers.

With --check nothing is written; the exit status is 1 if the page differs from the headers. It is also 1 if a header
does not comment on an option.
"""
import pathlib
import re
import sys

import headers

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
# Headers of core for programs, in the order of the page.
CORE = ["context", "tensor", "extents", "per_axis", "tensor_ref", "view", "dtype", "activation", "pick", "error", "npy",
        "dlpack", "version"]
# Headers of core for operators and tools; rung.hpp includes none of them.
FOR_TOOLS = ["any_operator", "inputs", "operator", "problem"]

INTRODUCTION = """\
# The whole interface

Every public function, in C++ and in C, and every option with its type and default. The contracts - formula, shapes,
types, aliasing, accuracy, errors - are at the top of each header that is named here. `tools/api.py` writes this page
from the headers; a test compares them.

- C++: `#include <rung/rung.hpp>`, namespace `rung`. Functions throw `rung::Error`.
- C: `#include <rung/rung.h>`. Functions return a `rung_status`; `rung_last_error()` says what was wrong. Options
  structures begin with `size_t size` and are set by their `_init` function; NULL options are the defaults; NULL
  tensors in options mean none.
- Each operator opens with an example of C++. Names without a type are tensors: `rung::Tensor`, or what describes memory
  of your own - `context.tensor(pointer, {rows, columns})`, a `std::vector`, a `std::mdspan`.
- An operator takes tensors, options and the rung to use: in C++ `Pick{"name"}`, in C `options.rung`. The default is
  the best rung for the call.

"""


def summary(said):
    """Returns the first sentence of a comment."""
    if said.startswith("NOLINT"):
        return ""
    first = re.split(r"(?<=[.;])\s+(?=[A-Z*]|$)", said, maxsplit=1)[0]
    return first.rstrip(".;")


def code(text):
    return "`" + text + "`"


def row(*cells):
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"


def note_of(field, structures):
    """Returns the comment on a field from the first of the structures' texts that has one; "" if none has."""
    for text in structures:
        for line, said in headers.comments(text).items():
            if said and re.search(rf"(?<=[\s*]){field}(\[\d+\])?( = .*)?;$", line):
                return said
    return ""


def listed(signatures):
    return [f"- {code(text)}" for text in signatures]


def snake(name):
    """Converts SoftmaxOptions to softmax_options."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def enumeration_lines(cpp, c):
    """Returns the lines on a header's enumerators, in C++ and C."""
    lines = []
    c_enums = headers.c_enumerations(c)
    for name, values in headers.enumerations(cpp).items():
        lines.append(f"- {code('enum class ' + name)}: " + ", ".join(code(value) for value in values))
    for name, values in c_enums.items():
        lines.append(f"- {code('enum ' + name)}: " + ", ".join(code(f"{key} = {at}") for key, at in values.items()))
    return lines


def bodies(name, cpp, c):
    """Returns the text of a C++ structure, and of the corresponding C structure if there is one, with comments."""
    return [found for text, known in ((cpp, name), (c, f"rung_{snake(name)}"))
            for found in re.findall(rf"^(?:typedef )?struct {known} \{{\n(.*?)^\}}", text, re.M | re.S)]


def options_table(name, fields, cpp, c):
    """Returns the table of a C++ structure's options, with their C counterparts."""
    c_name = f"rung_{snake(name)}"
    c_fields = {field: kind for kind, field in headers.c_structures(c).get(c_name, [])}
    structures = bodies(name, cpp, c)
    title = code("struct " + name) + (f" and {code('struct ' + c_name)}" if c_fields else "")
    lines = ["", title, "", row("field", "C++", "C", "default", ""), "|---|---|---|---|---|"]
    for kind, field, default in fields:
        in_c = code(c_fields[field]) if field in c_fields else ""
        if f"{field}_count" in c_fields:
            in_c += f" and `int {field}_count`"
        lines.append(row(code(field), code(kind), in_c, code(default), note_of(field, structures)))
    if "rung" in c_fields:
        lines.append(row("the rung", "`Pick pick`, the last argument", "`const char* rung`", "`best`, `NULL`",
                         "one by name, or the best"))
    return lines


def unexplained(folder):
    """Returns the options of an operator that its headers do not comment on: ["gemm: GemmOptions.alpha"]."""
    cpp, c = operator_headers(folder)
    return [f"{folder.name}: {structure}.{field}" for structure, fields in headers.structures(cpp).items()
            for _, field, _ in fields if not note_of(field, bodies(structure, cpp, c))]


def operator_headers(folder):
    """Returns the text of an operator's C++ header and C header."""
    c_header = folder / f"{folder.name}.h"
    return (folder / f"{folder.name}.hpp").read_text(), c_header.read_text() if c_header.exists() else ""


def example(folder):
    """Returns the first C++ listing of an operator's README; tests/docs/operator_examples.py compiles it."""
    readme = folder / "README.md"
    found = readme.exists() and re.search(r"^```cpp\n.*?^```\n", readme.read_text(), re.M | re.S)
    return [*found[0].splitlines(), ""] if found else []


def operator_section(folder):
    name = folder.name
    cpp, c = operator_headers(folder)
    formula = re.search(r'string_view summary =\s*"(.*?)";', (folder / "op" / f"{name}.hpp").read_text(), re.S)[1]
    lines = [f"## {name}", "", f"{code(re.sub(chr(34) + '.*?' + chr(34), '', formula))} - "
             f"[{name}.hpp](../rung/ops/{name}/{name}.hpp)"
             + (f", [{name}.h](../rung/ops/{name}/{name}.h)" if c else ""), ""]
    lines += example(folder)
    lines += listed(text for group in headers.functions(cpp).values() for text in group)
    for templates in sorted(folder.glob("*.cuh")):
        lines += [f"- {code(text)} - [{templates.name}](../rung/ops/{name}/{templates.name})"
                  for text in functor_functions(templates.read_text())]
    lines += listed(headers.c_functions(c).values())
    lines += enumeration_lines(cpp, c)
    for structure, fields in headers.structures(cpp).items():
        lines += options_table(structure, fields, cpp, c)
    for other, structure in borrowed_options(cpp):
        lines += ["", f"{code('struct ' + structure)} is that of [{other}](#{other})."]
    return lines + [""]


def borrowed_options(cpp):
    """Yields the options of other operators that functions take: ("softmax", "SoftmaxOptions")."""
    for other in re.findall(r'^#include "rung/ops/(\w+)/\1\.hpp"', cpp, re.M):
        for structure in headers.structures((ROOT / f"rung/ops/{other}/{other}.hpp").read_text()):
            if re.search(rf"const {structure}& options", cpp):
                yield other, structure


def functor_functions(text):
    """Returns the templates of a .cuh that take the caller's functors: their first argument is the context."""
    return [headers.signature(declaration) for declaration, body in headers.namespace_rung(text)
            if body is not None and declaration.startswith("template <") and "(Context& context" in declaration]


def described(signature, notes):
    """Returns a list item: the signature and the first sentence of its comment."""
    name = headers.name_of(signature)
    head = re.sub(r"^template <.*> (?=\w+\()", "", signature[:signature.index(name + "(") + len(name) + 1])
    said = next((said for line, said in notes.items() if headers.signature(line).startswith(head)), "")
    return f"- {code(signature)}" + (f": {summary(said)}" if said else "")


def header(name):
    """Returns the path of a header of core, or of the harness for checks and benchmarks."""
    core = ROOT / "rung" / "core" / f"{name}.hpp"
    return core if core.exists() else ROOT / "rung" / "harness" / f"{name}.hpp"


def link(path):
    return f"[{path.name}](../{path.relative_to(ROOT).as_posix()})"


def core_section(name):
    text = header(name).read_text()
    notes = headers.comments(text)
    lines = [described(found, notes) for group in headers.functions(text).values() for found in group]
    for structure, found in headers.members(text).items():
        kept = [text for text in found if not re.search(r"\(\*|operator==|operator=\(|&&\)|~|= default", text)]
        if kept and structure != "DeviceRegistration":
            lines += [f"- {code(structure)}"] + ["  " + described(text, notes) for text in kept]
    lines += enumeration_lines(text, "")
    return [f"### {link(header(name))}", ""] + lines + [""] if lines else []


def operator_folders():
    return [folder for folder in sorted((ROOT / "rung" / "ops").iterdir()) if (folder / f"{folder.name}.hpp").exists()]


def page():
    lines = INTRODUCTION.splitlines() + [""]
    for folder in operator_folders():
        lines += operator_section(folder)
    lines += ["## Contexts, tensors, errors: C++", ""]
    for name in CORE:
        lines += core_section(name)
    lines += ["### For operators, rungs and tools", ""]
    for name in FOR_TOOLS:
        text = header(name).read_text()
        found = [found for group in headers.functions(text).values() for found in group]
        lines.append(f"- {link(header(name))}" + "".join(f"; {code(signature)}" for signature in found))
    lines += ["", "## Contexts, tensors, errors: C", "", link(ROOT / "rung" / "c" / "api.h"), ""]
    text = (ROOT / "rung" / "c" / "api.h").read_text()
    notes = headers.comments(text)
    lines += [described(signature, notes) for signature in headers.c_functions(text).values()]
    lines += enumeration_lines("", text)
    for name, fields in headers.c_structures(text).items():
        lines.append(f"- {code('struct ' + name)}: " + ", ".join(code(" ".join(field)) for field in fields))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def main():
    silent = [option for folder in operator_folders() for option in unexplained(folder)]
    if silent:
        sys.exit("options without a comment in their header, beside the field: " + ", ".join(silent))
    wanted = page()
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != wanted:
            sys.exit("docs/api.md is not what the headers say; run tools/api.py")
        print(f"docs/api.md: {len(wanted.splitlines())} lines, as the headers say")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PAGE.write_text(wanted)


if __name__ == "__main__":
    main()
