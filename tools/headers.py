# SPDX-License-Identifier: Apache-2.0
"""Reads rung's public headers: functions, structures with their fields and defaults, enumerations.

For tools/api.py and the tests that compare the C interface with the C++ one. It parses only the subset of C++ in rung's
headers, formatted as they are.
"""
import re


def code_of(text):
    """Returns the text without comments and preprocessor directives; line numbers are kept."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", "", m[0]), text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"^#[^\n]*", "", text, flags=re.M)


def joined(text):
    """Returns the text on one line."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\( ", "(", text)


def split_list(text):
    """Splits at the commas outside of all brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [joined(part) for part in parts if part.strip()]


def statements(code):
    """Yields (declaration, body or None) of a class or namespace, in order; the declaration includes text after '='."""
    start = at = depth = 0
    while at < len(code):
        letter = code[at]
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in ";{":
            declaration = joined(code[start:at])
            if letter == ";":
                yield declaration, None
            else:
                end, braces = at, 0
                while True:
                    braces += (code[end] == "{") - (code[end] == "}")
                    end += 1
                    if braces == 0:
                        break
                body = code[at + 1:end - 1]
                if re.search(r"=\s*$", code[start:at]):  # an initializer: the statement continues
                    at = end
                    continue
                yield declaration, body
                at = end - 1
                after = re.match(r"\s*;", code[end:])
                if after and not declaration.startswith(("namespace", "extern")):
                    at = end - 1 + after.end()
            start = at + 1
        at += 1


def namespace_rung(text):
    """Yields the statements of namespace rung in a C++ header, without nested namespaces."""
    for declaration, body in statements(code_of(text)):
        if declaration == "namespace rung":
            yield from statements(body)


def comments(text):
    """Returns {line of code: its comment, beside it or else right above it}, for one-line summaries."""
    found, above = {}, []
    for line in text.splitlines():
        alone = re.match(r"\s*(?:///?|/\*|\*)\s?(.*?)\s*(?:\*/)?$", line)
        if alone and not line.strip().startswith("*/"):
            above.append(alone[1])
            continue
        beside = re.search(r"\s(?://|/\*)\s*(.*?)\s*(?:\*/)?$", line)
        key = joined(re.sub(r"\s*(?://|/\*).*$", "", line))
        if key:
            said = beside[1] if beside else joined(" ".join(above))
            found.setdefault(key, said)
        above = []
    return found


def signature(declaration):
    """Returns a function's signature, without attributes and specifiers."""
    words = r"\b(RUNG_API|RUNG_C_API|RUNG_HD|RUNG_ALWAYS_INLINE|constexpr|inline|friend|virtual|explicit)\b\s*"
    text = re.sub(r"\[\[\w+\]\]\s*", "", re.sub(words, "", declaration))
    depth = 0
    for at, letter in enumerate(text):  # cuts off a constructor's initializers
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and letter == ":" and text[at - 1:at + 1] != "::" and text[at:at + 2] != "::":
            text = text[:at]
            break
    return joined(text)


def name_of(text):
    """Returns the function's name: the word before the first parenthesis, after template and requires clauses."""
    text = re.sub(r"^(template <(?:[^<>]|<[^<>]*>)*> )?(requires ?\(.*?\)\)? )?", "", text)
    return re.search(r"(operator[^(]*|~?\w+)\(", text)[1]


def parameters(text):
    """Returns a signature's parameters: [(type, name, default or None)]."""
    found = []
    for part in split_list(text[text.index("(") + 1:text.rindex(")")]):
        if part == "void":
            continue
        head, _, default = part.partition(" = ")
        match = re.match(r"(.*?[\s&*])(\w+)$", head)
        found.append((joined(match[1]), match[2], default or None))
    return found


def functions(text, exported="RUNG_API"):
    """Returns {name: [signatures]} of the functions that a C++ header exports from namespace rung."""
    found = {}
    for declaration, body in namespace_rung(text):
        if body is None and re.match(rf"(\[\[noreturn\]\] )?{exported}\b", declaration):
            found.setdefault(name_of(signature(declaration)), []).append(signature(declaration))
    return found


def c_functions(text):
    """Returns {name: signature} of the functions that a C header declares."""
    return {name_of(signature(found)): signature(found)
            for found in re.findall(r"^RUNG_C_API\s[^;]*", code_of(text), re.M)}


def fields(body):
    """Returns [(type, name, default)] of a structure's body, without functions; an array's type is int[3]."""
    found = []
    for declaration, inner in statements(body):
        if inner is not None or "(" in declaration or declaration.startswith(("static ", "using ")):
            continue
        head, _, default = declaration.partition(" = ")
        match = re.match(r"(.*?[\s&*])(\w+)(\[\d+\])?$", head)
        if match:
            found.append((joined(match[1]) + (match[3] or ""), match[2], default))
    return found


def structures(text):
    """Returns {name: fields} of the plain structures in a C++ header's namespace rung: options and inputs."""
    return {declaration.split()[-1]: fields(body) for declaration, body in namespace_rung(text)
            if re.fullmatch(r"struct \w+", declaration)}


def c_structures(text):
    """Returns {name: [(type, name)]} of a C header."""
    found = re.findall(r"^typedef struct (\w+) \{(.*?)^\} \1;", code_of(text), re.M | re.S)
    return {name: [field[:2] for field in fields(body)] for name, body in found}


def enumerations(text):
    """Returns {name: [enumerators]} of a C++ header's namespace rung, in order from 0."""
    return {re.match(r"enum class (\w+)", declaration)[1]: split_list(body)
            for declaration, body in namespace_rung(text) if declaration.startswith("enum class")}


def c_enumerations(text):
    """Returns {name: {enumerator: value}} of a C header."""
    found = re.findall(r"^typedef enum (\w+) \{(.*?)\} \1;", code_of(text), re.M | re.S)
    return {name: {part.split(" = ")[0]: int(part.split(" = ")[1]) for part in split_list(body)}
            for name, body in found}


def members(text):
    """Returns {class: [signatures]} of the public functions of a C++ header's classes and structures."""
    found = {}
    for declaration, body in namespace_rung(text):
        match = re.search(r"\b(class|struct) (?:RUNG_API )?(\w+)(?: final)?(?: : .*)?$", declaration)
        if body is None or not match or declaration.startswith("enum"):
            continue
        public = match[1] == "struct"
        kept = []
        for statement, _ in statements(body):
            access = re.match(r"(public|private|protected) ?: ?", statement)
            while access:
                public = access[1] == "public"
                statement = statement[access.end():]
                access = re.match(r"(public|private|protected) ?: ?", statement)
            head = signature(statement)
            hidden = statement.startswith("friend ") or statement.endswith("= delete")
            if public and "(" in head and not hidden and not re.match(r"(static_assert|enum|struct)\b", head):
                kept.append(head)
        found[match[2]] = kept
    return found
