# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/tuning.md, on one thread. usage: tuning_page.py SOURCE RUNG"""
import array
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

source, rung = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
page = (source / "docs" / "tuning.md").read_text(encoding="utf-8")
commands = re.search(r"## Ahead of time\n\n```sh\n(.*?)```", page, re.DOTALL).group(1).splitlines()
assert len(commands) == 4, commands


def write_npy(path, rows, columns, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() +
                     array.array("f", values).tobytes())


def read_npy(path):
    data = path.read_bytes()
    values = array.array("f")
    values.frombytes(data[10 + int.from_bytes(data[8:10], "little"):])
    return values


def run(command, **variables):
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False,
                          env={**environment, **variables})
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    write_npy(folder / "x.npy", 32, 500, [math.sin(i) for i in range(32 * 500)])
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1",
                   "PATH": f"{rung.parent}:{os.environ['PATH']}"}
    environment.pop("RUNG_TUNE_FILE", None)

    tuned = run(commands[0])
    assert "f32 64x1000" in tuned, tuned
    run(commands[1])
    log = (folder / "calls.log").read_text(encoding="utf-8").splitlines()
    assert log == ["rung: call cpu softmax f32 32x500"], log
    assert "f32 32x500" in run(commands[2])
    lines = [json.loads(line) for line in (folder / "cache/rung/tuning.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["problem"] for line in lines] == ["f32 64x1000", "f32 32x500"], lines

    # Stored results are not measured again without --again.
    assert "known before" in run(commands[0])
    assert "known before" not in run(commands[0] + " --again")

    lines = [json.loads(line) for line in (folder / "cache/rung/tuning.jsonl").read_text(encoding="utf-8").splitlines()]
    last = lines[-1]
    assert len(lines) == 3 and last["problem"] == "f32 64x1000", lines
    kernel = last["kernel"]
    shown = run(commands[3])
    assert re.search(rf"^ *{kernel} .*chosen", shown, re.MULTILINE), shown
    assert re.search(r"naive .*teaching", shown), shown

    # A context that tunes uses the file's choice, even if it is not the fastest.
    assert len(last["seconds"]) > 1, last
    other = next(name for name in last["seconds"] if name != kernel)
    (folder / "other.jsonl").write_text(json.dumps(dict(last, kernel=other)) + "\n", encoding="utf-8")
    shown = run(commands[3], RUNG_TUNE_FILE=str(folder / "other.jsonl"))
    assert re.search(rf"^ *{other} .*chosen where a context tunes", shown, re.MULTILINE), shown
    forced = dict(lines[1], kernel=min(name for name in lines[1]["seconds"]))
    (folder / "forced.jsonl").write_text(json.dumps(forced) + "\n", encoding="utf-8")
    run("rung run softmax x.npy -o y.npy", RUNG_TUNE="remembered", RUNG_TUNE_FILE=str(folder / "forced.jsonl"))
    x, y = read_npy(folder / "x.npy"), read_npy(folder / "y.npy")
    for row in range(0, 32 * 500, 500):
        powers = [math.exp(value) for value in x[row:row + 500]]
        assert all(abs(p / sum(powers) - value) < 1e-6 for p, value in zip(powers, y[row:row + 500]))
print(f"{len(commands)} commands")
