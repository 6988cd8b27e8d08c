# SPDX-License-Identifier: Apache-2.0
"""A compiler launcher for the build of a copy of the tree: reuses the object that another build made of the same source
with the same command, and compiles sources that are new or whose command differs.

Commands are compared, sources are not: the copy must have the sources that the other build compiled.
usage, in COPY_BUILD: reuse_objects.py SOURCE SOURCE_BUILD COPY COPY_BUILD COMPILER ARGUMENT...
"""
import json
import pathlib
import shlex
import shutil
import subprocess
import sys


def essential(command):
    """Returns the command without the options that write a list of dependencies."""
    kept, words = [], iter(command)
    for word in words:
        if word in ("-MF", "-MT"):
            next(words)
        elif word != "-MD":
            kept.append(word)
    return kept


def following(command, option):
    return command[command.index(option) + 1] if option in command else None


def made_before(source, source_build, copy, copy_build, command):
    """Returns the other build's object, or None."""
    output = following(command, "-o")
    mine = [word.replace(copy_build, source_build).replace(copy, source) for word in essential(command)]
    for entry in json.loads(pathlib.Path(source_build, "compile_commands.json").read_text()):
        theirs = shlex.split(entry["command"])
        if output is not None and following(theirs, "-o") == output:
            made = pathlib.Path(entry["directory"], output)
            return made if theirs == mine and made.exists() else None
    return None


def main():
    roots, command = sys.argv[1:5], sys.argv[5:]
    made = made_before(*roots, command)
    if made is None:
        sys.exit(subprocess.run(command).returncode)
    output, dependencies = following(command, "-o"), following(command, "-MF")
    shutil.copyfile(made, output)
    if dependencies is not None:  # the build expects a list of dependencies; none of them changes in this build
        pathlib.Path(dependencies).write_text(f"{output}: {command[-1]}\n")


if __name__ == "__main__":
    main()
