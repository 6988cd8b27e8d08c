# SPDX-License-Identifier: Apache-2.0
"""Sources that RUNG_UNITY compiles as one share their anonymous namespaces: a name that two of them define there, or
that one defines there and another in the enclosing namespace, must not have two meanings. usage: unity.py SOURCE"""
import collections
import pathlib
import re
import sys

CORE = ["rung/core", "rung/harness", "rung/c"]
# Per target of rung_compile_together(): its sources, and headers that they may include.
LIBRARIES = {
    "rung_core": ([f"{part}/*.cpp" for part in CORE], [f"{part}/*.hpp" for part in CORE]),
    "rung_workbench": (["rung/workbench/*.cpp", "rung/bench/*.cpp"],
                       ["rung/workbench/*.hpp", "rung/bench/*.hpp", "rung/core/*.hpp", "rung/harness/*.hpp"]),
    "${with_or_without}": (["rung/workbench/*.cpp", "rung/emulate/*.cpp"],
                           ["rung/workbench/*.hpp", "rung/emulate/*.hpp", "rung/core/*.hpp", "rung/harness/*.hpp"]),
    "rung_simt": (["rung/simt/*.cpp", "rung/simt/record/*.cpp"], ["rung/simt/*.hpp", "rung/simt/record/*.hpp"]),
    "rung_emulate": (["rung/emulate/runtime/*.cpp"], ["rung/emulate/runtime/*.hpp"]),
}
# Sources that cmake/unity.cmake compiles separately.
ALONE = re.compile(r"^const .* self[{(]|foreach_target", re.M)
TOGETHER = re.compile(r"^\s*rung_compile_together\(([^)]+)\)", re.M)

NOISE = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'(?!\w)'
                   r"|//[^\n]*|/\*(?:.|\n)*?\*/|^[ \t]*#(?:\\\n|[^\n])*", re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|<=>|[<>=!+*/%&|^-]=|&&|\|\||\+\+|--|\S")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
CLOSING = {"(": ")", "{": "}", "[": "]"}
SPECIFIERS = {"static", "inline", "constexpr", "constinit", "consteval", "const", "extern", "thread_local", "RUNG_API",
              "RUNG_HD", "RUNG_ALWAYS_INLINE", "template", "typename", "volatile", "explicit", "friend"}

Name = collections.namedtuple("Name", "space name kind signature file line internal")


def tokens_of(text):
    """Returns the tokens with their lines; literals, comments and preprocessor directives are blanked out."""
    text = NOISE.sub(lambda m: ('""' if m[0][0] in "\"'R" else "") + "\n" * m[0].count("\n"), text)
    line, at, found = 1, 0, []
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        found.append((match[0], line))
    return found


