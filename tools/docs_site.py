#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs_site.py: the documents as a site in build/site, readable from the disk. `./rung.sh docs` runs it.

A warning is an error.

The pages are all *.md files of the tree, and the sources that they link to. Each is staged in build/docs for MkDocs,
whose Markdown differs from GitHub's: links to sources lead to pages made from them, lists are indented by four. MkDocs
Material is installed into build/docs-venv. Links of the built pages, and their anchors, are checked.
"""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folders whose documents become pages, as do those beside README.md.
FOLDERS = ("docs", "examples", "python", "results", "rung", "tests", "tools")
# Sections of the site and their pages in order, as patterns; pages that match no pattern come last.
SECTIONS = {
    "Use": ("docs/install.md", "docs/python.md", "docs/python*.md", "docs/api.md", "docs/tuning.md", "docs/json.md",
            "docs/reliability.md", "docs/stability.md", "python/**/*.md", "examples/**/*.md"),
    "Learn": ("docs/course/README.md", "docs/course/*.md", "docs/explain.md", "docs/simulated-gpu.md",
              "rung/emulate/README.md", "docs/emulate.md", "docs/survey.md", "docs/*.md"),
    "Operators": ("rung/ops/*/README.md",),
    "Work on it": ("CONTRIBUTING.md", "docs/architecture.md", "docs/add-a-rung.md", "docs/add-an-operator.md",
                   "tests/**/*.md", "tools/**/*.md", "results/**/*.md", "CHANGELOG.md", "SECURITY.md",
                   "CODE_OF_CONDUCT.md"),
    "Experiments": ("rung/ops/*/MEASUREMENTS.md", "rung/ops/*/EXPERIMENTS.md"),
    "Decisions": ("docs/adr/*.md",),
    "More": ("**/*.md",),
}
LANGUAGES = {".c": "c", ".cl": "c", ".cpp": "cpp", ".cu": "cpp", ".cuh": "cpp", ".h": "cpp", ".hpp": "cpp",
             ".metal": "cpp", ".mm": "objc", ".py": "python", ".sh": "bash", ".cmake": "cmake", ".json": "json",
             ".yml": "yaml", ".txt": "text"}
RAW = {".png", ".svg", ".jpg", ".gif", ".ipynb"}  # copied unchanged
LINK = re.compile(r'(\]\(|\b(?:href|src)="|^\s*\[[^\]]+\]:\s+)([^)\s"]+)')
ITEM = re.compile(r"( *)([-*+]|\d+[.)]) +")
FENCE = re.compile(r" *(`{3,}|~{3,})")


# --- staging -------------------------------------------------------------------------------------------------------

def documents(root):
    found = list(root.glob("*.md"))
    for folder in FOLDERS:
        found += (root / folder).rglob("*.md")
    return sorted(path.relative_to(root) for path in found)


def outside_code(line, change):
    """Returns the line with change() applied outside of code spans."""
    parts = re.split(r"((?<!`)(`+)(?!`).*?(?<!`)\2(?!`))", line)
    # Each code span yields two parts: the span and its backquotes.
    return "".join(part if at % 3 == 1 else change(part) for at, part in enumerate(parts) if at % 3 != 2)


def with_lists_apart(lines):
    """Yields (line, is it code), with lists as Python-Markdown expects them: four columns per level, after a blank
    line."""
    offsets, fence, before = [], None, ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if fence is None and line.strip():
            while offsets and indent < offsets[-1]:
                offsets.pop()
        depth, margin = len(offsets), offsets[-1] if offsets else 0
        body = line[min(indent, margin):]
        opens = FENCE.match(body)
        if fence is not None:
            if opens and opens[1].startswith(fence) and not body.strip().strip(fence[0]):
                fence = None
            yield "    " * depth + body if body else "", True
            continue
        if opens:
            fence = opens[1]
            yield "    " * depth + body, True
            continue
        item = ITEM.match(body)
        if item:
            if before.strip() and not depth and not ITEM.match(before) and not before.startswith(" "):
                yield "", False
            offsets.append(margin + len(item[0]))
        yield "    " * depth + body if body.strip() else "", False
        before = line


def page_of(root, target):
    """Returns the page that shows a file or folder of the tree, given by its path in the tree."""
    if (root / target).is_dir():
        readme = target / "README.md"
        return readme if (root / readme).exists() else target / "index.md"
    return target if target.suffix in {".md", *RAW} else target.with_name(target.name + ".md")


class Staging:
    """Pages of a tree, and the files that they link to."""

    def __init__(self, root):
        self.root = root
        self.documents = documents(root)
        self.linked = set()  # files and folders, by their paths in the tree
        self.broken = []

    def rewritten(self, document, link):
        """Returns a document's link, redirected to the page that shows its target."""
        path, _, anchor = link.partition("#")
        if not path or re.match(r"[a-z]+:|//", link, re.I):
            return link
        target = pathlib.Path(os.path.normpath(document.parent / urllib.parse.unquote(path)))
        if target.parts[:1] == ("..",) or not (self.root / target).exists():
            self.broken.append(f"{document}: there is no {link}")
            return link
        page = page_of(self.root, target)
        if page not in self.documents:
            self.linked.add(target)
            if page.suffix == ".md":
                anchor = re.sub(r"^L(\d+).*", r"__codelineno-0-\1", anchor)
        return os.path.relpath(page, document.parent) + ("#" + anchor if anchor else "")

    def text(self, document):
        """Returns a document in the form that MkDocs expects."""
        def change(part):
            return LINK.sub(lambda found: found[1] + self.rewritten(document, found[2]), part)

        staged = list(with_lists_apart((self.root / document).read_text(encoding="utf-8").splitlines()))
        rows = [not is_code and line.lstrip().startswith("|") for line, is_code in staged]
        for at, (line, _) in enumerate(staged[:-1]):
            if rows[at] and not (at and rows[at - 1]) and not re.fullmatch(r"[\s|:-]+", staged[at + 1][0]):
                self.broken.append(f"{document}: no table begins with {line[:60]}")
        return "\n".join(line if is_code else outside_code(line, change) for line, is_code in staged) + "\n"

    def source_page(self, target):
        """Returns a page that shows a file or lists a folder."""
        head = f"---\ntitle: {target}\nsearch:\n  exclude: true\n---\n\n# {target}\n\n"
        if (self.root / target).is_dir():
            entries = sorted(path for path in (self.root / target).iterdir()
                             if not path.name.startswith((".", "__")))
            lines = []
            for path in entries:
                entry = path.relative_to(self.root)
                page, name = page_of(self.root, entry), entry.name + ("/" if path.is_dir() else "")
                shown = entry in self.linked or page in self.documents
                lines.append(f"- [{name}]({os.path.relpath(page, target)})" if shown else f"- `{name}`")
            return head + "\n".join(lines) + "\n"
        text = (self.root / target).read_text(encoding="utf-8")
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        return f"{head}{fence}{LANGUAGES.get(target.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"

    def write(self, stage):
        """Writes all pages to a folder, which is emptied first. Returns the pages made from sources."""
        shutil.rmtree(stage, ignore_errors=True)
        pages = {document: self.text(document) for document in self.documents}
        made = []
        for target in sorted(self.linked):
            page = page_of(self.root, target)
            if page.suffix == ".md":
                pages[page] = self.source_page(target)
                made.append(page)
            else:
                (stage / page).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.root / target, stage / page)
        for page, text in pages.items():
            (stage / page).parent.mkdir(parents=True, exist_ok=True)
            (stage / page).write_text(text, encoding="utf-8")
        return made


