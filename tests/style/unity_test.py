# SPDX-License-Identifier: Apache-2.0
"""unity.py on a small tree: sources that may be compiled as one, and each way in which two of them conflict.
usage: unity_test.py"""
import pathlib
import subprocess
import sys
import tempfile

UNITY = pathlib.Path(__file__).resolve().with_name("unity.py")
CMAKE = "add_library(rung_core OBJECT)\nrung_compile_together(rung_core)\n"
HIDDEN = "#include <string>\nnamespace rung {\nnamespace {\n%s\n}  // namespace\n}  // namespace rung\n"
OPEN = "namespace rung {\n%s\n}  // namespace rung\n"
A, B, H = "rung/core/a.cpp", "rung/core/b.cpp", "rung/core/b.hpp"


def both(a, b):
    return {A: HIDDEN % a, B: HIDDEN % b}


# Files, and unity.py's expected complaint; None if there is none.
CASES = [
    (both("int twice(int x) { return 2 * x; }", "int half(int x) { return x / 2; }"), None),
    (both("int twice(int x) { return 2 * x; }", "int twice(int y) {\n  return y + y;\n}"),
     "rung/core/a.cpp:4: twice is also defined by rung/core/b.cpp:4"),
    # Overloads.
    (both("int twice(int x) { return 2 * x; }", "double twice(double x) { return 2 * x; }"), None),
    (both("template <class T>\nT twice(T x) { return 2 * x; }", "template <class T>\nT twice(T x) { return x + x; }"),
     "a.cpp:4: twice"),
    (both("std::map<int, std::string (*)(int)> twice(int x = 1) { return {}; }",
          "std::map<int, int> twice(int) { return {}; }"), "a.cpp:4: twice"),
    (both("struct Options {\n  int count = 0;\n};", "struct Options {\n  int size = 0;\n};"), "a.cpp:4: Options"),
    (both("struct Options {};", "class Options : public std::map<int, int> {};"), "a.cpp:4: Options"),
    (both("struct Options;", "struct Options;"), None),
    (both("constexpr int most = 3;", "constexpr double most = 4;"), "a.cpp:4: most"),
    (both("constexpr int most = 3;", "int most(int x) { return x; }"), "a.cpp:4: most"),
    (both("enum Side { left, right };", "int left = 0;"), "a.cpp:4: left"),
    (both("enum class Side { left, right };", "int left = 0;"), None),
    (both("using Words = std::vector<int>;", "using Words = std::vector<int>;"), None),
    (both("using Words = std::vector<int>;", "using Words = std::vector<char>;"), "a.cpp:4: Words"),
    # Names within functions and types are local; a string is no declaration.
    (both('void one() {\n  int shared = 0;\n  const char* x = "int shared = 1;";  // }\n}',
          "struct Two {\n  Two() : shared{1} { ++shared; }\n  int shared;\n};\nvoid two() { int shared = 0; }"), None),
    # Static or constant: as if in an anonymous namespace.
    ({A: OPEN % "static int twice(int x) { return 2 * x; }", B: HIDDEN % "int twice(int x) { return x + x; }"},
     "a.cpp:2: twice"),
    ({A: OPEN % "const int most = 3;", B: OPEN % "constexpr int most = 3;"}, "a.cpp:2: most"),
    # The enclosing namespace, in a source or in a header: a call would match both.
    ({A: HIDDEN % "int twice(int x) { return 2 * x; }", B: OPEN % "int twice(int x) { return x + x; }"},
     "a.cpp:4: twice"),
    ({A: HIDDEN % "int twice(int x) { return 2 * x; }", H: OPEN % "const int& twice(int x);"}, "b.hpp:2"),
    ({A: OPEN % "const int& twice(int x) { return x; }", H: OPEN % "const int& twice(int x);"}, None),
    # Another namespace.
    ({A: HIDDEN % "int twice(int x) { return 2 * x; }",
      B: (HIDDEN % "int twice(int x) { return x + x; }").replace("namespace rung {", "namespace rung::inner {")}, None),
    # Sources that are compiled separately.
    (both("int twice(int x) { return 2 * x; }",
          "int twice(int x) { return x + x; }\n}\nconst Command self{{}};\nnamespace {"), None),
    # Tests.
    ({f"tests/core/{name}_test.cpp": HIDDEN % "TEST(Suite, Same) {}" for name in "ab"},
     "tests/core/a_test.cpp:4: TEST is also"),
    ({f"tests/core/{name}_test.cpp": HIDDEN % f"TEST(Suite, {name}) {{}}" for name in "ab"}, None),
    ({"CMakeLists.txt": CMAKE.replace("rung_core", "rung_other")}, "rung_compile_together(rung_other): LIBRARIES"),
]


def main():
    failed = 0
    for files, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"CMakeLists.txt": CMAKE, **files}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, UNITY, folder], capture_output=True, text=True, check=False)
        if (done.returncode != 0) != bool(expected) or (expected or "0 complaints") not in done.stdout:
            print(f"{files}: wanted is {expected or 'no complaint'}, said was:\n{done.stdout}{done.stderr}")
            failed += 1
    print(f"{len(CASES)} cases, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
