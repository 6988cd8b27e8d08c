#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails each allocation, open, write, link, rename, fsync and thread creation of `rung run` in turn: on arrays in .npy
files, and on pictures in .png files, which libpng reads and writes.

Whatever fails, the program must end by itself: with a message, a documented exit code and the old output intact or, if
it can continue, with the right new output. No other file may remain.

Usage: faults.py RUNG SHIM OPERATOR... [--only KIND]
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile
import zlib

KINDS = ["open", "write", "fsync", "link", "rename", "thread", "allocate"]
ROWS, COLUMNS = 300, 1000  # enough work for several threads
OLD = b"the old file"


def npy(values, shape):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header += " " * (117 - len(header)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values


def png(rows, columns):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    pixels = b"".join(b"\0" + bytes((7 * row + column) % 256 for column in range(3 * columns)) for row in range(rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


def fail_in_turn(rung, shim, operator, suffix, given, kinds):
    """Returns complaints about bad endings."""
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        names = {f"in{suffix}", f"out{suffix}"}
        source, output = os.path.join(folder, f"in{suffix}"), os.path.join(folder, f"out{suffix}")
        fired = os.path.join(folder, "fired")
        with open(source, "wb") as file:
            file.write(given)
        command = [rung, "run", operator, source, "-o", output, "--threads", "3"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(output, "rb") as file:
            right = file.read()
        for kind in kinds:
            number = 0
            while True:
                number += 1
                with open(output, "wb") as file:
                    file.write(OLD)
                environment = dict(os.environ, LD_PRELOAD=shim, RUNG_FAULT_KIND=kind,
                                   RUNG_FAULT_NUMBER=str(number), RUNG_FAULT_AFTER=f"in{suffix}",
                                   RUNG_FAULT_FIRED=fired, RUNG_CPU_TEAM="exact")
                try:
                    done = subprocess.run(command, env=environment, timeout=60, text=True,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                    code, message = done.returncode, done.stderr
                except subprocess.TimeoutExpired:
                    code, message = None, "it hangs"
                with open(output, "rb") as file:
                    content = file.read()
                if not os.path.exists(fired):
                    break
                os.remove(fired)
                ended_well = code in (1, 2, 3) and message.startswith("rung: ") and content == OLD
                if not ended_well and not (code == 0 and content == right):
                    bad.append(f"{operator}, {kind} {number}: exit code {code}, output "
                               f"{'old' if content == OLD else 'right' if content == right else 'WRONG'}: "
                               f"{message.strip()[:200]}")
                left = sorted(set(os.listdir(folder)) - names)
                if left:
                    bad.append(f"{operator}, {kind} {number}: left behind: {', '.join(left)}")
                    for name in left:
                        os.remove(os.path.join(folder, name))
            print(f"{operator}, {kind}: {number - 1} calls failed in turn")
            if number == 1:
                bad.append(f"{operator}, {kind}: no such call is made, so nothing was tested")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rung")
    parser.add_argument("shim")
    parser.add_argument("operators", nargs="+")
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    bad = []
    if "softmax" in options.operators:
        bad += fail_in_turn(options.rung, options.shim, "softmax", ".npy",
                            npy(struct.pack("<f", 1.5) * (ROWS * COLUMNS), (ROWS, COLUMNS)),
                            [options.only] if options.only else KINDS)
    if "image" in options.operators:
        # The threads perform the same work.
        bad += fail_in_turn(options.rung, options.shim, "image", ".png", png(40, 50),
                            [options.only] if options.only else [kind for kind in KINDS if kind != "thread"])
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
