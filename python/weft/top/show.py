"""Lines of 80 columns, and JSON, of what is known now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from weft.top.rates import Device, Path, Peer, View
from weft.top.sources import Missing
from weft.units import format_bytes

WIDTH = 80
_BAR = 20
_BLOCKS = " \N{LEFT ONE EIGHTH BLOCK}\N{LEFT ONE QUARTER BLOCK}\N{LEFT THREE EIGHTHS BLOCK}" + (
    "\N{LEFT HALF BLOCK}\N{LEFT FIVE EIGHTHS BLOCK}\N{LEFT THREE QUARTERS BLOCK}"
    "\N{LEFT SEVEN EIGHTHS BLOCK}\N{FULL BLOCK}"
)
_ROW = "  {:<7} {:>11} {:<20} {:>5} {:>7} {:>9} {:>9} {:>3}"
_HEAD = _ROW.format("path", "rate", "", "share", "of even", "time-outs", "re-routes", "con")


def lines(view: View, missing: Sequence[Missing], clock: str, room: int | None = None) -> list[str]:
    """A screen of at most `room` lines; `clock` is the time of day."""
    found = [_summary(view, clock), *map(str, missing)]
    found += [line for device in view.devices for line in _troubles(device)]
    largest = max((path.bytes_per_s for peer in view.peers for path in peer.paths), default=0.0)
    if not any(peer.paths for peer in view.peers):
        found.append("nothing has been sent")
    for peer in view.peers:
        found += ["", _of_peer(peer), _HEAD, *(_of_path(path, largest) for path in peer.paths)]
    if room is not None and len(found) > room:
        found = [*found[: room - 1], f"... {len(found) - room + 1} more lines"]
    return [_cut(line.rstrip()) for line in found]


def as_dict(view: View, missing: Sequence[Missing], at: float) -> dict[str, Any]:
    """The names that `--json` has; `at` in seconds since 1970."""
    peers = [{**asdict(peer), "bytes_per_s": peer.bytes_per_s} for peer in view.peers]
    return {
        "time_s": at,
        "processes": view.processes,
        "silent": view.silent,
        "peers": peers,
        "devices": [asdict(device) for device in view.devices],
        "missing": [asdict(one) for one in missing],
    }


def _summary(view: View, clock: str) -> str:
    paths = [path for peer in view.peers for path in peer.paths]
    rate = _rate(sum(path.bytes_per_s for path in paths))
    new = sum(path.new_time_outs for path in paths)
    count = "1 process" if view.processes == 1 else f"{view.processes} processes"
    silent = f" ({view.silent} silent)" if view.silent else ""
    return f"{clock}  {count}{silent}, {rate} sent, {new} new time-outs"


def _of_peer(peer: Peer) -> str:
    where = f"{peer.device} ({peer.address})" if peer.address else peer.device
    total = format_bytes(sum(path.bytes for path in peer.paths))
    return f"{where} to {peer.peer}: {_rate(peer.bytes_per_s)}, {total} in all"


def _of_path(path: Path, largest: float) -> str:
    return _ROW.format(
        _name(path),
        _rate(path.bytes_per_s),
        _bar(path.bytes_per_s / largest if largest else path.share),
        f"{100 * path.share:.0f} %",
        f"{path.of_even:.2f}",
        _count(path.time_outs, path.new_time_outs),
        _count(path.re_routes, path.new_re_routes),
        path.connections,
    )


def _name(path: Path) -> str:
    if path.path is not None:
        return path.path
    return f":{path.port}" if path.port else "closed"


def _count(count: int, new: int) -> str:
    return f"{count} (+{new})" if new else str(count)


def _bar(share: float) -> str:
    eighths = round(8 * _BAR * min(share, 1.0))
    return _BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _rate(bytes_per_s: float) -> str:
    return f"{format_bytes(round(bytes_per_s))}/s"


def _troubles(device: Device) -> list[str]:
    found = [
        (device.starved_connections, "connections that this host had no room for"),
        (device.refused_connections, "connections that were refused"),
        (device.damaged_frames, "frames that came damaged"),
    ]
    told = [f"{device.device}: {count} {what}" for count, what in found if count]
    if device.starved_connections and device.starved_why:
        told[0] += f": {device.starved_why}"
    return told


def _cut(line: str) -> str:
    # Whoever writes a file does not command the terminal.
    line = "".join(c if c.isprintable() else "?" for c in line)
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."