def navigation(pages):
    """Returns the sections of SECTIONS that have pages."""
    left = [page for page in pages if page != pathlib.Path("README.md")]
    sections = [{"rung": "README.md"}]
    for name, patterns in SECTIONS.items():
        chosen = []
        later = {one for section, more in SECTIONS.items() if section not in (name, "More") for one in more}
        for pattern in patterns:
            # A pattern with a wildcard skips pages that belong to a later section.
            chosen += [page for page in left if matches(page, pattern) and page not in chosen and
                       ("*" not in pattern or str(page) not in later)]
        left = [page for page in left if page not in chosen]
        if chosen:
            sections.append({name: [str(page) for page in chosen]})
    return sections


def matches(page, pattern):
    expression = re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
    return re.fullmatch(expression, str(page)) is not None


# --- what was built ------------------------------------------------------------------------------------------------

class Page(html.parser.HTMLParser):
    """Anchors of a page, its links and the files that it loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])
        elif given.get("src"):
            self.loads.add(given["src"])
        elif tag == "link" and given.get("href") and given.get("rel") != "canonical":
            self.loads.add(given["href"])


def wrong_links(site):
    """Yields complaints about the links of the pages below a folder: missing targets and anchors, and files that a
    page loads from elsewhere."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links | page.loads):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    yield f"{path.relative_to(site)}: loads {link} from elsewhere"
                continue
            name = urllib.parse.unquote(parts.path)
            if name.startswith("/"):  # in 404.html, which a server sends for any address
                name = os.path.relpath(site / name.lstrip("/"), path.parent)
            target = path if not name else pathlib.Path(os.path.normpath(path.parent / name))
            if target.is_dir():
                target = target / "index.html"
            if not target.is_file():
                yield f"{path.relative_to(site)}: there is no {link}"
            elif parts.fragment and target in pages:
                if urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                    yield f"{path.relative_to(site)}: {link}: there is no such place on that page"


