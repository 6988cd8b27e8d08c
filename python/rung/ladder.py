# SPDX-License-Identifier: Apache-2.0
"""Ladders in Python: `rung.ladder("gemm")` lists, checks, times and explains an operator's rungs.

Each method runs a command of the program `rung`; docs/json.md has every key of the rows.
"""
import os
import pathlib
import sys
import types
from dataclasses import dataclass, field

from rung import _program
from rung._results import BenchResult, CheckResult, ExplainResult, SurveyResult
from rung.notebook import html_table, text_table

_HEADINGS = ("step", "rung", "backend", "after", "idea")


@dataclass(frozen=True)
class Rung:
    """One implementation of an operator: one source file, or a vendor's library."""

    operator: str
    name: str
    step: int  # number in the ladder; 0 if the rung is no step
    backend: str  # "cpu", "cuda", "simt" or "opencl"
    file: str  # relative to the root of the source tree
    after: str  # the rung that it improves; "" for the first
    idea: str
    header: dict = field(repr=False)  # Idea, Changes, Cost ... from the file's header
    is_peer: bool = False  # a vendor's library
    is_teaching: bool = False  # for reading only: no call selects it
    is_available: bool = True
    why_not: str = ""  # the reason if it cannot run here
    about: str = ""  # version of a peer
    kind: str = "step"  # "step" or "peer"; for rungs beside the ladder "shape" (a family of shapes) or "type"

    @property
    def source(self):
        """The text of the rung's file."""
        prefix = pathlib.Path(os.path.realpath(_program.program())).parent.parent
        for path in (prefix / "include" / self.file, prefix.parent.parent / self.file):
            if path.is_file():
                return path.read_text(encoding="utf-8")
        raise _program.error(f"{self.operator}/{self.name}: its source {self.file} is not installed beside the program")

    def __str__(self):
        return self.name


def _rung(row):
    header = row.get("header", {})
    return Rung(operator=row["op"], name=row["rung"], step=row["step"], backend=row["backend"], file=row["file"],
                after=row["after"], idea=header.get("Idea", ""), header=header, is_peer=row["peer"],
                is_teaching=row["teaching"], is_available=row["available"], why_not=row["why_not"],
                about=row["about"], kind=row.get("kind", "peer" if row["peer"] else "step"))


def _option(name, value):
    return [] if value is None else [name, str(value)]


def _names(rungs):
    """Return the names of rungs, given as names or Rung objects, single or in a list."""
    if isinstance(rungs, (str, Rung)):
        rungs = [rungs]
    return [str(rung) for rung in rungs]


