# SPDX-License-Identifier: Apache-2.0
"""Findings as exceptions, and the report of a `checked` block."""
import contextvars
import html
import re
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union


class Place:
    """A line of a kernel string, and, if known, the script's line that contains it."""

    def __init__(self, file: str, line: int, text: str = "", column: int = 0,
                 script: Optional[Tuple[str, int]] = None, in_string: bool = False):
        self.file = file
        self.line = line
        self.text = text
        self.column = column
        self.script = script
        self.in_string = in_string

    def __str__(self) -> str:
        if not self.in_string:
            return f"{self.file}:{self.line}"
        column = f", column {self.column}" if self.column else ""
        script = f" ({self.script[0]}:{self.script[1]})" if self.script else ""
        return f"line {self.line}{column} of {self.file}{script}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def excerpt(self) -> str:
        if not self.text.strip():
            return ""
        shown = self.text.expandtabs(1)
        lines = "\n    " + shown.strip()
        indent = len(shown) - len(shown.lstrip())
        if self.column > indent:
            lines += "\n    " + " " * (self.column - 1 - indent) + "^"
        return lines


class CudaError(RuntimeError):
    """Base of all errors of `rung.cuda`."""


class CompileError(CudaError):
    """The compiler rejected a kernel string. `stderr` has its messages, with line numbers of the string."""

    def __init__(self, message: str, stderr: str = "", command_line: Any = ()):
        super().__init__(message + ("\n" + stderr.rstrip() if stderr else ""))
        self.msg = message
        self.stderr = stderr
        self.stdout = ""
        self.command_line = list(command_line)

    def __reduce__(self):
        return type(self), (self.msg, self.stderr, self.command_line)


class LaunchError(CudaError):
    """CUDA rejected a launch, or the kernel failed without a more specific finding."""


class TimeoutError(LaunchError):  # pylint: disable=redefined-builtin
    """A kernel did not end within the time limit of `checked(timeout=...)`. Its device memory is lost."""


class WorkerError(CudaError):
    """The process of the simulated device ended. Its device memory is lost; the next call starts another."""


class Finding(CudaError):
    """A bug found in a launch: its description, both source lines, and advice.

    Attributes: kind ("race", "out_of_bounds", "uninitialized" ...), space ("shared", "global" ...), message, advice,
    fixes, kernel, block, thread, other_block, other_thread, place and other (a Place each, or None), line, column,
    source_line and other_line of the kernel string, times, orders.
    """

    kind = ""

    def __init__(self, data: Dict[str, Any]):
        self.data = data
        self.kind = data["kind"]
        self.space = data.get("space", "")
        self.message = data["message"]
        self.advice = data.get("advice", "")
        self.fixes = data.get("fixes", [])
        self.kernel = data.get("kernel", "")
        self.block = tuple(data.get("block", (0, 0, 0)))
        self.thread = tuple(data.get("thread", (0, 0, 0)))
        self.other_block = tuple(data["other_block"]) if "other_block" in data else None
        self.other_thread = tuple(data["other_thread"]) if "other_thread" in data else None
        self.times = data.get("times", 1)
        self.orders = data.get("orders", [])
        self.place: Optional[Place] = data.get("place")
        self.other: Optional[Place] = data.get("other")
        self.line = self.place.line if self.place else 0
        self.column = self.place.column if self.place else 0
        self.source_line = self.place.text if self.place else ""
        self.other_line = self.other.line if self.other else 0
        self.findings: List["Finding"] = [self]
        super().__init__(self._text())

    def _text(self) -> str:
        of_thread = self.kind not in ("launch", "overlap")
        text = self.kind + (f" ({self.space})" if of_thread and self.space else "") + ": " + self.message
        if self.place:
            text += f"\n  at {self.place}{self.place.excerpt()}"
        if self.kernel:
            text += f"\n  kernel {self.kernel}"
            text += f", block {self.block}, thread {self.thread}" if of_thread else ""
        if self.other:
            two_sided = self.kind in ("race", "barrier", "warp_sync", "overlap")
            text += f"\n  {'and' if two_sided else 'allocated at'} {self.other}"
            same = self.other_thread == self.thread and self.other_block == self.block
            if self.kind in ("race", "barrier") and not same:
                text += f", block {self.other_block}, thread {self.other_thread}"
            elif self.kind == "race":
                text += ", other threads"
            text += self.other.excerpt()
        if self.orders:
            text += "\n  under the thread orders " + ", ".join(self.orders)
        return text + (f"\n  {self.advice}" if self.advice else "")

    def __str__(self) -> str:
        text = self._text()
        others = len(self.findings) - 1
        return text if others == 0 else f"{text}\n({others} more in .findings)"

    def key(self) -> Tuple[Any, ...]:
        """Returns the key by which two findings are equal."""
        lines = sorted([(self.place.file, self.line) if self.place else ("", 0),
                        (self.other.file, self.other_line) if self.other else ("", 0)])
        return (self.kind, self.space, *lines, self.message if not self.line else "")

    def __reduce__(self):
        return _unpickle, (self.data, [one.data for one in self.findings if one is not self])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class RaceError(Finding):
    """Two unordered accesses of different threads to one element, at least one of them a write."""


