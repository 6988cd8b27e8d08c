# SPDX-License-Identifier: Apache-2.0
"""Output for people: progress on the terminal or in a notebook, tables as text and as HTML."""
import contextlib
import html
import sys
import time

_SECONDS_BETWEEN = 0.2  # minimum between two updates of a line: more updates only flicker


def is_notebook():
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def bar(share, doing, width=24):
    """Return a line of text: a bar, a percentage, and the current item."""
    filled = min(width, max(0, int(share * width)))
    return f"[{'#' * filled}{'.' * (width - filled)}] {share:4.0%}  {doing}"


class _Line:
    """One line of standard error that is redrawn, and erased at the end."""

    def __init__(self):
        self._drawn_at = 0.0
        self._is_drawn = False

    def __call__(self, share, doing):
        now = time.monotonic()
        if now - self._drawn_at < _SECONDS_BETWEEN:
            return
        self._drawn_at = now
        self.draw(bar(share, doing))

    def draw(self, text):
        self._is_drawn = True
        sys.stderr.write(f"\r{text[:79]}\033[K")
        sys.stderr.flush()

    def close(self):
        if self._is_drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


class _Cell(_Line):
    """Progress in the output of a notebook's cell."""

    _handle = None

    def draw(self, text):
        from IPython.display import HTML, display
        content = HTML(f"<pre>{html.escape(text)}</pre>")
        if self._handle is None:
            self._handle = display(content, display_id=True)
        else:
            self._handle.update(content)

    def close(self):
        if self._handle is not None:
            from IPython.display import HTML
            self._handle.update(HTML(""))


@contextlib.contextmanager
def progress_line(progress):
    """Yield the progress function: the caller's, one that draws a line, or one that does nothing."""
    if callable(progress):
        yield progress
        return
    in_notebook = is_notebook()
    if progress is None:
        progress = in_notebook or (sys.stderr is not None and sys.stderr.isatty())
    if not progress:
        yield lambda share, doing: None
        return
    line = _Cell() if in_notebook else _Line()
    try:
        yield line
    finally:
        line.close()


def si(value, unit):
    """Return a number with three digits and a prefix: si(0.00123, "s") is "1.23 ms"."""
    if value is None:
        return ""
    if value == 0:
        return f"0 {unit}"
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u")):
        # Rounds first: 999.9 us is 1.00 ms.
        if abs(float(f"{value:.3g}")) >= factor:
            break
    else:
        factor, prefix = 1e-9, "n"
    digits = float(f"{value:.3g}") / factor
    places = 0 if abs(digits) >= 100 else 1 if abs(digits) >= 10 else 2
    return f"{digits:.{places}f} {prefix}{unit}"


def percent(share):
    """Return a fraction as a percentage; "" for None."""
    return "" if share is None else f"{100 * share:.1f} %"


def number(value):
    """Return a number as text: integers with thousands separators, others with three digits, "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.3g}"


def text_table(columns, rows):
    """Return rows of text below their headings. A column whose heading begins with ">" is aligned to the right."""
    lines = [[name.removeprefix(">") for name in columns], *rows]
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(len(columns))]
    right = [name.startswith(">") for name in columns]

    def text(line):
        cells = (cell.rjust(width) if aligned else cell.ljust(width)
                 for cell, width, aligned in zip(line, widths, right, strict=True))
        return "  ".join(cells).rstrip()
    return "\n".join(map(text, lines))


def html_table(columns, rows, caption="", faint=()):
    """Return the rows as an HTML table; rows whose index is in `faint` are gray."""
    align = ['right' if name.startswith(">") else 'left' for name in columns]

    def line(cells, tag, style=""):
        made = "".join(f'<{tag} style="text-align:{how}">{html.escape(cell)}</{tag}>'
                       for cell, how in zip(cells, align, strict=True))
        return f"<tr{style}>{made}</tr>"
    head = line([name.removeprefix(">") for name in columns], "th")
    body = "".join(line(cells, "td", ' style="opacity:.6"' if at in faint else "") for at, cells in enumerate(rows))
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead>{head}</thead><tbody>{body}</tbody></table>"
