# SPDX-License-Identifier: Apache-2.0
"""Collects the license texts of the libraries that a wheel carries: those that `auditwheel repair` copies into it, and
those that are headers alone. usage: licenses.py FOLDER BINARY...   or   licenses.py --check WHEEL

FOLDER gets a text per package, as the system's packages have it, and an index of libraries. --check fails for a library
in the wheel without a text."""
import pathlib
import re
import subprocess
import sys
import zipfile

DOCUMENTS = pathlib.Path("/usr/share/doc")
INDEX = "libraries.txt"
HEADERS = ("libcli11-dev", "nlohmann-json3-dev")  # compiled in
SYSTEM = ("libc6", "libgcc-s1", "libstdc++6")  # of every system, never copied


def libraries(binaries):
    """Returns the paths of the shared libraries that binaries load, without rung's own."""
    found = set()
    for binary in binaries:
        out = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False).stdout
        found |= {pathlib.Path(path) for path in re.findall(r"=> (/\S+)", out)}
    return sorted(path for path in found if not path.name.startswith("librung"))


def packages_of(paths):
    """Returns the names of the Debian packages that own files, by file; omits files that no package owns."""
    # Packages list a file in /lib as /lib/x or as /usr/lib/x.
    known = {}
    for path in paths:
        for name in {str(path), str(path.resolve())}:
            plain = name.removeprefix("/usr")
            known.update({plain: path, "/usr" + plain: path})
    if not known:
        return {}
    try:
        out = subprocess.run(["dpkg-query", "-S", *known], capture_output=True, text=True, check=False).stdout
    except OSError:
        return {}
    found = (line.split(": ", 1) for line in out.splitlines() if ": " in line and not line.startswith("diversion "))
    return {known[name]: package.split(":")[0] for package, name in found if name in known}


def text_of(package):
    """Returns the license text of a package, with the licenses that it refers to; None if the package has no text."""
    path = DOCUMENTS / package / "copyright"
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    for name in sorted(set(re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", text))):
        license_file = pathlib.Path("/usr/share/common-licenses") / name
        if license_file.exists():
            text += f"\n\n{'=' * 78}\n{name}\n{'=' * 78}\n\n" + license_file.read_text(encoding="utf-8")
    return text


def collect(folder, binaries):
    paths = libraries(binaries)
    owners = packages_of(paths)
    packages = {path.resolve().name: owners.get(path) for path in paths}
    index = {}
    # A peer that uses Eigen is a separate library, which a build may omit.
    headers = [*HEADERS, *(["libeigen3-dev"] if any("eigen" in pathlib.Path(one).name for one in binaries) else [])]
    for library, package in [*packages.items(), *((f"({name})", name) for name in headers)]:
        if package in SYSTEM:
            continue
        text = text_of(package) if package else None
        if text is None:
            if not library.startswith("("):
                print(f"licenses.py: no license text of {library}; accepted: a library of a Debian package",
                      file=sys.stderr)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{package}.txt").write_text(text, encoding="utf-8")
        index[library] = package
    if index:
        lines = "".join(f"{library}: {package}.txt\n" for library, package in sorted(index.items()))
        (folder / INDEX).write_text(lines, encoding="utf-8")


def check(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        grafted = [name.rsplit("/", 1)[1] for name in names if re.search(r"\.libs/[^/]+$", name)]
        found = [name for name in names if re.search(rf"\.dist-info/licenses/.*\b{re.escape(INDEX)}$", name)]
        index = archive.read(found[0]).decode() if found else ""
        known = dict(line.split(": ") for line in index.splitlines())
        texts = {name.rsplit("/", 1)[1] for name in names if ".dist-info/licenses/" in name}
    # auditwheel adds a hash to the name: libfmt-4f700944.so.9.1.0.
    missing = [name for name in grafted if known.get(re.sub(r"-[0-9a-f]{8}(?=\.)", "", name)) not in texts]
    print(f"   {len(grafted)} libraries, {len(missing)} without a license text")
    sys.exit("".join(f"no license text of {name}\n" for name in missing) or 0)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        check(sys.argv[2])
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    collect(pathlib.Path(sys.argv[1]), sys.argv[2:])


if __name__ == "__main__":
    main()
