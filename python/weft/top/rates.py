"""Bytes per second by device, peer and path, from two readings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.top.sources import Reading

_COUNTED = ("bytes", "time_outs", "re_routes")
"""What is compared with the reading before."""

Key = tuple[str, str | None, str, str | None, int]
"""Device, its address, peer, path, port."""
News = tuple[float, int, int]
"""Bytes per second, new time-outs, new re-routes."""
_NO_NEWS: News = (0.0, 0, 0)
_SILENT_S = 5.0
"""Files are written once a second: whose is so much older has ended, or hangs."""


@dataclass
class Path:
    """What goes one way to a peer, of all processes of a device."""

    path: str | None
    """Its number; None where switches choose, whose connections are told apart by their ports."""
    port: int | None
    """Only where nobody chose a path; 0 stands for all connections that are closed."""
    bytes: int = 0
    bytes_per_s: float = 0.0
    time_outs: int = 0
    new_time_outs: int = 0
    re_routes: int = 0
    new_re_routes: int = 0
    reconnects: int = 0
    connections: int = 0
    share: float = 0.0
    """Of the bytes to this peer in the last interval; of all bytes if there were none."""
    of_even: float = 0.0
    """`share` over what it would be if all paths in use had the same."""

    def _weigh(self, of: float, total: float, paths: int) -> None:
        self.share = of / total if total else 0.0
        self.of_even = self.share * paths


@dataclass
class Peer:
    """What a device sends to a peer."""

    device: str
    address: str | None
    """Of the device."""
    peer: str
    paths: list[Path] = field(default_factory=list)

    @property
    def bytes_per_s(self) -> float:
        """Of all paths."""
        return sum(path.bytes_per_s for path in self.paths)

    def _finish(self) -> None:
        """Sorts paths by rate, and compares them."""
        moving = self.bytes_per_s > 0
        of = [path.bytes_per_s if moving else path.bytes for path in self.paths]
        used = sum(1 for path, one in zip(self.paths, of, strict=True) if path.connections or one)
        for path, one in zip(self.paths, of, strict=True):
            path._weigh(one, sum(of), used)
        self.paths.sort(key=lambda path: (-path.bytes_per_s, -path.bytes, path.port or 0))


@dataclass
class Device:
    """What went wrong at a device, whoever the peer; of all its processes."""

    device: str
    address: str | None
    refused_connections: int = 0
    damaged_frames: int = 0
    starved_connections: int = 0
    starved_why: str = ""


@dataclass
class View:
    """All that is known now."""

    processes: int
    peers: list[Peer]
    """By rate, the highest first."""
    devices: list[Device]
    silent: int = 0
    """Of the processes: those that do not write their files any more."""


class Rates:
    """Remembers readings, so that the next ones become rates."""

    def __init__(self) -> None:
        self._before: dict[str, Reading] = {}
        self._rates: dict[str, dict[Key, News]] = {}

    def view(self, readings: Iterable[Reading]) -> View:
        """What these say; rates are zero for a source that is seen for the first time."""
        peers: dict[tuple[str, str | None, str], Peer] = {}
        paths: dict[object, Path] = {}
        devices: dict[tuple[str, str | None], Device] = {}
        processes = silent = 0
        for reading in readings:
            processes += 1
            silent += self._is_silent(reading)
            news = self._news(reading)
            for device, address, row in _rows(reading):
                place = (device, address, row["peer"])
                one = peers.setdefault(place, Peer(*place))
                port = row["port"] if row["path"] is None else None
                where = (place, row["path"], port)
                if where not in paths:
                    paths[where] = Path(row["path"], port)
                    one.paths.append(paths[where])
                _add(paths[where], row, news.get(_key(device, address, row), _NO_NEWS))
            for raw in reading.devices:
                _count(devices, raw)
        for peer in peers.values():
            peer._finish()
        ranked = sorted(peers.values(), key=lambda one: (-one.bytes_per_s, one.device, one.peer))
        return View(processes, ranked, list(devices.values()), silent)

    def _is_silent(self, now: Reading) -> bool:
        """Whether its file is old, and not only by the clock of another host."""
        before = self._before.get(now.source)
        return before is not None and now.at == before.at and now.age_s >= _SILENT_S

    def _news(self, now: Reading) -> Mapping[Key, News]:
        """Of each place: bytes per second, and new time-outs and re-routes."""
        if self._is_silent(now):
            return {}
        before = self._before.get(now.source)
        if before is not None and now.at == before.at:
            # A file that has not been written since: what was known still holds.
            return self._rates[now.source]
        self._before[now.source] = now
        found = {}
        # A file that is older than the last one: its clock was set back, or it is another file.
        if before is not None and now.at > before.at:
            old = _as_now(before, now)
            for key, row in _by_place(now).items():
                found[key] = _news(row, old.get(key, _NOTHING), now.at - before.at)
        self._rates[now.source] = found
        return found


_NOTHING = dict.fromkeys(_COUNTED, 0)


def _news(row: Mapping[str, Any], old: Mapping[str, int], seconds: float) -> News:
    more = [row[name] - old[name] for name in _COUNTED]
    if min(more) < 0:
        return _NO_NEWS  # Another process is there now.
    return more[0] / seconds, more[1], more[2]


def _as_now(before: Reading, now: Reading) -> dict[Key, dict[str, int]]:
    """Old counts by today's places: those of a connection that is closed are at port zero now."""
    places = _by_place(now)
    found: dict[Key, dict[str, int]] = {}
    for key, row in _by_place(before).items():
        counts = found.setdefault(key if key in places else (*key[:4], 0), dict(_NOTHING))
        for name in _COUNTED:
            counts[name] += row[name]
    return found


def _by_place(reading: Reading) -> dict[Key, dict[str, Any]]:
    return {_key(device, address, row): row for device, address, row in _rows(reading)}


def _rows(reading: Reading) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    for device in reading.devices:
        for row in device["paths"]:
            yield device["device"], _host(device), row


def _host(device: Mapping[str, Any]) -> str | None:
    """The address of a device without the port, which each process has its own of."""
    address = device["address"]
    return address.rpartition(":")[0] if address else None


def _key(device: str, address: str | None, row: Mapping[str, Any]) -> Key:
    return device, address, row["peer"], row["path"], row["port"]


def _add(path: Path, row: Mapping[str, Any], news: News) -> None:
    path.bytes += row["bytes"]
    path.time_outs += row["time_outs"]
    path.re_routes += row["re_routes"]
    path.reconnects += row["reconnects"]
    path.connections += row["open"]
    rate, time_outs, re_routes = news
    path.bytes_per_s += rate
    path.new_time_outs += time_outs
    path.new_re_routes += re_routes


def _count(devices: dict[tuple[str, str | None], Device], raw: Mapping[str, Any]) -> None:
    place = (raw["device"], _host(raw))
    device = devices.setdefault(place, Device(*place))
    device.refused_connections += raw.get("strangers", 0)
    device.damaged_frames += raw.get("damaged", 0)
    device.starved_connections += raw["starved"]
    device.starved_why = raw.get("starved_why") or device.starved_why
