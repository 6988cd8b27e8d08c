# SPDX-License-Identifier: Apache-2.0
"""words.py's rules for doc comments and subjects, each with valid and invalid text. usage: words_test.py"""
import pathlib
import sys
import tempfile

import words

# Texts, and the lines that words.fragments() must report.
COMMENTS = [
    (["/// Returns the tile of this block.", "int tile();"], []),
    (["/// Of a block: its tile.", "int tile();"], [1]),
    (["/// Tile sizes, indexed by head width", "/// as the host pads it.", "int sizes[3];"], []),
    (["/// Tile sizes.", "int sizes[3];", "  /// What is left.", "  int rest;"], [3]),
    (["int rest;  ///< By row: what is left.", "int all;  ///< Elements per row."], [1]),
    (["// What a file is for may be told so.", "//// To", "/// To-do lists, by day."], []),
    (["/// The same of columns.", "/// The sameness of columns."], [1]),
    (["/// Assigns.", "/// Toggles.", "/// Howitzers."], []),
]
SUBJECTS = [("abc1234 " + "x" * 72, False), ("abc1234 " + "x" * 73, True)]


def tree(files):
    root = pathlib.Path(tempfile.mkdtemp())
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def main():
    wrong = []
    for lines, wanted in COMMENTS:
        found = [line for line, _ in words.fragments("\n".join(lines))]
        if found != wanted:
            wrong.append(f"{lines}: complains of lines {found}, should of {wanted}")
    for subject, wanted in SUBJECTS:
        if bool(list(words.too_long([subject]))) != wanted:
            wrong.append(f"a subject of {len(subject) - 8} characters: should {'' if wanted else 'not '}be refused")
    words.UNFINISHED = {"gemm", "conv"}
    root = tree({"rung/ops/gemm/a.hpp": "/// Of a.\n", "rung/ops/conv/a.hpp": "/// A.\n",
                 "rung/ops/scan/a.hpp": "/// Of a.\n", "rung/simt/a.hpp": "/// Returns a.\n"})
    found = list(words.misbegun(root))
    if len(found) != 2 or "rung/ops/scan/a.hpp:1" not in found[0] or "rung/ops/conv: no doc comment" not in found[1]:
        wrong.append(f"of the tree: {found}")
    print("\n".join(wrong) or "ok")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
