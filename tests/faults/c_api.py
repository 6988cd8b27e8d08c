#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails each allocation, and the start of threads, of a C program in turn (c_api.c): its calls return
RUNG_OUT_OF_MEMORY or succeed, are made again with success, and nothing leaks.

Usage: c_api.py PROGRAM SHIM
"""
import os
import subprocess
import sys
import tempfile

# Allocation functions.
SLACK_BYTES = 64
# The OpenMP runtime ends the process if it cannot allocate: docs/reliability.md.
KNOWN_IN_OPENMP = 4


def run(program, shim, folder, kind, threads, number):
    """Returns (exit code, standard output, standard error, whether a call was failed)."""
    fired = os.path.join(folder, "fired")
    # Memory that the allocator caches for threads counts as allocated.
    environment = dict(os.environ, LD_PRELOAD=shim, RUNG_FAULT_KIND=kind, RUNG_FAULT_NUMBER=str(number),
                       RUNG_FAULT_AFTER="armed", RUNG_FAULT_FIRED=fired,
                       GLIBC_TUNABLES="glibc.malloc.tcache_count=0")
    done = subprocess.run([program, kind, str(threads)], env=environment, cwd=folder, timeout=60, text=True,
                          capture_output=True)
    was_failed = os.path.exists(fired)
    if was_failed:
        os.remove(fired)
    return done.returncode, done.stdout, done.stderr, was_failed


def main():
    program, shim = sys.argv[1:3]
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, threads in [("allocate", 1), ("allocate", 2), ("thread", 2)]:
            code, usual, message, _ = run(program, shim, folder, kind, threads, 0)
            if code != 0:
                sys.exit(f"with nothing failed: exit code {code}: {message}")
            number = by_openmp = reported = 0
            while True:
                number += 1
                code, live, message, was_failed = run(program, shim, folder, kind, threads, number)
                if not was_failed:
                    break
                what = f"{kind} {number}, {threads} threads"
                reported += "no memory: " in message
                if "libgomp: Out of memory" in message:
                    by_openmp += 1
                elif code != 0:
                    bad.append(f"{what}: exit code {code}: {message.strip()[:300]}")
                # The C library keeps stacks of ended threads.
                elif threads == 1 and int(live) > int(usual) + SLACK_BYTES:
                    bad.append(f"{what}: {int(live) - int(usual)} bytes leak: {message.strip()[:300]}")
                if kind == "thread":
                    number += 1
                    break  # the failure persists, so the first one covers all
            print(f"{kind}, {threads} threads: {number - 1} calls failed in turn, {reported} of them reported as "
                  "RUNG_OUT_OF_MEMORY"
                  + (f", {by_openmp} the OpenMP runtime's, which ended the process" if by_openmp else ""))
            if by_openmp > KNOWN_IN_OPENMP:
                bad.append(f"{kind}: {by_openmp} calls ended in the OpenMP runtime; {KNOWN_IN_OPENMP} were known")
            if reported == 0:
                bad.append(f"{kind}: no call reported it, so that nothing was tested")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
