# SPDX-License-Identifier: Apache-2.0
"""Plots of results: Vega-Lite by altair, the extra rung[plot]."""
import math

from rung import _program


def _altair():
    try:
        import altair
    except ImportError:
        raise ImportError("plots need altair, which is not installed: pip install 'rung[plot]'") from None
    return altair


def _kind(row):
    return "library" if row["peer"] else "public call" if row["rung"] == "best" else "rung"


def ladder_bars(rows):
    """Return bars of the rate of each version, in the ladder's order; a panel per problem."""
    alt = _altair()
    timed = [{"rung": row["rung"], "rate": row["rate"], "unit": row["unit"], "kind": _kind(row),
              "problem": row["problem"], "milliseconds": row["seconds"] * 1e3}
             for row in rows if row["seconds"] is not None and row["rate"] is not None]
    if not timed:
        raise _program.error("plot: no row has a time; bench a problem on a backend that is timed, cpu or cuda")
    order = list(dict.fromkeys(one["rung"] for one in timed))
    units = list(dict.fromkeys(one["unit"] for one in timed))
    chart = alt.Chart(alt.Data(values=timed)).mark_bar().encode(
        x=alt.X("rate:Q", title=" or ".join(units)),
        y=alt.Y("rung:N", sort=order, title=None),
        color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=["rung", "public call", "library"])),
        tooltip=[alt.Tooltip("rung:N"), alt.Tooltip("milliseconds:Q", format=".4g"),
                 alt.Tooltip("rate:Q", format=".4g"), alt.Tooltip("unit:N")])
    if len({one["problem"] for one in timed}) > 1:
        chart = chart.facet(row=alt.Row("problem:N", title=None)).resolve_scale(x="independent")
    return chart


def _position(row):
    """Return (operations, bytes) of a rung: counted, or declared if it did not run."""
    found = {point["bytes_are"]: point for point in row["roofline"]}
    point = found.get("counted") or found.get("declared")
    return (point["operations"], point["bytes"]) if point and point["bytes"] and point["operations"] else None


def _measured_seconds(measured, row):
    return next((one["seconds"] for one in measured
                 if one["rung"] == row["rung"] and one["problem"] == row["problem"]), None)


def roofline(chip, rows, measured=None):
    """Return a roofline: operations per second over operations per byte, both logarithmic."""
    alt = _altair()
    bandwidth, peak = chip["bytes_per_second"], chip["operations_per_second"]
    if not bandwidth or not peak:
        raise _program.error(f"roofline: the rates of {chip['name']} are not known; name a GPU: explain(gpu='h200')")
    points = []
    for row in rows:
        position = _position(row)
        seconds = (row["bound"] or {}).get("seconds") if measured is None else _measured_seconds(measured, row)
        # An extrapolated bound belongs to another problem than the bytes.
        if measured is None and row["bound"] and row["bound"]["extrapolated"]:
            seconds = None
        if position and seconds:
            points.append({"rung": row["rung"], "operations per byte": position[0] / position[1],
                           "operations per second": position[0] / seconds})
    if not points:
        raise _program.error("roofline: no rung has both bytes and a time of the same problem; "
                             "explain without at=, or measure the problem that was explained")
    ridge = peak / bandwidth
    intensities = [one["operations per byte"] for one in points] + [ridge]
    low, high = 10 ** math.floor(math.log10(min(intensities))), 10 ** math.ceil(math.log10(max(intensities)) + 0.3)
    roof = [{"operations per byte": at, "operations per second": min(peak, at * bandwidth)}
            for at in (low, ridge, high)]
    x = alt.X("operations per byte:Q", scale=alt.Scale(type="log"))
    y = alt.Y("operations per second:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s"))
    line = alt.Chart(alt.Data(values=roof)).mark_line(color="gray").encode(x=x, y=y)
    dots = alt.Chart(alt.Data(values=points)).mark_point(filled=True, size=70).encode(
        x=x, y=y, color=alt.Color("rung:N", sort=[one["rung"] for one in points]),
        tooltip=[alt.Tooltip("rung:N"), alt.Tooltip("operations per byte:Q", format=".3g"),
                 alt.Tooltip("operations per second:Q", format=".3s")])
    return (line + dots).properties(title=f"{chip['name']}: {chip['of']}")
