# SPDX-License-Identifier: Apache-2.0
"""tools/docs_site.py without MkDocs: staging of a small tree and of the real one, and the check of built pages.

usage: docs_site_test.py SOURCE"""
import pathlib
import re
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "tools"))
from docs_site import Staging, navigation, page_of, wrong_links  # noqa: E402 (its folder is known only now)

TREE = {
    "README.md": """# Top
See [the guide](docs/guide.md#a-part), [a source](rung/ops/a/a.hpp#L2).
Of [a folder](rung/ops/a/cpu/), [the operator](rung/ops/a).
Not `[this](nowhere.md)`, ``nor ` [that](nowhere.md)``, nor [elsewhere](https://example.org/a.md).
- a list without a blank line before
  - a level
    of two lines
    ```sh
    echo "[not](a-link.md)"
    ```
- the first level again

```text
- [no list](nowhere.md)
```
[reference]: docs/guide.md
<img src="docs/plot.svg">
""",
    "docs/guide.md": "# Guide\n\n## A part\n\n[up](../README.md) and [below](#a-part)\n",
    "docs/plot.svg": "<svg/>", "rung/ops/a/README.md": "# a\n\n1. one\n   two\n2. three\n",
    "rung/ops/a/a.hpp": "a\n```\nb\n",
    "rung/ops/a/cpu/010_naive.cpp": "int a;\n", "docs/adr/0001-a.md": "# 1. A\n",
}
STAGED = """# Top
See [the guide](docs/guide.md#a-part), [a source](rung/ops/a/a.hpp.md#__codelineno-0-2).
Of [a folder](rung/ops/a/cpu/index.md), [the operator](rung/ops/a/README.md).
Not `[this](nowhere.md)`, ``nor ` [that](nowhere.md)``, nor [elsewhere](https://example.org/a.md).

- a list without a blank line before
    - a level
        of two lines
        ```sh
        echo "[not](a-link.md)"
        ```
- the first level again

```text
- [no list](nowhere.md)
```
[reference]: docs/guide.md
<img src="docs/plot.svg">
"""
BROKEN = {  # a document, and the expected complaint
    "[a](missing.md)": "docs/b.md: there is no missing.md",
    "[a](../../outside.md)": "docs/b.md: there is no ../../outside.md",
    "| a | b |\n| c | d |": "docs/b.md: no table begins with | a | b |",
}
SITE = {  # a page, and the expected complaint
    '<a href="b.html#there">b</a><a href="#here" id="here">c</a><a href="https://example.org/">d</a>': None,
    '<a href="c.html">b</a>': "a.html: there is no c.html",
    '<a href="b.html#nowhere">b</a>': "a.html: b.html#nowhere: there is no such place on that page",
    '<script src="https://example.org/a.js"></script>': "a.html: loads https://example.org/a.js from elsewhere",
    '<link rel="stylesheet" href="//example.org/a.css">': "a.html: loads //example.org/a.css from elsewhere",
    '<a href="/b.html">b</a>': None,
}
failed = 0


def expect(found, expected, what):
    global failed
    if found != expected:
        print(f"{what}:\n{found}\nnot\n{expected}")
        failed += 1


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def small_tree(folder):
    root, stage = folder / "tree", folder / "stage"
    write(root, TREE)
    staging = Staging(root)
    made = staging.write(stage)
    expect(staging.broken, [], "broken links")
    expect((stage / "README.md").read_text(), STAGED, "README.md")
    expect((stage / "rung/ops/a/README.md").read_text(), "# a\n\n1. one\n    two\n2. three\n", "a numbered list")
    expect([str(path) for path in made], ["rung/ops/a/a.hpp.md", "rung/ops/a/cpu/index.md"], "pages of sources")
    source, listing = ((stage / page).read_text().partition("\n# ")[2] for page in made)
    expect(source, "rung/ops/a/a.hpp\n\n````cpp\na\n```\nb\n````\n", "a source")
    expect(listing, "rung/ops/a/cpu\n\n- `010_naive.cpp`\n", "a folder")
    expect((stage / "docs/plot.svg").read_text(), "<svg/>", "a picture")
    sections = [{"rung": "README.md"}, {"Learn": ["docs/guide.md"]}, {"Operators": ["rung/ops/a/README.md"]},
                {"Decisions": ["docs/adr/0001-a.md"]}]
    expect(navigation(staging.documents), sections, "navigation")
    for text, complaint in BROKEN.items():
        write(root, {"docs/b.md": f"# b\n\n{text}\n"})
        staging = Staging(root)
        staging.write(stage)
        expect(staging.broken, [complaint], text)


def built_pages(folder):
    site = folder / "site"
    for text, complaint in SITE.items():
        write(site, {"a.html": text, "b.html": '<h2 id="there">b</h2>'})
        expect(list(wrong_links(site)), [complaint] if complaint else [], text)


def real_tree(folder):
    """Expects every document to be staged and in the navigation, once, and each link to lead to a staged file."""
    staging = Staging(SOURCE)
    staging.write(folder / "real")
    expect(staging.broken, [], "broken links of the documents")
    sections = navigation(staging.documents)
    listed = [page for section in sections for pages in section.values()
              for page in ([pages] if isinstance(pages, str) else pages)]
    expect(sorted(listed), sorted(map(str, staging.documents)), "pages in the navigation")
    expect([name for section in sections for name in section if name == "More"], [], "pages that no section names")
    links = 0
    for document in staging.documents:
        text = (folder / "real" / document).read_text()
        text = re.sub(r"^ *(`{3,}).*?^ *\1$|(`+)[^`]+\2", "", text, flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)\s#]+)", text):
            if not re.match(r"[a-z]+:", link):
                links += 1
                expect((folder / "real" / document.parent / link).is_file(), True, f"{document}: {link}")
    expect(len(staging.documents) > 50 and links > 150, True, f"{len(staging.documents)} documents, {links} links")
    expect(page_of(SOURCE, pathlib.Path("rung.sh")), pathlib.Path("rung.sh.md"), "the page of rung.sh")


def main():
    with tempfile.TemporaryDirectory() as folder:
        small_tree(pathlib.Path(folder))
        built_pages(pathlib.Path(folder))
        real_tree(pathlib.Path(folder))
    print(f"{failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
