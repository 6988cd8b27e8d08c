# SPDX-License-Identifier: Apache-2.0
"""The field's words instead of private ones, in sources, documents and the subjects of commits. usage: words.py SOURCE

What a reader can look up: "prefetch", not "errand"; "per", not "a". Each line of WORDS is a pattern and what the
field says for it."""
import os
import pathlib
import re
import subprocess
import sys

COUNTED = "additions|bytes|loads|multiply-adds|operations|stores|words"
PER = "cycle|element|result|second|step|thread|multiply-add"
BE = "is|are|was|were|be|been|being"
HOW = "as|at|with|when|anyway|nevertheless|together|once|only"
WHERE = ("above|across|along|anywhere|apart|at|before|behind|below|beside|between|beyond|elsewhere|here|in|inside|on|"
         "outside|past|there|under|where|within")
WORDS = [
    (r"errands?", "interleaved packing"),
    (r"squads?", "warp roles: producer and consumer warps"),
    (r"places? in a page", "4K aliasing"),
    (r"under way", "in flight"),
    (r"side[ _]by[ _]side", "adjacent, contiguous"),
    (r"fores(ee|ees|aw|ight)", "predict, estimate"),
    (r"in turns", "software pipeline, stage"),
    (r"look(s|ed|ing)? on", "software pipeline, stage"),
    (r"takers?", "workers"),
    (r"dealt( out)?( to| among)", "divided among, guided scheduling"),
    (r"(around|past) the caches?", "non-temporal stores"),
    (r"takes? up 2\^\d+|tak(es|en) up all", "accumulates"),
    (r"mailbox(es)?", "packet, flag"),
    (r"Knowledge(Ref)?|unheeded|heard_\w+|heard_of", "vector clock, acquired, pending"),
    (r"RowsToCome|ComingLines|asked_ahead|fetched_ahead", "prefetch stream, prefetch distance"),
    (rf"({COUNTED}) an? ({PER})(?! thread)", "per"),
    (r"(blocks?|warps?) an? SM", "per SM"),
    (r"asked for into|(rows?|lines?) to come", "prefetched into; the next rows"),
    (rf"l(ies?|ying) ({WHERE})", "is, are"),
    (rf"({BE}) told ({HOW})", "is reported"),
    (r"(reads?|access(es)?) of what nobody (has written|wrote)", "reads of uninitialized memory"),
    (r"(is|are) nobody's", "say whose, or that it is unused"),
    (r"Kept(Row|Packs)|kept_row", "register-resident"),
]
ENDINGS = {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".md"}
SKIPPED = {"results", "build", "adr"}  # figures, what is made, and decisions in the words of their day
HISTORY_SINCE = "2026-11-25T16:30"  # subjects before it are what they are
OLDER = {"fd41fe4"}  # a subject older than the word in it that is rejected now


def sources(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED and not f.startswith((".", "build"))]
        yield from (pathlib.Path(folder, name) for name in names if pathlib.Path(name).suffix in ENDINGS)


def complaints(text):
    """(line, what stands there, what the field says)"""
    for pattern, instead in WORDS:
        for found in re.finditer(rf"(?<![A-Za-z]){pattern}(?![A-Za-z])", text):
            yield text.count("\n", 0, found.start()) + 1, found[0], instead


def subjects(root):
    """Of the commits since the list was made, where there is a repository."""
    log = subprocess.run(["git", "-C", str(root), "log", "--format=%h %s", f"--since={HISTORY_SINCE}"],
                         capture_output=True, text=True, check=False)
    return log.stdout.splitlines() if log.returncode == 0 else []


def main():
    root = pathlib.Path(sys.argv[1])
    seen = bad = 0
    for path in sources(root):
        seen += 1
        for line, word, instead in complaints(path.read_text(encoding="utf-8", errors="replace")):
            print(f"{path.relative_to(root)}:{line}: '{word}' is a private word; the field says: {instead}")
            bad += 1
    for subject in subjects(root):
        if subject.split()[0][:7] in OLDER:
            continue
        for _, word, instead in complaints(subject):
            print(f"commit {subject}: '{word}' is a private word; the field says: {instead}")
            bad += 1
    print(f"{seen} files, {bad} complaints")
    if seen == 0 or bad:
        sys.exit(1)


if __name__ == "__main__":
    main()