class BoundsError(Finding):
    """An access outside of its array."""


class UninitializedError(Finding):
    """A read of uninitialized memory."""


class MisalignedError(Finding):
    """An access at an address that is not a multiple of its size."""


class UseAfterFreeError(Finding):
    """An access to memory that was freed."""


class BarrierError(Finding):
    """A barrier that some threads do not reach, or that threads reach in two different calls."""


class WarpSyncError(Finding):
    """A warp operation whose mask does not match the lanes that execute it."""


class DeadlockError(Finding):
    """Threads that wait for each other forever."""


class KernelError(Finding):
    """Any other finding: a failed assertion, a write to constant memory, a refused launch."""


_CLASSES = {"race": RaceError, "out_of_bounds": BoundsError, "uninitialized": UninitializedError,
            "misaligned": MisalignedError, "use_after_free": UseAfterFreeError, "barrier": BarrierError,
            "warp_sync": WarpSyncError, "deadlock": DeadlockError}


def make_finding(data: Dict[str, Any]) -> Finding:
    return _CLASSES.get(data["kind"], KernelError)(data)


def _unpickle(data: Dict[str, Any], others: List[Dict[str, Any]]) -> Finding:
    finding = make_finding(data)
    finding.findings = [finding] + [make_finding(one) for one in others]
    return finding


class Counters:
    """Counters of a block: one row per kernel. Rows are dicts; `lines(kernel)` has one row per source line."""

    def __init__(self) -> None:
        self._rows: Dict[str, Dict[str, Any]] = {}
        self._lines: Dict[str, Dict[Tuple[str, int], Dict[str, Any]]] = {}

    def add(self, kernel: Dict[str, Any], text_of: Any) -> None:
        """Adds the counters of one launch. `text_of(file, line)` returns a Place."""
        name = kernel["kernel"] if "kernel" in kernel else kernel["name"]
        row = self._rows.setdefault(name, {"kernel": name})
        for key in ("launches", "recorded_launches", "blocks", "threads"):
            row[key] = row.get(key, 0) + kernel.get(key, 0)
        for key in ("block_threads", "shared_bytes"):
            row[key] = max(row.get(key, 0), kernel.get(key, 0))
        for key, value in (kernel.get("totals") or {}).items():
            if isinstance(value, (int, float)):
                row[key] = row.get(key, 0) + value
        lines = self._lines.setdefault(name, {})
        for one in kernel.get("lines", []):
            place = text_of(one["file"], one["line"])
            line = lines.setdefault((place.file, place.line),
                                    {"file": place.file, "line": place.line, "source": place.text.strip()})
            for key, value in one.items():
                if key not in ("file", "line") and isinstance(value, (int, float)) and not isinstance(value, bool):
                    line[key] = line.get(key, 0) + value

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __getitem__(self, kernel: str) -> Dict[str, Any]:
        return self._rows[kernel]

    def keys(self):
        return self._rows.keys()

    def values(self):
        return self._rows.values()

    def items(self):
        return self._rows.items()

    def lines(self, kernel: str) -> List[Dict[str, Any]]:
        """Returns the counters of each line of a kernel."""
        return [self._lines[kernel][key] for key in sorted(self._lines[kernel])]

    def to_pandas(self):
        """Returns a DataFrame with a row per kernel. Needs pandas."""
        import pandas  # pylint: disable=import-outside-toplevel,import-error
        return pandas.DataFrame(list(self._rows.values())).set_index("kernel")

    def _shown(self) -> Tuple[List[str], List[List[str]]]:
        """Returns the header and rows of the counters that are nonzero in at least one row."""
        names: List[str] = []
        for row in self._rows.values():
            names += [name for name, value in row.items() if value and name not in names]
        return names, [[f"{row.get(name, 0):,}" if name != "kernel" else row[name] for name in names]
                       for row in self._rows.values()]

    def __str__(self) -> str:
        names, rows = self._shown()
        columns = [[name] + [row[i] for row in rows] for i, name in enumerate(names)]
        width = max((len(name) for name in names), default=0)
        return "\n".join(f"{first:<{width}}  " + "  ".join(f"{one:>14}" for one in rest) for first, *rest in columns)

    def _repr_html_(self) -> str:
        names, rows = self._shown()
        text = "<table><tr><th></th>" + "".join(f"<th>{html.escape(row[0])}</th>" for row in rows) + "</tr>"
        for i, name in enumerate(names[1:], 1):
            text += f"<tr><th>{html.escape(name)}</th>" + "".join(f"<td>{row[i]}</td>" for row in rows) + "</tr>"
        return text + "</table>"


