# SPDX-License-Identifier: Apache-2.0
"""Puts the Python package together: its own files, and the operators' functions as rung/_ops/X.py.
usage: gather.py [--copy] SOURCE PACKAGE FUNCTIONS... [--absent FUNCTIONS...]
--copy: copies instead of links. --absent: files of operators that are not built, whose functions raise an error."""
import ast
import pathlib
import shutil
import sys


def names(path):
    """Returns the list __all__ of a file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["__all__"]:
            return ast.literal_eval(node.value)
    sys.exit(f"{path}: no list __all__")


def put(source, target, copy):
    if target.is_symlink() or target.exists():
        if target.is_symlink() and not copy and target.readlink() == source:
            return
        target.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target) if copy else target.symlink_to(source)


def write(target, text):
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def dictionary(name, where):
    return f"{name} = {{\n" + "".join(f'    "{key}": "{module}",\n' for key, module in sorted(where.items())) + "}\n"


def main():
    arguments = sys.argv[1:]
    end = arguments.index("--absent") if "--absent" in arguments else len(arguments)
    absent = {name: path.stem for path in map(pathlib.Path, arguments[end + 1:]) for name in names(path)}
    copy = arguments[0] == "--copy"
    source, package, *functions = map(pathlib.Path, arguments[copy:end])
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            put(path, package / path.relative_to(source), copy)
    (package / "_ops").mkdir(parents=True, exist_ok=True)
    where = {}
    for path in functions:
        put(path, package / "_ops" / path.name, copy)
        for name in names(path):
            if name in where:
                sys.exit(f"{path}: {name} is {where[name]}'s already")
            where[name] = path.stem
    for path in (package / "_ops").glob("*.py"):
        if path.name != "__init__.py" and path.stem not in {function.stem for function in functions}:
            path.unlink()  # of an operator that is not built any more
    head = "# SPDX-License-Identifier: Apache-2.0\n"
    head += '"""Functions, and the modules that they are in; written by the build."""\n'
    write(package / "_ops" / "__init__.py", head + dictionary("NAMES", where)
          + "# Functions of operators that are not built.\n" + dictionary("ABSENT", absent))
    own = (source / "__init__.pyi.in").read_text(encoding="utf-8")
    imports = "".join(f"from rung._ops.{module} import {name} as {name}\n" for name, module in sorted(where.items()))
    write(package / "__init__.pyi", own + imports)


main()
