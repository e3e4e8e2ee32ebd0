"""What `weft testbed run` and `weft testbed bench` print."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.report.usual_columns import NOT_SIGNIFICANT


def run(row: Mapping[str, Any]) -> str:
    """The lines of `weft testbed run`."""
    lines = [
        f"{row['scheme']}, seed {row['seed']}: {row['messages']} messages, "
        f"{row['payload_bytes'] / 1e6:.1f} MB" + ("" if row["complete"] else ", INCOMPLETE"),
        f"  completion  {row['completion_s']:.3f} s, lower bound {row['bound_s']:.3f} s"
        + (f", slowdown {row['slowdown']:.3f}" if row["slowdown"] is not None else ""),
        f"  flows       mean {row['fct_mean_s']:.3f} s, median {row['fct_p50_s']:.3f} s, "
        f"slowest {row['fct_max_s']:.3f} s",
        f"  packets     {row['packets']}, {row['drops']} dropped, "
        f"{row['retransmits']} retransmitted, {row['time_outs']} time-outs, "
        f"{row['remaps']} path changes",
        f"  uplinks     busiest {row['hottest_uplink']:.3f} times the mean, variance "
        f"{row['uplink_variance_pct2']:.4f} pp²",
    ]
    for one in row["uplinks"]:
        name = f"{one['leaf']} -> {one['spine']}" + (f"#{one['member']}" if one["member"] else "")
        lines.append(
            f"    {name:20} {one['bytes'] / 1e6:9.3f} MB  {one['utilisation_pct']:5.1f} %  "
            f"{one['drops']} dropped"
        )
    failure = row["failure"]
    if failure:
        lines.append(
            f"  failure     at {failure['at_s']:.3f} s; {failure['flows_stopped']} flows "
            f"stopped, the last one continued {failure['recovered_s']:.3f} s after the failure "
            f"(longest stop {failure['longest_stop_s']:.3f} s)"
        )
    if row["missing_bytes"] or row["wrong_bytes"]:
        lines.append(f"  MISSING {row['missing_bytes']} bytes, WRONG {row['wrong_bytes']} bytes")
    return "\n".join(lines)


def bench(path: Path, found: Mapping[str, Any]) -> str:
    """The table of `weft testbed bench`."""
    lines = [
        f"{found['operation']} of {found['size_bytes'] / 1e6:.2f} MB, {found['ranks']} ranks, "
        f"{found['channels']} channel(s) per peer: {path}",
        f"lower bound {found['bound_s']:.4f} s per run; ecmp and sockets have "
        f"{found['connections']} connections per channel",
    ]
    left = found.get("bound_left_s")
    if left is not None:
        lines.append(
            f"lower bound {left:.4f} s with what the failure leaves, on average of all runs"
        )
    lines += [
        "",
        f"{'scheme':22} {'runs':>4} {'failed':>6} {'of the bound':>12} {'min':>6} {'max':>6} "
        f"{'busbw Mbps':>12} {'x ecmp':>16} {'x sockets':>16} {'busiest':>7} {'time-outs':>9}"
        + (f" {'of what is left':>15}" if left is not None else ""),
    ]
    for one in found["schemes"]:
        shown = [_of(one[f"of_bound_{key}"], "6.3f") for key in ("mean", "min", "max")]
        bus = one["bus_bytes_per_s_mean"]
        lines.append(
            f"{one['scheme']:22} {one['runs']:4} {one['failed']:6} {shown[0]:>12} {shown[1]:>6} "
            f"{shown[2]:>6} {_of(bus and bus * 8 / 1e6, '.1f'):>12} "
            f"{_times(one, 'ecmp'):>16} {_times(one, 'sockets'):>16} "
            f"{one['hottest_uplink_mean']:7.3f} "
            f"{one['time_outs']:9}"
            + (f" {_of(one['of_bound_left_mean'], '.3f'):>15}" if left is not None else "")
        )
    if max(one["runs"] for one in found["schemes"]) > 1:
        lines.append(f"± 95 % confidence over seeds; {NOT_SIGNIFICANT}: not significant")
    for row in found["runs"]:
        if row["error"] or row["wrong"]:
            what = row["error"] or f"{row['wrong']} wrong elements"
            lines.append(f"{row['scheme']}, seed {row['seed']}: {what}")
    return "\n".join(lines)


def _times(one: Mapping[str, Any], base: str) -> str:
    """Ratio to a baseline with its confidence interval; the baseline itself has none."""
    value, half = one[f"over_{base}"], one[f"over_{base}_half_95"]
    if value is None or one["scheme"] == base:
        return _of(value, ".2f")
    unsure = f" {NOT_SIGNIFICANT}" if one[f"over_{base}_significant"] is False else ""
    return f"{value:.2f}" + (f" ± {half:.2f}" if half is not None else "") + unsure


def _of(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
