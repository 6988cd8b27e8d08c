# SPDX-License-Identifier: Apache-2.0
"""The rungs in docs/add-a-rung.md compile, as rungs of gemm do. (listings.py checks their style.)

usage: add_a_rung.py SOURCE BUILD

BUILD is configured with the simulated GPU: each listing replaces an existing rung in that rung's compile command."""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

from listings import files_of

# The rung whose compile command a listing uses, by a text that identifies its backend.
STANDINS = {"cpu": "rung/ops/gemm/cpu/020_loop_order_ikj.cpp", "cuda": "rung/ops/gemm/cuda/020_naive_coalesced.cu"}


def command_for(build, standin):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if entry["file"].endswith(standin) and not any("nvcc" in word for word in words):
            return entry, words
    sys.exit(f"{build} does not compile {standin} with the host's compiler")


def main():
    source, build = map(pathlib.Path, sys.argv[1:])
    listings = files_of((source / "docs/add-a-rung.md").read_text())
    kinds = [path.split("/")[3] for path in listings]
    if sorted(kinds) != ["cpu", "cuda"]:
        sys.exit(f"docs/add-a-rung.md shows whole rungs of {kinds}; one of each backend is expected")
    failed = 0
    for kind, text in zip(kinds, listings.values()):
        entry, words = command_for(build, STANDINS[kind])
        with tempfile.TemporaryDirectory() as folder:
            listing = pathlib.Path(folder, "listing" + pathlib.Path(entry["file"]).suffix)
            listing.write_text(text)
            at = next(i for i, word in enumerate(words) if word.endswith(STANDINS[kind]))
            words[at] = str(listing)
            words[words.index("-o") + 1] = str(pathlib.Path(folder, "listing.o"))
            done = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True, check=False)
        print(f"{kind}: {'compiles' if done.returncode == 0 else 'does not compile'}\n{done.stderr}")
        failed += done.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
