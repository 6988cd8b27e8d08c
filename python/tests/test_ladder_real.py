# SPDX-License-Identifier: Apache-2.0
"""Ladders with the real program: its output has the keys that results use."""
import os
import signal
import subprocess
import sys
import time

import pytest

import rung
import rung.ladder

OPERATOR = "reduce"


@pytest.fixture(scope="module")
def reduce(program):
    try:
        return rung.ladder(OPERATOR)
    except ValueError as failed:
        pytest.skip(str(failed))


@pytest.fixture(scope="module")
def simulated(reduce):
    on_simt = reduce.on("simt")
    if not len(on_simt):
        pytest.skip("built without the simulated GPU")
    return on_simt


def test_every_rung_tells_its_idea_and_has_its_source(reduce):
    assert "sum" in reduce.summary
    for one in reduce:
        assert one.idea and one.header["Cost"], one
        assert "Idea" in one.source, one
    steps = [one.step for one in reduce.on("cpu") if one.kind == "step"]
    assert steps == sorted(steps) and len(steps) > 3
    assert [(one.name, one.kind) for one in reduce.on("cpu")][len(steps):] == [
        ("columns", "shape"), ("short_rows", "shape")]


def test_check_passes_and_counts_cases(reduce):
    first = reduce.on("cpu")[0]
    checked = reduce.on("cpu").check("f32 100", rung=first, threads=1, progress=False)
    assert checked and checked["naive"]["passed"] > 0 and checked.data["complete"]


def test_bench_times_rungs_and_reports_progress(reduce):
    seen = []
    times = reduce.on("cpu").bench("f32 1000", ["naive", "best"], threads=1, rounds=1,
                                   progress=lambda share, doing: seen.append((share, doing)))
    assert [row["rung"] for row in times] == ["naive", "best"]
    assert all(row["seconds"] > 0 for row in times) and times["best"]["chosen"] in reduce
    assert times.fastest["f32 1000"]["rung"] == "naive" and "naive" in repr(times)
    assert seen and all(0 <= share <= 1 for share, _ in seen)


def test_explain_counts_what_a_rung_does(simulated):
    counts = simulated.explain("f32 4096", rung="interleaved_modulo", progress=False)
    row = counts["interleaved_modulo"]
    assert row["counters"]["divergent_warps"] > 0 and row["bound"]["seconds"] > 0
    assert counts.problem == "f32 4096" and counts.chip["name"]
    pytest.importorskip("altair")
    dots = counts.roofline().to_dict()["layer"][1]["data"]["values"]
    assert [one["rung"] for one in dots] == ["interleaved_modulo"]


def test_explain_of_the_ladder_has_a_row_per_rung(simulated):
    counts = simulated.explain("f32 2048", progress=False)
    assert len(counts) > 5 and all(row["backend"] == "simt" for row in counts)
    assert len(repr(counts).splitlines()) == len(counts) + 2


def test_survey_has_a_row_per_problem(reduce):
    survey = reduce.on("cpu").survey("f32 10..1000", count=2, seed=3, threads=1, progress=False)
    assert len(survey) == 2 and survey.data["survey"]["op"] == OPERATOR
    assert all(row["problem"] in repr(survey) for row in survey)


@pytest.mark.parametrize("call", [lambda ladder: ladder.bench("f32 8q", progress=False),
                                  lambda ladder: ladder.bench("f32 8", "nonesuch", progress=False),
                                  lambda ladder: ladder.explain("f32 8", rung="nonesuch", progress=False),
                                  lambda ladder: rung.ladder("nonesuch")])
def test_mistakes_are_errors_with_the_programs_words(reduce, call):
    with pytest.raises(ValueError, match="8q|nonesuch") as refused:
        call(reduce)
    assert "\n" not in str(refused.value) and not str(refused.value).startswith("rung:")


def test_ctrl_c_ends_a_long_bench(program, tmp_path):
    """No child process survives, and no temporary file remains."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    code = ("import rung, rung.ladder, sys\n"
            "def progress(share, doing):\n    print('begun', flush=True)\n"
            f"rung.ladder({OPERATOR!r}).on('cpu').bench('f32 100000000', 'naive', threads=1, rounds=1000, "
            "progress=progress)\n")
    python = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TMPDIR": str(folder)})
    assert python.stdout.readline() == "begun\n"
    with open(f"/proc/{python.pid}/task/{python.pid}/children", encoding="utf-8") as file:
        children = file.read().split()
    assert children
    began = time.monotonic()
    python.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in python.communicate(timeout=30)[1]
    assert time.monotonic() - began < 20
    for child in children:
        assert not os.path.exists(f"/proc/{child}")
    assert list(folder.iterdir()) == []