class Source:
    """Collects the declarations of a file at namespace scope."""

    def __init__(self, path, text):
        self.path = path
        self.tokens = tokens_of(text)
        self.names = []
        self.scope(0, (), False)

    def word(self, i):
        return self.tokens[i][0] if i < len(self.tokens) else ""

    def behind(self, i):
        """Returns the index after the bracket that closes the one at `i`."""
        opening, depth = self.word(i), 0
        while i < len(self.tokens):
            depth += (self.word(i) == opening) - (self.word(i) == CLOSING[opening])
            i += 1
            if depth == 0:
                return i
        return i

    def behind_angles(self, i):
        """Returns the index after the template arguments that begin at `i`; ignores a > within other brackets."""
        depth = 0
        while i < len(self.tokens):
            if self.word(i) in CLOSING:
                i = self.behind(i)
                continue
            depth += (self.word(i) == "<") - (self.word(i) == ">")
            i += 1
            if depth <= 0:
                return i
        return i

    def scope(self, i, space, internal):
        """Reads declarations up to the } that ends the namespace; returns the index after it."""
        while i < len(self.tokens):
            word = self.word(i)
            if word == "}":
                return i + 1
            if word == ";":
                i += 1
            elif word in ("namespace", "inline") and "namespace" in (word, self.word(i + 1)):
                i = self.namespace(i + (word == "inline") + 1, space, internal)
            elif word == "extern" and self.word(i + 1) == '"' and self.word(i + 3) == "{":
                i = self.scope(i + 4, space, internal)
            else:
                i = self.declaration(i, space, internal)
        return i

    def namespace(self, i, space, internal):
        path = []
        while self.word(i) not in ("{", "=", ";", ""):
            path += [self.word(i)] if self.word(i) not in ("::", "inline") else []
            i += 1
        if self.word(i) != "{":  # an alias
            while self.word(i) not in (";", ""):
                i += 1
            return i + 1
        return self.scope(i + 1, space + tuple(path), internal or not path)

    def declaration(self, i, space, internal):
        """Reads one declaration; returns the index after it."""
        begin, line = i, self.tokens[i][1]
        while self.word(i) in ("template", "[", "alignas") or self.word(i) in SPECIFIERS:
            if self.word(i) == "[":
                i = self.behind(i)
            elif self.word(i) == "template" and self.word(i + 1) == "<":
                i = self.behind_angles(i + 1)
            else:
                i += 1
        head = [one for one, _ in self.tokens[begin:i]]
        constant = {"const", "constexpr"} & set(head) and not {"inline", "extern"} & set(head)

        def add(name, kind, signature=""):
            hidden = internal or kind != "type" and ("static" in head or kind == "variable" and constant)
            self.names.append(Name(space, name, kind, signature, self.path, line, bool(hidden)))

        word = self.word(i)
        if word in ("class", "struct", "union", "enum"):
            return self.type_or_variable(i, add)
        if word in ("using", "typedef", "static_assert"):
            end = self.statement_end(i)
            if word == "using" and self.word(i + 2) == "=":
                add(self.word(i + 1), "type", " ".join(one for one, _ in self.tokens[i + 2:end]))
            return end
        return self.function_or_variable(i, add, head)

    def statement_end(self, i):
        while self.word(i) not in (";", ""):
            i = self.behind(i) if self.word(i) in CLOSING else i + 1
        return i + 1

    def type_or_variable(self, i, add):
        is_enum = self.word(i) == "enum"
        i += 1
        scoped = is_enum and self.word(i) in ("class", "struct")
        i += scoped
        name = ""
        while self.word(i) not in ("{", ";", ":", "=", "<", "(", ""):
            if self.word(i) == "[":
                i = self.behind(i)
                continue
            if IDENTIFIER.fullmatch(self.word(i)) and self.word(i) != "final":
                name = self.word(i)
            i += 1
        specialized = self.word(i) == "<"
        while self.word(i) not in ("{", ";", "=", "(", ""):  # arguments, bases
            i = self.behind_angles(i) if self.word(i) == "<" else i + 1
        if self.word(i) == "{":
            end = self.behind(i)
            if name and not specialized:
                add(name, "type")
            if is_enum and not scoped:
                inner = [one for one, _ in self.tokens[i:end]]
                for at in range(1, len(inner)):
                    if inner[at - 1] in ("{", ",") and IDENTIFIER.fullmatch(inner[at]):
                        add(inner[at], "variable")
            if IDENTIFIER.fullmatch(self.word(end)) or self.word(end) in "*&":  # struct { ... } one = ...
                return self.function_or_variable(end, add, [])
            return self.statement_end(end)
        return self.statement_end(i)

    def function_or_variable(self, i, add, head):
        name, qualified = "", False
        while self.word(i) not in ("(", "=", "{", ";", "[", ""):
            if self.word(i) == "operator":
                name = "operator"
                i += 1
                while self.word(i) != "(" or name == "operator":
                    name += self.word(i)
                    i += 1
                break
            if self.word(i) == "<" and IDENTIFIER.fullmatch(self.word(i - 1)):
                i = self.behind_angles(i)
                continue
            if IDENTIFIER.fullmatch(self.word(i)):
                name, qualified = self.word(i), self.word(i - 1) == "::"
                if self.word(i) in ("decltype", "alignas", "__attribute__", "requires") and self.word(i + 1) == "(":
                    i = self.behind(i + 1)
                    continue
            i += 1
        if self.word(i) != "(":
            if name and not qualified:
                add(name, "variable")
            return self.statement_end(i)
        end = self.behind(i)
        if name and not qualified:
            parameters = self.parameters(i + 1, end - 1)
            generic = " ".join(head[head.index("template"):]) if "template" in head else ""
            add(name, "function", f"{generic}({parameters})")
        return self.body_end(end)

    def body_end(self, i):
        """Returns the index after a function's body, which may follow initializers, or after its ;."""
        initializes = False
        while self.word(i) not in (";", ""):
            if self.word(i) == ":":
                initializes = True
            if self.word(i) == "{":
                member = initializes and (IDENTIFIER.fullmatch(self.word(i - 1)) or self.word(i - 1) == ">")
                i = self.behind(i)
                if not member:
                    return i
                continue
            i = self.behind(i) if self.word(i) in CLOSING else i + 1
        return i + 1

    def parameters(self, begin, end):
        """Returns the types of parameters, without names and default values."""
        parts, depth = [[]], 0
        for i in range(begin, end):
            word = self.word(i)
            depth += (word in "([{<") - (word in ")]}>")
            if word == "," and depth == 0:
                parts.append([])
            else:
                parts[-1].append(word)
        types = []
        for part in parts:
            part = part[:part.index("=")] if "=" in part else part
            if len(part) > 1 and IDENTIFIER.fullmatch(part[-1]) and part[-2] not in ("::", "const", "unsigned"):
                part = part[:-1]
            types.append(" ".join(part))
        return ", ".join(types)