class Report:
    """Results of the launches in a `checked` block: `findings` (a list), `counters`, and `launches`.

    launches: by kernel name, a dict of "launches" and "checked", the number of launches that were checked.
    """

    def __init__(self) -> None:
        self.findings: List[Finding] = []
        self.counters = Counters()
        self.launches: Dict[str, Dict[str, int]] = {}

    def add_launch(self, kernel: str, was_checked: bool) -> None:
        row = self.launches.setdefault(kernel, {"launches": 0, "checked": 0})
        row["launches"] += 1
        row["checked"] += was_checked

    def _text(self) -> str:
        parts = ["\n\n".join(str(one) for one in self.findings) or "no findings"]
        for kernel, row in self.launches.items():
            left_out = row["launches"] - row["checked"]
            if left_out:
                parts.append(f"kernel {kernel}: {row['checked']} of {row['launches']} launches were checked; "
                             f"{left_out} that repeated them ran unchecked (checks=\"always\" checks all)")
        return "\n\n".join(parts)

    def add_findings(self, findings: List[Finding]) -> None:
        known = {one.key(): one for one in self.findings}
        for finding in findings:
            old = known.get(finding.key())
            if old is None:
                known[finding.key()] = finding
                self.findings.append(finding)
            else:
                old.times += finding.times

    def __str__(self) -> str:
        return self._text() + (f"\n\n{self.counters}" if len(self.counters) else "")

    def _repr_html_(self) -> str:
        # pylint: disable=protected-access
        return f"<pre>{html.escape(self._text())}</pre>" + (self.counters._repr_html_() if len(self.counters) else "")


class Settings:
    """Settings of a `checked` block; blocks nest."""

    def __init__(self, action: str, orders: Tuple[str, ...], counters: bool, timeout: Optional[float], checks: str,
                 report: Report, outer: Optional["Settings"]):
        self.action = action
        self.orders = orders
        self.counters = counters
        self.timeout = timeout
        self.checks = checks
        self.report = report
        self.outer = outer

    def note_launch(self, kernel: str, was_checked: bool) -> None:
        """Counts a launch in the reports of all open blocks."""
        block: Optional[Settings] = self
        while block is not None and block.outer is not None:
            block.report.add_launch(kernel, was_checked)
            block = block.outer


_settings: contextvars.ContextVar = contextvars.ContextVar("rung.cuda.settings")
_DEFAULT = Settings("raise", ("forward",), False, None, "always", Report(), None)


def settings() -> Settings:
    return _settings.get(_DEFAULT)


class checked:  # pylint: disable=invalid-name
    """Sets the action on findings of the launches in a `with` block; `as report` gives the Report.

    action: "raise" (the default, also outside of any block) raises the first finding of a launch; "warn" warns;
    "collect" only lists them in report.findings.
    orders: "one" runs each launch once; "all" runs it under three orders of its threads and blocks, each from the same
    contents of memory, and keeps the results of the first order: bugs that hide under one order show under another.
    counters: count sectors, bank conflicts, branches ... in report.counters. Slower.
    timeout: seconds that a launch may take.
    checks: which launches are checked and counted, as in `rung emulate --checks`. "always" (the default, also outside
    of any block): all. "repeated": skips most launches that repeat others, which then run several times as fast. A
    number N: skips launches that repeat one of N others. report.launches has the number of checked launches.
    """

    def __init__(self, action: str = "raise", orders: str = "one", counters: bool = True,
                 timeout: Optional[float] = None, checks: Union[str, int] = "always"):
        if action not in ("raise", "warn", "collect"):
            raise ValueError(f"action: given {action!r}, accepted are 'raise', 'warn' and 'collect'")
        if orders not in ("one", "all"):
            raise ValueError(f"orders: given {orders!r}, accepted are 'one' and 'all'")
        number = isinstance(checks, int) and not isinstance(checks, bool)
        words = str(checks) if number or isinstance(checks, str) else ""
        if words not in ("always", "repeated") and not re.fullmatch(r"[1-9][0-9]{0,8}", words):
            raise ValueError(f"checks: given {checks!r}, accepted are 'always', 'repeated' and a number of launches "
                             "from 1 on")
        if words != "always" and orders == "all":
            raise ValueError(f"checks: given {checks!r} with orders='all', which runs each launch several times to "
                             "check it: accepted is 'always'")
        self._options = (action, ("forward",) if orders == "one" else ("forward", "reverse", "random:1"), counters,
                         timeout, words)
        self._tokens: List[Any] = []

    def __enter__(self) -> Report:
        report = Report()
        self._tokens.append(_settings.set(Settings(*self._options, report, settings())))
        return report

    def __exit__(self, *_: Any) -> None:
        _settings.reset(self._tokens.pop())


def deliver(findings: List[Finding], now: Settings) -> None:
    """Adds findings to the reports of all open blocks, then performs the innermost block's action."""
    block: Optional[Settings] = now
    while block is not None and block.outer is not None:
        block.report.add_findings(findings)
        block = block.outer
    if not findings or now.action == "collect":
        return
    if now.action == "warn":
        for one in findings:
            warnings.warn(str(one), RuntimeWarning, stacklevel=5)
        return
    first = findings[0]
    first.findings = findings
    raise first
