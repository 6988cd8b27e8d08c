# SPDX-License-Identifier: Apache-2.0
"""Results of a ladder's methods: rows with the keys of docs/json.md, as table, pandas frame and plot."""
from rung.notebook import html_table, number, percent, si, text_table


def _pandas():
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas() needs pandas, which is not installed: pip install pandas") from None
    return pandas


class Result:
    """Rows of a command: a sequence of dicts. `data` is the command's whole output."""

    _columns = ()  # (heading, text of a row); a heading that begins with ">" is aligned to the right

    def __init__(self, data):
        self.data = data
        self.rows = data["rows"]

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __getitem__(self, key):
        """Return a row by its index, or the first row of a rung by its name."""
        if not isinstance(key, str):
            return self.rows[key]
        for row in self.rows:
            if row.get("rung") == key:
                return row
        names = dict.fromkeys(str(row["rung"]) for row in self.rows if "rung" in row)
        raise KeyError(f"no row of '{key}'; accepted: {', '.join(names) or 'numbers'}")

    def _shown_columns(self):
        return self._columns

    def _caption(self):
        return ""

    def _table(self):
        columns = self._shown_columns()
        return [heading for heading, _ in columns], [[text(row) for _, text in columns] for row in self.rows]

    def __repr__(self):
        caption = self._caption()
        return (caption + "\n" if caption else "") + text_table(*self._table())

    def _repr_html_(self):
        return html_table(*self._table(), self._caption())

    def to_pandas(self):
        """Return the rows as a pandas.DataFrame: one column per key; keys of nested objects are joined by dots."""
        return _pandas().json_normalize(self.rows)


def _step(row):
    """Return a rung's number in the ladder, "shape" or "type" for a rung beside the ladder, or ""."""
    return row["kind"] if row.get("kind") in ("shape", "type") else str(row["step"] or "")


class BenchResult(Result):
    """Times of every version on every problem: `rung bench`."""

    _columns = (
        (">step", _step),
        ("rung", lambda row: row["rung"] + (" (peer)" if row["peer"] else "")),
        (">time", lambda row: si(row["seconds"], "s")),
        (">rate", lambda row: "" if row["rate"] is None else f"{number(row['rate'])} {row['unit']}"),
        (">of ceiling", lambda row: percent(row["of_ceiling"])),
        (">vs peer", lambda row: "" if row["vs_peer"] is None else f"{row['vs_peer']:.2f}"),
        (">spread", lambda row: percent(row["spread"])),
        (">threads", lambda row: str(row["threads_used"] or row["threads"])),
        ("note", lambda row: row["chosen"] or ("WRONG RESULT: " if row["failed"] else "") + row["note"]),
    )

    @property
    def problems(self):
        """The problems, in the order of timing."""
        return list(dict.fromkeys(row["problem"] for row in self.rows))

    @property
    def fastest(self):
        """Returns the row of our fastest version, by problem."""
        timed = [row for row in self.rows if row["seconds"] is not None and not row["peer"] and row["rung"] != "best"]
        return {problem: min((row for row in timed if row["problem"] == problem), key=lambda row: row["seconds"])
                for problem in dict.fromkeys(row["problem"] for row in timed)}

    def _shown_columns(self):
        several = (("problem", lambda row: row["problem"]),) if len(self.problems) > 1 else ()
        return several + self._columns

    def _caption(self):
        where = next((row["device"] for row in self.rows if row["device"]), "") or self.data["machine"]["cpu"]
        return ", ".join([*self.problems[:1], where] if len(self.problems) == 1 else [where])

    def plot(self):
        """Return an altair.Chart: the rate of each rung, a panel per problem. Needs `pip install rung[plot]`."""
        from rung import _plots
        return _plots.ladder_bars(self.rows)


