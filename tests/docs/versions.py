# SPDX-License-Identifier: Apache-2.0
"""docs/stability.md and CHANGELOG.md agree with the build on versions. usage: versions.py SOURCE"""
import pathlib
import re
import sys

KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}  # section names of Keep a Changelog


def changelog(text, version):
    """Yields complaints about the changelog: its headings, and a missing entry for the version of the sources."""
    sections = re.findall(r"^## (.*)$", text, re.M)
    if sections[:1] != ["[Unreleased]"]:
        yield "CHANGELOG.md does not begin with [Unreleased]"
    released = []
    for section in sections[1:]:
        match = re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d\d-\d\d", section)
        if match:
            released.append(tuple(map(int, match.groups())))
        else:
            yield f"CHANGELOG.md: '{section}' is no '[1.2.3] - 2026-01-31'"
    if released != sorted(released, reverse=True):
        yield "CHANGELOG.md: releases are not in order, the newest first"
    for kind in sorted(set(re.findall(r"^### (.*)$", text, re.M)) - KINDS):
        yield f"CHANGELOG.md: '{kind}' is none of {', '.join(sorted(KINDS))}"
    unreleased = re.search(rf"^To be released as {re.escape(version)}\.$", text, re.M)
    if not unreleased and tuple(map(int, version.split("."))) not in released:
        yield f"CHANGELOG.md has neither a release {version} nor says that one is to come"


def stability(page, version, library, install):
    """Yields the statements of docs/stability.md that contradict the build."""
    if f"rung is at {version}" not in page:
        yield f"docs/stability.md does not say that rung is at {version}"
    if ("SOVERSION ${PROJECT_VERSION_MAJOR}\n" in library) != ("soname\n`librung.so.MAJOR`." in page):
        yield "docs/stability.md: the soname is not what cmake/library.cmake sets by SOVERSION"
    if "COMPATIBILITY SameMinorVersion" not in install or "SameMinorVersion" not in page:
        yield "docs/stability.md: which versions find_package() takes is not what cmake/install.cmake sets"


def main():
    source = pathlib.Path(sys.argv[1])

    def read(name):
        return (source / name).read_text(encoding="utf-8")

    header = read("rung/core/version.h")
    version = ".".join(re.search(rf"^#define RUNG_VERSION_{part} (\d+)", header, re.M)[1]
                       for part in ("MAJOR", "MINOR", "PATCH"))
    wrong = [*changelog(read("CHANGELOG.md"), version),
             *stability(read("docs/stability.md"), version, read("cmake/library.cmake"), read("cmake/install.cmake"))]
    for one in wrong:
        print(one)
    print(f"version {version}: {len(wrong)} complaints")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
