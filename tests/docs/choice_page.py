# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/choice.md: a survey of few problems, its fit, and the explanation of a choice.
usage: choice_page.py SOURCE RUNG"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

source, rung = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
page = (source / "docs" / "choice.md").read_text(encoding="utf-8")
survey = re.search(r"```sh\n(.*?)```", page, re.DOTALL).group(1).strip()
choice = re.search(r"`(rung explain .*?)`", page).group(1)
kernel = re.search(r"`(rung rates softmax --from \S+ --kernel (\S+))`", page)
judge = re.search(r"`(rung rates softmax --from \S+ --judge.*?)`", page).group(1)


def run(command, **variables):
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False,
                          env={**environment, **variables})
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": f"{rung.parent}:{os.environ['PATH']}"}
    (folder / "results/MACHINE/rates").mkdir(parents=True)
    # Fewer and smaller problems than on the page, whose commands take a minute.
    assert survey.count("--count 240") == 1
    small = survey.replace("--count 240", "--count 12") + " --backend cpu --max-bytes 64K"
    printed = run(small)
    assert "chosen by these rates" in printed, printed
    rates = json.loads((folder / "results/MACHINE/rates/softmax.json").read_text(encoding="utf-8"))
    assert rates["operator"] == "softmax" and rates["machine"]["kind"] == "cpu"
    # On a busy machine problems may be undecided.
    assert 6 <= rates["fit"]["problems"] <= 12, rates["fit"]
    for paths in rates["kernels"].values():
        assert "" in paths, "rates of the paths that are not listed"
        assert all(rate >= 0 for one in paths.values() for rate in one.values())
    run(small.replace("softmax.json --fit", "other.json --seed 2 --fit"))
    assert "on others" in run(judge)
    worst = run(kernel.group(1)).splitlines()
    assert worst[0].split() == ["problem", "path", "predicted", "measured"] and len(worst) > 5, worst
    unknown = subprocess.run([rung, *kernel.group(1).replace(kernel.group(2), "nothing").split()[1:]], cwd=folder,
                             capture_output=True, text=True, check=False, env=environment)
    assert unknown.returncode != 0 and kernel.group(2) in unknown.stderr, unknown
    alone = subprocess.run([rung, "rates", "softmax", "--kernel", kernel.group(2)], capture_output=True, text=True,
                           check=False, env=environment)
    assert alone.returncode != 0 and "--from" in alone.stderr, alone
    assert "chosen" in run(choice)
    assert "softmax" in run("rung rates --backend cpu")

    # Another machine's rates, and an unknown name.
    machines = sorted(path.parent.parent.name for path in source.glob("results/*/rates/softmax.json"))
    cpus = [name for name in machines if name.endswith("cores")]
    for name in cpus:
        assert f"the rates of {name}" in run("rung rates --backend cpu", RUNG_RATES=name)
    wrong = subprocess.run([rung, "rates"], capture_output=True, text=True, check=False,
                           env={**environment, "RUNG_RATES": "pdp11"})
    assert wrong.returncode != 0 and "pdp11" in wrong.stderr, wrong
print("docs/choice.md: as it says")