# --- the command ---------------------------------------------------------------------------------------------------

def mkdocs():
    """Returns the path of MkDocs; installs it if the installed version differs from docs_requirements.txt."""
    venv, wanted = ROOT / "build/docs-venv", ROOT / "tools/docs_requirements.txt"
    stamp = venv / "installed"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        print("installing MkDocs Material into build/docs-venv", file=sys.stderr)
        for command in ([sys.executable, "-m", "venv", "--clear", venv],
                        [venv / "bin/pip", "install", "-q", "--disable-pip-version-check", "-r", wanted]):
            if subprocess.run(command, check=False).returncode != 0:
                sys.exit(f"docs_site.py: could not install {wanted.relative_to(ROOT)} into {venv.relative_to(ROOT)}")
        stamp.write_text(wanted.read_text())
    return venv / "bin/mkdocs"


def main():
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    started = time.monotonic()
    program = mkdocs()
    staging = Staging(ROOT)
    made = staging.write(ROOT / "build/docs")
    (ROOT / "build/docs/assets").mkdir(exist_ok=True)
    shutil.copy(ROOT / "tools/iframe-worker.js", ROOT / "build/docs/assets")
    if staging.broken:
        sys.exit("\n".join(staging.broken))
    settings = {"INHERIT": "../mkdocs.yml", "docs_dir": "docs", "site_dir": "site",
                "nav": navigation(staging.documents), "not_in_nav": "\n".join(f"/{page}" for page in made)}
    (ROOT / "build/mkdocs.yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")
    # Suppresses the notice about MkDocs 2, which docs_requirements.txt does not install.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([program, "build", "--strict", "--clean", "--quiet", "-f", ROOT / "build/mkdocs.yml"],
                          env=environment, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    wrong = list(wrong_links(ROOT / "build/site"))
    for one in wrong:
        print(one)
    pages = sum(1 for _ in (ROOT / "build/site").rglob("*.html"))
    print(f"build/site/index.html: {pages} pages, {len(made)} of them sources, {len(wrong)} wrong links, "
          f"{time.monotonic() - started:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
