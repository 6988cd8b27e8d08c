# SPDX-License-Identifier: Apache-2.0
"""Ladders and their results, with a fake program that answers with documented keys; test_ladder_real.py runs the real
one."""
import inspect
import json
import pickle
import sys

import pytest

import rung
import rung.ladder

LIST = [
    {"op": "gemm", "summary": "C = A <B>", "rung": "naive_ijk", "step": 10, "backend": "cpu", "peer": False,
     "available": True, "why_not": "", "file": "rung/ops/gemm/cpu/010_naive_ijk.cpp", "after": "", "teaching": True,
     "about": "", "header": {"Idea": "three loops & no more", "Cost": "2 mnk"}},
    {"op": "gemm", "summary": "C = A <B>", "rung": "threads", "step": 90, "backend": "cpu", "peer": False,
     "available": True, "why_not": "", "file": "rung/ops/gemm/cpu/090_threads.cpp", "after": "naive_ijk",
     "teaching": False, "about": "", "header": {"Idea": "all cores"}},
    {"op": "gemm", "summary": "C = A <B>", "rung": "shared_tile", "step": 30, "backend": "simt", "peer": False,
     "available": False, "why_not": "no simulator", "file": "rung/ops/gemm/cuda/030_shared_tile.cu", "after": "",
     "teaching": False, "about": "", "header": {}},
    {"op": "gemm", "summary": "C = A <B>", "rung": "openblas", "step": 0, "backend": "cpu", "peer": True,
     "available": True, "why_not": "", "file": "", "after": "", "teaching": False, "about": "OpenBLAS 0.3",
     "header": {}},
]


def bench_row(name, seconds, peer=False, **more):
    return {"op": "gemm", "rung": name, "backend": "cpu", "peer": peer, "problem": "f32 8x8x8", "device": "",
            "seconds": seconds, "spread": 0.01, "rate": None if seconds is None else 1e-6 / seconds,
            "unit": "GFLOP/s", "of_ceiling": 0.5, "vs_peer": 1.25, "step": 10, "threads": 2, "threads_used": 1,
            "rounds": 15, "chosen": "", "note": "", "failed": False, **more}


BENCH = {"machine": {"cpu": "a <CPU>"}, "complete": True, "not_timed": [], "rows": [
    bench_row("naive_ijk", 4e-6), bench_row("threads", 1e-6), bench_row("slow", None, note="too slow"),
    bench_row("openblas", 5e-7, peer=True, threads_used=None), bench_row("best", 9e-7, chosen="threads")]}

CHECK = {"complete": True, "devices": {}, "cases": 1200, "passed": 1100, "failed": 0, "skipped": 100, "mistrusted": 0,
         "mistrusted_problems": [], "failures": [], "backends_missing": [], "rungs": [
             {"op": "gemm", "rung": "naive_ijk", "backend": "cpu", "passed": 1100, "failed": 0, "skipped": 100,
              "mistrusted": 0, "seconds": 1.5, "reasons": {"f64": 100}}]}


def explain_row(name, step, **more):
    return {"rung": name, "step": step, "backend": "simt", "file": f"{name}.cu", "problem": "f32 8x8x8", "before": None,
            "header": {}, "compulsory": {"bytes": 768, "operations": 1024}, "declared": {"bytes": 1e3,
                                                                                         "operations": 1024},
            "counted": True, "why_not": "", "counters": {"global_load_sectors": 4096,
                                                         "global_load_sectors_per_request": 16.5, "barriers": 12,
                                                         "shared_load_conflicts": 8, "shared_store_conflicts": 1,
                                                         "active_lanes": 31.25},
            "chip": CHIP, "roofline": [{"bytes_are": "compulsory", "bytes": 768, "operations": 1024},
                                       {"bytes_are": "counted", "bytes": 512, "operations": 1024}],
            "bound": {"problem": "f32 8x8x8", "extrapolated": False, "seconds": 2e-6, "bound_by": "latency",
                      "waves": None, "roofs": {"memory": 1e-7}, "kernels": []},
            "times_the_rung_before": None, "kernels": [], **more}


CHIP = {"name": "h200", "bytes_per_second": 4.8e12, "operations_per_second": 6.7e13, "of": "f32",
        "wavefronts_per_second": 1e11}
EXPLAIN = {"op": "gemm", "problem": "f32 8x8x8", "chip": CHIP, "rungs": [
    explain_row("naive", 10), explain_row("threads", 20, times_the_rung_before=1.5),
    explain_row("cpu_only", 30, counted=False, why_not="not simulated", counters={}, bound=None, roofline=[])]}

