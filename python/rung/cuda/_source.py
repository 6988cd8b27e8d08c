# SPDX-License-Identifier: Apache-2.0
"""Parsing of a kernel string: its kernels with their parameters, its variables, and the string's position in a
script."""
import linecache
import re
import sys
from typing import Dict, List, NamedTuple, Optional, Tuple


class Kernel(NamedTuple):
    """A `__global__` function of a source."""
    name: str        # including namespaces
    template: bool
    parameters: Tuple[str, ...]  # their names; "" if a parameter has none


def blanked(source: str) -> str:
    """Returns the source with comments and the contents of literals blanked; offsets do not change."""
    def blank(match: "re.Match[str]") -> str:
        text = match.group()
        if text[0] in "\"'":
            return text[0] + re.sub(r"[^\n]", " ", text[1:-1]) + text[-1]
        return re.sub(r"[^\n]", " ", text)
    pattern = r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    return re.sub(pattern, blank, source, flags=re.S)


def _closing(text: str, opening: int) -> int:
    pairs = {"(": ")", "{": "}", "[": "]"}
    depth = 0
    for i in range(opening, len(text)):
        if text[i] in pairs:
            depth += 1
        elif text[i] in pairs.values():
            depth -= 1
            if depth == 0:
                return i
    return len(text)


def split_arguments(text: str) -> List[str]:
    """Splits at the commas outside of all brackets: round, square, curly and angle."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    parts.append(text[begin:])
    return [part.strip() for part in parts if part.strip()]


def _parameter_name(declaration: str) -> str:
    declaration = re.sub(r"\[[^\]]*\]", "", declaration.split("=")[0])
    words = re.findall(r"[A-Za-z_]\w*", declaration)
    types = ("const", "int", "float", "double", "char", "unsigned", "long", "short", "bool", "void", "size_t")
    return words[-1] if len(words) > 1 and words[-1] not in types else ""


def _namespaces(text: str) -> List[Tuple[int, int, str]]:
    found = []
    for match in re.finditer(r"\bnamespace\s+([\w:\s]*?)\s*\{", text):
        found.append((match.end(), _closing(text, match.end() - 1), re.sub(r"\s+", "", match.group(1))))
    return found


def _ends_template(head: str) -> bool:
    """Returns whether the text ends with `template <...>`."""
    if not head.endswith(">"):
        return False
    depth = 0
    for i in range(len(head) - 1, -1, -1):
        depth += (head[i] == ">") - (head[i] == "<")
        if depth == 0:
            return re.search(r"\btemplate\s*$", head[:i]) is not None
    return False


_ATTRIBUTES = "__launch_bounds__|__cluster_dims__|__attribute__|alignas|__align__"


def find_kernels(source: str) -> List[Kernel]:
    """Returns the kernels that the source defines or declares, each name once; templates are marked."""
    text = blanked(source)
    spaces = _namespaces(text)
    kernels: Dict[str, Kernel] = {}
    for match in re.finditer(r"\b__global__\b", text):
        at = match.end()
        opening = text.find("(", at)
        while opening >= 0 and re.search(rf"\b(?:{_ATTRIBUTES})\s*$", text[at:opening]):
            at = _closing(text, opening) + 1
            opening = text.find("(", at)
        if opening < 0:
            continue
        name = re.search(r"([A-Za-z_]\w*)\s*$", text[at:opening])
        if name is None:
            continue
        before = text[:match.start()].rstrip()
        words_before = re.search(r"((?:\b(?:static|inline|extern|void|__device__|__host__)\b|\"\s*\"|\s)*)$", before)
        head = before[:words_before.start()].rstrip() if words_before else before
        path = "::".join(space for begin, end, space in spaces if begin <= match.start() < end and space)
        full = (path + "::" if path else "") + name.group(1)
        parameters = tuple(_parameter_name(one) for one in split_arguments(text[opening + 1:_closing(text, opening)])
                           if one != "void")
        one = Kernel(full, _ends_template(head), parameters)
        if full not in kernels or any(parameters):
            kernels[full] = one
    return list(kernels.values())


def find_variables(source: str) -> List[str]:
    """Returns the names of `__device__`, `__constant__` and `__managed__` variables."""
    text = blanked(source)
    spaces = _namespaces(text)
    names: List[str] = []
    for match in re.finditer(r"\b__(?:device__|constant__|managed__)", text):
        end = re.compile(r"[;={(]").search(text, match.end())
        declaration = text[match.end():end.start()] if end else ""
        while end and end.group() == "(" and re.search(r"\b(__align__|alignas|__attribute__)\s*$", declaration):
            close = _closing(text, end.start())
            end = re.compile(r"[;={(]").search(text, close + 1)
            declaration = text[close + 1:end.start()] if end else ""
        before = re.split(r"[;{}]|^\s*#.*$", text[:match.start()], flags=re.M)[-1]
        words = before + declaration
        if end is None or end.group() == "(" or re.search(r"\b(extern|template)\b", words):
            continue
        if end.group() == "{" and re.search(r"\b(struct|class|union)\b", words):
            continue
        path = "::".join(space for begin, close, space in spaces if begin <= match.start() < close and space)
        semicolon = text.find(";", match.end())
        for part in split_arguments(text[match.end():semicolon if semicolon > 0 else end.start()]):
            words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]", "", part.split("=")[0].split("{")[0]))
            if words and words[-1] not in names:
                names.append((path + "::" if path else "") + words[-1])
    return list(dict.fromkeys(names))


def column_of(line: str, message: str) -> int:
    """Returns the 1-based column of the array that a finding's message names; 0 if it is not in the line."""
    for word in re.findall(r"([A-Za-z_]\w*)\[", message):
        found = re.search(rf"\b{re.escape(word)}\s*\[", line)
        if found:
            return found.start() + 1
    return 0


class Origin:
    """The script's statement that created a module, and the script's line at which the source string begins."""

    def __init__(self, file: str, line: int, source: str):
        self.file = file
        self.line = line
        self.first = self._first_line(source)

    def _first_line(self, source: str) -> int:
        """Returns the script's line that is line 1 of the string; 0 if the script does not contain the string.
        """
        script = [line.strip() for line in linecache.getlines(self.file)]
        wanted = [(i, line.strip()) for i, line in enumerate(source.splitlines()) if len(line.strip()) > 2]
        if not script or not wanted or len(script) > 20000:
            return 0
        places: Dict[str, List[int]] = {}
        for i, line in enumerate(script):
            places.setdefault(line, []).append(i)
        votes: Dict[int, int] = {}
        for i, line in wanted:
            for place in places.get(line, [])[:50]:
                votes[place - i] = votes.get(place - i, 0) + 1
        if not votes:
            return 0
        best = max(votes, key=lambda offset: (votes[offset], -offset))
        # The string's first and last line share script lines with the quotes.
        enough = votes[best] * 2 > len(wanted)
        return best + 1 if enough else 0

    def script_line(self, line: int) -> Optional[Tuple[str, int]]:
        return (self.file, self.first - 1 + line) if self.first > 0 else None


def origin_of_caller(source: str) -> Optional[Origin]:
    """Returns the Origin at the first caller outside of this package."""
    frame = sys._getframe(1)  # pylint: disable=protected-access
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not (module == "rung" or module.startswith("rung.")):
            return Origin(frame.f_code.co_filename, frame.f_lineno, source)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def split_name(expression: str) -> str:
    """Returns a kernel's name without template arguments."""
    return expression.split("<")[0].strip()