def clash(a, b):
    if a.kind == b.kind == "type" and a.signature and a.signature == b.signature:
        return False  # the same alias twice
    if a.kind == b.kind == "function":
        return a.signature == b.signature
    return True


def complaints(sources):
    """Returns complaints, one per pair of names."""
    by_name = collections.defaultdict(list)
    for source in sources:
        for one in source.names:
            by_name[one.space, one.name].append(one)
    found = {}
    for (_, name), all_of in by_name.items():
        for a in all_of:
            for b in all_of:
                if not a.internal or a.file == b.file or (b.internal and str(b.file) < str(a.file)):
                    continue
                if a.file.suffix == ".cpp" and clash(a, b):
                    found[a.file, b.file, name] = f"{a.file}:{a.line}: {name} is also defined by {b.file}:{b.line}"
    return found


def test_programs(root):
    """Returns the folders of tests that tests/CMakeLists.txt compiles as one, whatever RUNG_UNITY is."""
    folders = sorted({path.parent for path in root.glob("tests/*/*_test.cpp")})
    names = [path.name for path in folders if not (path / "CMakeLists.txt").exists() and path.name != "cpu"]
    return [([f"tests/{name}/*_test.cpp"], [f"tests/{name}/*.hpp"]) for name in names]


def main():
    root = pathlib.Path(sys.argv[1])
    known = set()
    for path in [root / "CMakeLists.txt", *root.glob("cmake/*.cmake"), *root.glob("rung/**/CMakeLists.txt")]:
        known |= set(TOGETHER.findall(path.read_text(encoding="utf-8"))) if path.exists() else set()
    found = {}
    for target in sorted(known - set(LIBRARIES)):
        found[target] = f"rung_compile_together({target}): LIBRARIES of tests/style/unity.py does not name its sources"
    files = set()
    for sources, headers in [*LIBRARIES.values(), *test_programs(root)]:
        read = []
        for path in sorted(path for pattern in sources + headers for path in root.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".hpp" or not ALONE.search(text):
                read.append(Source(path.relative_to(root), text))
        files |= {one.path for one in read}
        found.update(complaints(read))
    for line in sorted(found.values()):
        print(line)
    print(f"{len(files)} files, {len(found)} complaints")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