WHAT = {"op": "gemm", "backend": "cpu", "threads": 2, "where": "a CPU", "date": "2026-11-28", "max_bytes": 1,
        "patterns": []}
SURVEY = {"machine": {}, "survey": WHAT, "rows": [
    {"seed": 1, "index": at, "problem": f"f32 {at}x1x1", "seconds": 1e-6, "floor": 5e-7, "of_floor": 0.5,
     "chosen": "threads", "fastest": "threads", "of_fastest": 1.0, "teaching": "", "of_teaching": None, "peer": "",
     "vs_peer": None, "fault": fault, "note": "", "failed": False, "unsupported": False, "spread": 0.1,
     "times": {"threads": 1e-6}} for at, fault in enumerate(("", "wrong choice"))]}

PROGRAM = f"""#!{sys.executable}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
words = sys.argv[1:]
with open(here / "calls", "a") as calls:
    calls.write(json.dumps(words) + "\\n")
answer = (here / words[0]).read_text()
if words[-1] == "--json":
    print(answer)
else:
    pathlib.Path(words[-1]).write_text(answer)
"""


class Fake:
    """The fake program's folder: its answers, and the command lines that it received."""

    def __init__(self, folder):
        self.folder = folder
        program = folder / "bin" / "rung"
        program.parent.mkdir()
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.path = str(program)
        for name, answer in (("list", LIST), ("bench", BENCH), ("check", CHECK), ("explain", EXPLAIN),
                             ("survey", SURVEY)):
            self.answer(name, answer)

    def answer(self, name, answer):
        (self.folder / "bin" / name).write_text(json.dumps(answer))

    def last_call(self):
        return json.loads((self.folder / "bin" / "calls").read_text().splitlines()[-1])


@pytest.fixture
def fake(tmp_path, monkeypatch):
    made = Fake(tmp_path)
    monkeypatch.setenv("RUNG_PROGRAM", made.path)
    return made


@pytest.fixture
def gemm(fake):
    return rung.ladder("gemm")


# --- the ladder


def test_ladder_is_a_sequence_of_rungs(gemm):
    assert (gemm.operator, gemm.summary, len(gemm)) == ("gemm", "C = A <B>", 3)
    assert [one.name for one in gemm] == ["naive_ijk", "threads", "shared_tile"]
    assert [one.name for one in gemm.peers] == ["openblas"]
    first = gemm["naive_ijk"]
    assert (first.step, first.backend, first.idea, first.is_teaching) == (10, "cpu", "three loops & no more", True)
    assert gemm[-1].why_not == "no simulator"
    assert gemm["openblas"].about == "OpenBLAS 0.3"
    assert "threads" in gemm and first in gemm and "openblas" not in gemm
    with pytest.raises(KeyError, match="no rung 'thread' of gemm; accepted: naive_ijk, threads, shared_tile"):
        gemm["thread"]


def test_a_rung_beside_the_ladder_shows_its_kind_for_a_step(fake):
    beside = {**LIST[1], "rung": "few_rows", "step": 0, "kind": "shape", "after": "threads",
              "file": "rung/ops/gemm/cpu/shapes/few_rows.cpp"}
    fake.answer("list", [{**row, "kind": "peer" if row["peer"] else "step"} for row in LIST] + [beside])
    ladder = rung.ladder("gemm")
    assert (ladder["few_rows"].kind, ladder["few_rows"].step, ladder["threads"].kind) == ("shape", 0, "step")
    assert "shape  few_rows" in repr(ladder)
    fake.answer("bench", {**BENCH, "rows": [bench_row("few_rows", 2e-6, step=0, kind="shape")]})
    assert "shape  few_rows" in repr(ladder.bench("f32 8x8x8", progress=False))


def test_ladder_of_one_backend_stays_on_it(fake, gemm):
    on_cpu = gemm.on("cpu")
    assert fake.last_call() == ["list", "gemm", "--backend", "cpu", "--json"]
    on_cpu.bench("f32 8x8x8", progress=False)
    assert fake.last_call() == ["bench", "gemm", "f32 8x8x8", "--backend", "cpu", "--json"]


def test_ladder_of_a_program_without_the_new_keys_works(fake):
    new = ("summary", "header")
    fake.answer("list", [{key: value for key, value in row.items() if key not in new} for row in LIST])
    old = rung.ladder("gemm")
    assert (old.summary, old[0].idea, len(old)) == ("", "", 3)


@pytest.mark.parametrize("name", ["", "gemm/threads"])
def test_ladder_wants_an_operator(fake, name):
    with pytest.raises(ValueError, match="accepted: an operator alone"):
        rung.ladder(name)