class Ladder:
    """The rungs of an operator, from the textbook loop to the fastest.

    A sequence of Rung in the ladder's order. The vendors' libraries are not part of it but in `peers`. A rung is also
    found by its name: `ladder["shared_tile"]`. If the library has CUDA, a CUDA rung appears for "cuda" and for "simt",
    the simulated GPU.

    >>> import rung
    >>> ladder = rung.ladder("reduce")
    >>> ladder.operator, len(ladder) > 5
    ('reduce', True)
    """

    def __init__(self, operator, backend=None):
        if not operator or "/" in operator:
            raise _program.error(f"operator: '{operator}' given; accepted: an operator alone, as in "
                                 f"rung.ladder('{operator.split('/')[0] or 'gemm'}')")
        rows = _program.run("list", operator, *_option("--backend", backend), progress=False)
        self.operator = operator
        self.backend = backend
        self.summary = rows[0].get("summary", "") if rows else ""
        rungs = [_rung(row) for row in rows]
        self.rungs = tuple(one for one in rungs if not one.is_peer)
        self.peers = tuple(one for one in rungs if one.is_peer)

    def on(self, backend):
        """Return the ladder's rungs on "cpu", "cuda", "simt" or "opencl"."""
        return Ladder(self.operator, backend)

    def __len__(self):
        return len(self.rungs)

    def __iter__(self):
        return iter(self.rungs)

    def __contains__(self, name):
        return any(name in (rung, rung.name) for rung in self.rungs)

    def __getitem__(self, key):
        if not isinstance(key, str):
            return self.rungs[key]
        for rung in self.rungs + self.peers:
            if rung.name == key:
                return rung
        raise KeyError(f"no rung '{key}' of {self.operator}; accepted: {', '.join(rung.name for rung in self.rungs)}")

    def _rows(self):
        return [[str(rung.step) if rung.kind == "step" else rung.kind, rung.name, rung.backend, rung.after, rung.idea]
                for rung in self.rungs]

    def __repr__(self):
        rows = [[*row[:4], row[4] if len(row[4]) <= 80 else row[4][:79] + "…"] for row in self._rows()]
        return f"{self.operator}: {self.summary}\n{text_table(('>step', *_HEADINGS[1:]), rows)}"

    def _repr_html_(self):
        faint = {at for at, rung in enumerate(self.rungs) if not rung.is_available}
        return html_table((">step", *_HEADINGS[1:]), self._rows(),
                          f"{self.operator}: {self.summary}", faint)

    # --- commands ---------------------------------------------------------------------------------------------------

    def check(self, problem=None, *, rung=None, backend=None, threads=None, brief=None, progress=None):
        """Compare every rung, or one, with the operator's reference; return a CheckResult.

        Without a problem, checks many small ones, each in one layout and with one kind of values only (`brief`; False:
        in all). On the simulated GPU, also detects data races and invalid accesses.
        """
        target = self.operator if rung is None else f"{self.operator}/{rung}"
        brief = problem is None if brief is None else brief
        return CheckResult(_program.run(
            "check", target, *_option("--problem", problem), *_option("--backend", backend or self.backend),
            *_option("--threads", threads), *(["--brief"] if brief else []), progress=progress))

    def bench(self, problem=None, rungs=None, *, backend=None, threads=None, rounds=None, progress=None):
        """Time the rungs, the public call ("best") and the vendors' libraries; return a BenchResult.

        `problem` is a text such as "f32 1024x1024x1024", or a list; `rungs` are names or Rung objects; `rounds` is the
        number of timings per version.
        """
        problems = [problem] if isinstance(problem, str) else list(problem or [])
        arguments = ["bench", self.operator, *problems, *_option("--backend", backend or self.backend)]
        if rungs is not None:
            arguments += ["--rungs", ",".join(_names(rungs))]
        return BenchResult(_program.run(*arguments, *_option("--threads", threads), *_option("--pairs", rounds),
                                        progress=progress))

    def explain(self, problem=None, *, rung=None, backend=None, at=None, gpu=None, progress=None):
        """Run the rungs, or one, on the simulated GPU and count what they do; return an ExplainResult.

        `at` is a larger problem to which counts are extrapolated, `gpu` the GPU whose roofline bounds the time
        ("h200").
        """
        target = self.operator if rung is None else f"{self.operator}/{rung}"
        return ExplainResult(_program.run(
            "explain", target, *([] if problem is None else [problem]), *_option("--backend", backend or self.backend),
            *_option("--at", at), *_option("--gpu", gpu), progress=progress))

    def survey(self, pattern=None, *, count=None, seed=None, backend=None, threads=None, seconds=None, max_bytes=None,
               progress=None):
        """Time the public call on random problems, beside the libraries and every other rung; return a SurveyResult.

        `pattern` has ranges and alternatives, such as "(f32|bf16) 1..4096x1..64"; `seconds` limits the time.
        """
        patterns = [pattern] if isinstance(pattern, str) else list(pattern or [])
        return SurveyResult(_program.run(
            "survey", self.operator, *patterns, *_option("--backend", backend or self.backend),
            *_option("--count", count), *_option("--seed", seed), *_option("--threads", threads),
            *_option("--seconds", seconds), *_option("--max-bytes", max_bytes), progress=progress, file=True))


class _Module(types.ModuleType):
    """This module as a callable: the package's name rung.ladder is both module and function."""

    def __call__(self, operator):
        """Return the Ladder of an operator, as in rung.ladder("gemm")."""
        return Ladder(operator)


sys.modules[__name__].__class__ = _Module
