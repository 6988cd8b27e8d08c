# SPDX-License-Identifier: Apache-2.0
"""The field's words instead of private ones, in sources, documents and the subjects of commits. usage: words.py SOURCE

Standard terms can be looked up: "prefetch", not "errand"; "per", not "a". Each line of WORDS is a pattern and the
standard term for it. A doc comment begins with its verb ("Returns ...") or noun ("Tile sizes ..."), not with a
fragment; a commit's subject has at most 72 characters."""
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
FRAGMENT = re.compile(r"(Of|What|Where|Whether|Which|Who|Whose|Why|As|The same|By|To|How|That|Likewise)\b(?!-)")
DOC_COMMENT = re.compile(r"(?:^|\s)///<? ?(.*)")
# Operators whose doc comments may still begin with a fragment. The set must only shrink.
UNFINISHED: set[str] = set()
LONGEST_SUBJECT = 72
SUBJECTS_SINCE = "2026-11-29T14:30"  # older subjects may be longer
CODE = {".c", ".cl", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".metal", ".mm"}
ENDINGS = {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".md"}
SKIPPED = {"results", "build", "adr"}  # figures, generated files, and decisions in the words of their day
HISTORY_SINCE = "2026-11-25T16:30"  # older subjects are not checked
OLDER = {"fd41fe4"}  # an older subject with a word that is rejected now


def sources(root, endings=frozenset(ENDINGS)):
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED and not f.startswith((".", "build"))]
        yield from (pathlib.Path(folder, name) for name in names if pathlib.Path(name).suffix in endings)


def complaints(text):
    """Yields (line, text found, standard term)."""
    for pattern, instead in WORDS:
        for found in re.finditer(rf"(?<![A-Za-z]){pattern}(?![A-Za-z])", text):
            yield text.count("\n", 0, found.start()) + 1, found[0], instead


def fragments(text):
    """Yields (line, first word) of each doc comment that begins with a fragment."""
    inside = False  # whether the previous line is a doc comment
    for number, line in enumerate(text.splitlines(), 1):
        comment = DOC_COMMENT.search(line)
        found = FRAGMENT.match(comment[1]) if comment and not inside else None
        if found:
            yield number, found[1]
        inside = line.lstrip().startswith("///")


def operator_of(path):
    """Returns the operator whose folder in rung/ops contains the file; None if there is none."""
    return path.parts[2] if path.parts[:2] == ("rung", "ops") and len(path.parts) > 3 else None


def misbegun(root):
    """Yields complaints about doc comments that begin with a fragment, outside of unfinished operators."""
    left = set()
    for path in sources(root, CODE):
        name = path.relative_to(root)
        found = list(fragments(path.read_text(encoding="utf-8", errors="replace")))
        if found and operator_of(name) in UNFINISHED:
            left.add(operator_of(name))
        else:
            for line, word in found:
                yield f"{name}:{line}: a doc comment that begins with '{word}': begin with its verb or noun"
    for operator in sorted(UNFINISHED - left):
        if (root / "rung" / "ops" / operator).is_dir():
            yield f"rung/ops/{operator}: no doc comment begins with a fragment: take it off UNFINISHED in words.py"


def subjects(root, since=HISTORY_SINCE):
    """Returns the subjects of the commits since then, each after its hash; none if there is no repository."""
    log = subprocess.run(["git", "-C", str(root), "log", "--no-merges", "--format=%h %s", f"--since={since}"],
                         capture_output=True, text=True, check=False)
    return log.stdout.splitlines() if log.returncode == 0 else []


def too_long(listed):
    """Yields complaints about subjects that are too long, each given after its commit's hash."""
    for line in listed:
        commit, _, subject = line.partition(" ")
        if len(subject) > LONGEST_SUBJECT:
            yield f"commit {commit}: a subject of {len(subject)} characters; at most {LONGEST_SUBJECT}"


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
    for complaint in [*misbegun(root), *too_long(subjects(root, SUBJECTS_SINCE))]:
        print(complaint)
        bad += 1
    print(f"{seen} files, {bad} complaints")
    if seen == 0 or bad:
        sys.exit(1)


if __name__ == "__main__":
    main()