def test_source_is_read_beside_the_program(fake, gemm):
    file = fake.folder / "include" / gemm[0].file
    file.parent.mkdir(parents=True)
    file.write_text("// three loops\n")
    assert gemm[0].source == "// three loops\n"
    with pytest.raises(ValueError, match="090_threads.cpp is not installed beside the program"):
        print(gemm[1].source)


def test_tables_hold_every_rung_and_escape_text(gemm):
    text, table = repr(gemm), gemm._repr_html_()
    for name in ("naive_ijk", "threads", "shared_tile"):
        assert name in text and name in table
    assert "openblas" not in text
    assert "C = A &lt;B&gt;" in table and "three loops &amp; no more" in table and "<B>" not in table


def test_module_is_called_and_has_a_signature():
    assert list(inspect.signature(rung.ladder).parameters) == ["operator"]
    assert "Ladder" in inspect.getdoc(type(rung.ladder).__call__)


def test_rungs_are_values(gemm, fake):
    assert pickle.loads(pickle.dumps(gemm[0])) == gemm[0] == rung.ladder("gemm")[0]


# --- command lines


def test_options_become_words(fake, gemm):
    gemm.bench(["f32 8x8x8", "f64 8x8x8"], [gemm[0], "best"], threads=1, rounds=3, progress=False)
    assert fake.last_call() == ["bench", "gemm", "f32 8x8x8", "f64 8x8x8", "--rungs", "naive_ijk,best", "--threads",
                                "1", "--pairs", "3", "--json"]
    gemm.bench(rungs="best", progress=False)
    assert fake.last_call() == ["bench", "gemm", "--rungs", "best", "--json"]
    gemm.check(progress=False)
    assert fake.last_call() == ["check", "gemm", "--brief", "--json"]
    gemm.check("f32 8x8x8", rung=gemm[0], threads=3, progress=False)
    assert fake.last_call() == ["check", "gemm/naive_ijk", "--problem", "f32 8x8x8", "--threads", "3", "--json"]
    gemm.explain("f32 8x8x8", rung="naive", at="f32 99x99x99", gpu="a40", progress=False)
    assert fake.last_call() == ["explain", "gemm/naive", "f32 8x8x8", "--at", "f32 99x99x99", "--gpu", "a40",
                                "--json"]
    gemm.survey("f32 1..8x1x1", count=2, seed=7, seconds=1, max_bytes="1M", progress=False)
    words = fake.last_call()
    assert words[:-1] == ["survey", "gemm", "f32 1..8x1x1", "--count", "2", "--seed", "7", "--seconds", "1",
                          "--max-bytes", "1M", "--json"]


# --- results


def test_bench_has_rows_a_table_and_the_fastest(gemm):
    times = gemm.bench("f32 8x8x8", progress=False)
    assert len(times) == 5 and times["best"]["chosen"] == "threads" and times[0] == BENCH["rows"][0]
    assert times.problems == ["f32 8x8x8"]
    assert {problem: row["rung"] for problem, row in times.fastest.items()} == {"f32 8x8x8": "threads"}
    text = repr(times)
    assert text.splitlines()[0] == "f32 8x8x8, a <CPU>"
    for words in ("1.00 us", "500 ns", "openblas (peer)", "too slow", "50.0 %", "1.25"):
        assert words in text
    assert "a &lt;CPU&gt;" in times._repr_html_()
    with pytest.raises(KeyError, match="no row of 'bets'; accepted: naive_ijk, threads, slow, openblas, best"):
        times["bets"]


def test_bench_of_several_problems_names_them(fake, gemm):
    fake.answer("bench", {**BENCH, "rows": BENCH["rows"] + [bench_row("threads", 1e-3, problem="f32 9x9x9")]})
    times = gemm.bench(progress=False)
    assert "problem" in repr(times).splitlines()[1] and "f32 9x9x9" in repr(times)
    assert set(times.fastest) == {"f32 8x8x8", "f32 9x9x9"}


def test_wrong_result_is_shown_in_bench(fake, gemm):
    fake.answer("bench", {**BENCH, "rows": [bench_row("threads", None, failed=True, note="y[0] is 1")]})
    assert "WRONG RESULT: y[0] is 1" in repr(gemm.bench(progress=False))


