# SPDX-License-Identifier: Apache-2.0
"""Asserts that docs/rung.1 describes each command of the program. usage: man_page.py SOURCE"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
commands = set()
for path in sorted(source.glob("rung/workbench/*.cpp")):
    for name, summary in re.findall(r'Command self\{\s*\{\.name = "([\w-]+)".*?\.summary =\s*"(.*?)"', path.read_text(),
                                    re.S):
        if summary:  # commands without a summary are internal
            commands.add(name)
page = (source / "docs/rung.1").read_text()
section = page[page.index(".SH COMMANDS"):page.index(".SH EXIT STATUS")]
described = set(re.findall(r"^\.TP\n\.B ([\w-]+)$", section, re.M))
for name in sorted(commands - described):
    print(f"docs/rung.1 does not describe `rung {name}`: add it under COMMANDS")
for name in sorted(described - commands):
    print(f"docs/rung.1 describes `rung {name}`, which the program does not have")
if len(commands) < 5 or commands != described:
    sys.exit(1)
print(f"{len(commands)} commands, each in docs/rung.1")