class CheckResult(Result):
    """Passed and failed cases of every rung: `rung check`. True if none failed."""

    _columns = (
        ("rung", lambda row: row["rung"]),
        ("backend", lambda row: row["backend"]),
        (">passed", lambda row: number(row["passed"])),
        (">failed", lambda row: number(row["failed"])),
        (">skipped", lambda row: number(row["skipped"])),
        (">time", lambda row: si(row["seconds"], "s")),
    )

    def __init__(self, data):
        super().__init__({**data, "rows": data["rungs"]})
        self.failures = data["failures"]  # each with the command that reproduces it

    @property
    def is_good(self):
        """Returns whether every case passed, or was skipped for a stated reason."""
        return self.data["failed"] == 0 and self.data["complete"]

    def __bool__(self):
        return self.is_good

    def _caption(self):
        lines = [f"{self.data['passed']:,} passed, {self.data['failed']:,} failed, {self.data['skipped']:,} skipped"]
        lines += [f"{one['op']}/{one['rung']} on {one['problem']}, {one['variant']}: {one['message']}"
                  for one in self.failures[:10]]
        return "\n".join(lines)


def _counter(key):
    return lambda row: number(row["counters"].get(key))


def _conflicts(row):
    found = [row["counters"].get(key) for key in ("shared_load_conflicts", "shared_store_conflicts")]
    return "" if found == [None, None] else number(sum(one or 0 for one in found))


class ExplainResult(Result):
    """Operations of each rung, counted on the simulated GPU, and the bound on its time: `rung explain`."""

    _columns = (
        (">step", _step),
        ("rung", lambda row: row["rung"]),
        (">loads: sectors", _counter("global_load_sectors")),
        (">per request", _counter("global_load_sectors_per_request")),
        (">bank conflicts", _conflicts),
        (">barriers", _counter("barriers")),
        (">lanes", _counter("active_lanes")),
        (">at best", lambda row: si(row["bound"]["seconds"], "s") if row["bound"] else ""),
        ("bound by", lambda row: row["bound"]["bound_by"] if row["bound"] else row["why_not"]),
        (">vs rung before", lambda row: number(row["times_the_rung_before"])),
    )

    def __init__(self, data):
        super().__init__({**data, "rows": data["rungs"]})
        self.problem = data["problem"]
        self.chip = data["chip"]

    def _caption(self):
        extrapolated = {row["bound"]["problem"] for row in self.rows if row["bound"] and row["bound"]["extrapolated"]}
        at = "; bounds at " + ", ".join(sorted(extrapolated)) if extrapolated else ""
        return f"{self.data['op']}, {self.problem}, under the roofs of {self.chip['name']}{at}"

    def roofline(self, measured=None):
        """Return an altair.Chart: the chip's roofline, and each rung at its counted operations per byte.

        A point's height is the rate at the bound or, if `measured` is a BenchResult of the same problem, the measured
        rate. Needs `pip install rung[plot]`.
        """
        from rung import _plots
        return _plots.roofline(self.chip, self.rows, measured.rows if measured is not None else None)


class SurveyResult(Result):
    """Random problems, with the ratio of the public call's time to the best time of each: `rung survey`."""

    _columns = (
        ("problem", lambda row: row["problem"]),
        (">time", lambda row: si(row["seconds"], "s")),
        (">of floor", lambda row: percent(row["of_floor"])),
        ("chosen", lambda row: row["chosen"]),
        ("fastest", lambda row: row["fastest"]),
        (">of fastest", lambda row: percent(row["of_fastest"])),
        ("peer", lambda row: row["peer"]),
        (">vs peer", lambda row: "" if row["vs_peer"] is None else f"{row['vs_peer']:.2f}"),
        ("fault", lambda row: row["fault"]),
    )

    @property
    def faults(self):
        """The rows with a fault."""
        return [row for row in self.rows if row["fault"]]

    def _caption(self):
        survey = self.data["survey"]
        return f"{survey['op']}, {len(self)} problems, {survey['where']}"
