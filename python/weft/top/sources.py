"""Where the counters of processes are: endpoints of `WEFT_PROMETHEUS`, its directories, files.

All give the same JSON: a list with an object for each device.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any

from weft.errors import ExperimentError

FIRST_PORT = 9400
"""The port that the documentation gives `WEFT_PROMETHEUS`."""
PORTS = 64
"""Processes of a host take the first free one of so many."""
DEFAULT = f"127.0.0.1:{FIRST_PORT}-{FIRST_PORT + PORTS - 1}"
"""What is looked at if nothing is named."""

_PATIENCE_S = 2.0
_AT_ONCE = 16
_ADDRESS = re.compile(
    r"(?:http://)?(?P<host>\[[0-9a-fA-F:]+\]|[^\s:/]+):(?P<first>\d{1,5})(?:-(?P<last>\d{1,5}))?"
    r"(?:/|/metrics|/statistics\.json)?"
)
_DEVICE: dict[str, tuple[type, ...]] = {
    **{"device": (str,), "address": (str, NoneType), "paths": (list,)},
    **{"starved": (int,), "starved_why": (str, NoneType), "strangers": (int,), "damaged": (int,)},
}
"""What every device has."""
_LATER = ("starved_why", "strangers", "damaged")
"""What those of older plugins have not."""
_PATH: dict[str, tuple[type, ...]] = {
    **{"peer": (str,), "path": (str, NoneType), "port": (int,)},
    **dict.fromkeys(("bytes", "time_outs", "re_routes", "reconnects", "open"), (int,)),
}
"""What every path has."""


@dataclass(frozen=True)
class Reading:
    """What a process had counted at some time."""

    source: str
    at: float
    """In seconds. Only differences of one source mean something."""
    devices: list[dict[str, Any]]
    age_s: float = 0.0
    """How long ago a file was written; a port answers now."""


@dataclass(frozen=True)
class Missing:
    """A source that gives nothing, and why, for one line."""

    source: str
    why: str

    def __str__(self) -> str:
        return f"{self.source}: {self.why}"


Answer = Reading | Missing


@dataclass(frozen=True)
class Address:
    """Ports of a host, each of which may be a process."""

    name: str
    host: str
    ports: range

    def read(self) -> list[Answer]:
        """Readings of all that answer; if none does, why not.

        Beside processes that answer, other ports may be free or somebody else's.
        """
        with ThreadPoolExecutor(min(_AT_ONCE, len(self.ports))) as pool:
            found = list(pool.map(self._port, self.ports))
        there: list[Answer] = [one for one in found if isinstance(one, Reading)]
        silent = [one for one in found if isinstance(one, Missing)]
        odd = [one for one in silent if one.why not in (_REFUSED, _FOREIGN)]
        if there:
            return there + odd
        why = (odd or silent)[0].why
        job = f"; is a job with WEFT_PROMETHEUS={self.host}:{self.ports[0]} running?"
        return [Missing(self.name, f"{why}{job * (why == _REFUSED)}")]

    def _port(self, port: int) -> Answer:
        source = f"{self.host}:{port}"
        caller = http.client.HTTPConnection(self.host.strip("[]"), port, timeout=_PATIENCE_S)
        try:
            caller.request("GET", "/statistics.json")
            answer = caller.getresponse()
            text = answer.read()
        except ConnectionRefusedError:
            return Missing(source, _REFUSED)
        except TimeoutError:
            return Missing(source, f"no answer within {_PATIENCE_S:.0f} s")
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            return Missing(source, f"{why[:1].lower()}{why[1:]}")
        finally:
            caller.close()
        if answer.status != 200:
            return Missing(source, _FOREIGN)
        return _parsed(source, time.monotonic(), text)


_REFUSED = "nobody listens"
_FOREIGN = "no NCCL plugin of Weft 0.2 or newer; try the next port"


@dataclass(frozen=True)
class File:
    """A file of `WEFT_STATS`, or a directory of `WEFT_PROMETHEUS` with such files."""

    path: Path

    def read(self) -> list[Answer]:
        """Readings of the file, or of all files of the directory; if there is none, why not."""
        if not self.path.is_dir():
            return [_file(self.path)]
        found = [_file(path) for path in sorted(self.path.glob("weft-*.json"))]
        # One may have gone since the directory was listed.
        there = [one for one in found if isinstance(one, Reading) or one.why != _GONE]
        why = f"no weft-*.json; is a job with WEFT_PROMETHEUS={self.path.absolute()} running?"
        return there or [Missing(str(self.path), why)]


_GONE = "no such file"


def _file(path: Path) -> Answer:
    try:
        with path.open("rb") as file:
            at = os.fstat(file.fileno()).st_mtime
            found = _parsed(str(path), at, file.read())
        return replace(found, age_s=time.time() - at) if isinstance(found, Reading) else found
    except FileNotFoundError:
        return Missing(str(path), _GONE)
    except OSError as error:
        why = error.strerror or str(error)
        return Missing(str(path), f"{why[:1].lower()}{why[1:]}")


def _parsed(source: str, at: float, text: bytes) -> Answer:
    try:
        devices = json.loads(text)
    except (ValueError, RecursionError):
        devices = None
    if not isinstance(devices, list) or not all(map(_is_device, devices)):
        return Missing(source, "no statistics of Weft's NCCL plugin")
    return Reading(source, at, devices)


def _is_device(found: Any) -> bool:
    return _has(found, _DEVICE) and all(_has(path, _PATH) for path in found["paths"])


def _has(found: Any, keys: Mapping[str, tuple[type, ...]]) -> bool:
    return isinstance(found, dict) and all(
        isinstance(found[key], kinds) if key in found else key in _LATER
        for key, kinds in keys.items()
    )


Source = Address | File


def named(words: Sequence[str]) -> list[Source]:
    """The sources that a user has named.

    Raises:
        ExperimentError: One is neither a file, nor a directory, nor an address.
    """
    return [_named(word) for word in words or [DEFAULT]]


def _named(word: str) -> Source:
    if Path(word).exists():
        return File(Path(word))
    found = _ADDRESS.fullmatch(word)
    if not found:
        if word.endswith(".json") or ("/" in word and not word.startswith("http")):
            return File(Path(word))
        raise ExperimentError(
            f"{word}: no file and no address; write HOST:PORT or HOST:PORT-PORT, as {DEFAULT}"
        )
    first, last = int(found["first"]), int(found["last"] or found["first"])
    if not 0 < first <= last < 1 << 16:
        raise ExperimentError(f"{word}: ports are 1 to 65535, the smaller one first")
    return Address(word, found["host"], range(first, last + 1))


def read(sources: Sequence[Source]) -> Iterator[Answer]:
    """What all of them give now."""
    for source in sources:
        yield from source.read()