def test_check_is_true_if_nothing_failed(fake, gemm):
    good = gemm.check(progress=False)
    assert good and good.is_good and "1,100 passed, 0 failed, 100 skipped" in repr(good)
    failure = {"op": "gemm", "rung": "threads", "backend": "cpu", "problem": "f32 1x1x1", "variant": "plain",
               "message": "y[0] is 2", "seed": 1, "threads": 1, "device": 0, "command": "rung check gemm/threads"}
    fake.answer("check", {**CHECK, "failed": 1, "failures": [failure]})
    bad = gemm.check(progress=False)
    assert not bad and bad.failures[0]["command"] == "rung check gemm/threads"
    assert "gemm/threads on f32 1x1x1, plain: y[0] is 2" in repr(bad)
    fake.answer("check", {**CHECK, "complete": False})
    assert not gemm.check(progress=False)


def test_explain_has_counts_and_bounds(gemm):
    counts = gemm.explain(progress=False)
    naive = repr(counts).splitlines()[2].split()
    assert naive == ["10", "naive", "4,096", "16.5", "9", "12", "31.2", "2.00", "us", "latency"]
    assert "not simulated" in repr(counts)
    assert "under the roofs of h200" in counts._repr_html_()


def test_survey_has_faults(gemm):
    survey = gemm.survey(progress=False)
    assert [row["problem"] for row in survey.faults] == ["f32 1x1x1"]
    assert "gemm, 2 problems, a CPU" in repr(survey)


def test_frames_have_a_column_per_key(gemm):
    pandas = pytest.importorskip("pandas")
    frame = gemm.bench(progress=False).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame["rung"]) == [row["rung"] for row in BENCH["rows"]]
    assert gemm.explain(progress=False).to_pandas()["counters.barriers"][0] == 12


# --- plots


def test_bars_are_in_the_ladders_order(gemm):
    pytest.importorskip("altair")
    chart = gemm.bench(progress=False).plot().to_dict()
    assert [one["rung"] for one in chart["data"]["values"]] == ["naive_ijk", "threads", "openblas", "best"]
    assert [one["kind"] for one in chart["data"]["values"]] == ["rung", "rung", "library", "public call"]
    assert chart["encoding"]["y"]["sort"] == ["naive_ijk", "threads", "openblas", "best"]
    assert chart["encoding"]["x"]["title"] == "GFLOP/s"


def test_bars_of_several_problems_have_panels(fake, gemm):
    pytest.importorskip("altair")
    fake.answer("bench", {**BENCH, "rows": BENCH["rows"] + [bench_row("threads", 1e-3, problem="f32 9x9x9")]})
    assert gemm.bench(progress=False).plot().to_dict()["facet"]["row"]["field"] == "problem"


def test_roofline_has_roofs_and_points(gemm):
    pytest.importorskip("altair")
    counts = gemm.explain(progress=False)
    roof, dots = (layer["data"]["values"] for layer in counts.roofline().to_dict()["layer"])
    assert roof[1] == {"operations per byte": pytest.approx(6.7e13 / 4.8e12), "operations per second": 6.7e13}
    assert roof[0]["operations per second"] == pytest.approx(roof[0]["operations per byte"] * 4.8e12)
    assert dots[0] == {"rung": "naive", "operations per byte": 2, "operations per second": 1024 / 2e-6}
    measured = counts.roofline(gemm.bench(progress=False)).to_dict()["layer"][1]["data"]["values"]
    assert measured == [{"rung": "threads", "operations per byte": 2, "operations per second": 1024 / 1e-6}]


def test_roofline_without_rates_or_times_is_refused(fake, gemm):
    pytest.importorskip("altair")
    fake.answer("explain", {**EXPLAIN, "chip": {**CHIP, "bytes_per_second": None}})
    with pytest.raises(ValueError, match="the rates of h200 are not known"):
        gemm.explain(progress=False).roofline()
    bound = {**EXPLAIN["rungs"][0]["bound"], "extrapolated": True}
    fake.answer("explain", {**EXPLAIN, "rungs": [explain_row("naive", 10, bound=bound)]})
    with pytest.raises(ValueError, match="no rung has both bytes and a time"):
        gemm.explain(progress=False).roofline()


def test_plots_render_without_a_browser(gemm):
    convert = pytest.importorskip("vl_convert")
    pytest.importorskip("altair")
    for chart in (gemm.bench(progress=False).plot(), gemm.explain(progress=False).roofline()):
        assert convert.vegalite_to_svg(chart.to_json()).startswith("<svg")


@pytest.mark.parametrize(("module", "call"), [("altair", lambda result: result.plot()),
                                              ("pandas", lambda result: result.to_pandas())])
def test_missing_extra_is_named(gemm, monkeypatch, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"need.* {module}, which is not installed: pip install"):
        call(gemm.bench(progress=False))
