"""Hands out the runs of a sweep to workers, and takes their results: an executor.

Each worker has as many chunks of runs as it can work at, and one more for each where runs are so
short that the way to a worker counts. A chunk is a run, or as many short ones as take half a second
together. A worker that is gone loses its chunks to others; one of another version gets none.
"""

from __future__ import annotations

import asyncio
import errno
import json
import math
import pickle
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol, Self

from weft import _native
from weft._types import RunSpec
from weft.errors import ClusterError, ExperimentError, LostRunError
from weft.study.cluster import files, worker
from weft.study.executor import Ended, taken
from weft.study.forecast import ActiveRun, Forecast, kind_of
from weft.study.store import Store

_CHUNK_S = 0.5
"""Seconds of work that are worth a message."""
_MESSAGE_S = 0.002
"""Seconds of this side's time that a chunk may cost: with many workers they are larger."""
_CHUNK_BYTES = 1 << 20
_LOOK_S = 1.0
"""Seconds between looks at which workers there are."""
_STATES_S = 2.0
"""Seconds between questions how far runs are."""
_REMIND_S = 60.0
_RARELY_S = 1800.0
"""Seconds without a change until what is waited for is said again, and the most of them: each time
they double."""
_MOST_ENDS = 3
"""A run whose workers have ended so often is given up."""
_PATIENCE_S = 3.0
"""Seconds for workers to send what they have finished when the sweep is cancelled."""


@dataclass
class _Member:
    """A worker that gets work."""

    cores: int
    slots: int
    """How many runs go on at once."""
    chunks: dict[int, _Sent] = field(default_factory=dict)
    """What it has, by number; the oldest ones are under way."""


@dataclass
class _Sent:
    """A chunk that a worker has."""

    number: int
    address: str
    specs: Sequence[RunSpec]
    future: Any
    given_up: bool = False


class Supply(Protocol):
    """What brings the workers, where it knows of those that are still to come."""

    def told(self) -> list[str]:
        """What has happened since the last call, one line each."""

    def missing(self, there: int) -> str | None:
        """What to say while there are so many workers, if more are on their way."""

    def over(self) -> str | None:
        """Why no worker will come any more, if none will; asked while there is none."""


class Dispatcher:
    """The executor for the workers of one scheduler, for all sweeps of a command."""

    def __init__(
        self, client: Any, jobs: int | None, threads: int | None, supply: Supply | None = None
    ) -> None:
        self._client, self._jobs, self._threads = client, jobs, threads
        self._supply = supply
        self._address: str = client.scheduler.address
        self._sweep = uuid.uuid4().hex
        self._members: dict[str, _Member] = {}
        self._refused: dict[str, str] = {}
        self._remarks: list[str] = []
        self._waiting: deque[RunSpec] = deque()
        self._sent: dict[int, _Sent] = {}
        self._ends: Counter[str] = Counter()
        self._lost: list[Ended] = []
        self._answers: SimpleQueue[tuple[_Sent, worker.Answer | BaseException]] = SimpleQueue()
        self._number = 0
        self._looked = self._asked = 0.0
        self._remind_s, self._remind_at = _REMIND_S, math.inf
        self._active: dict[str, ActiveRun] = {}
        self._files: dict[str, bytes] = {}
        self._folders: dict[str, str] = {}

    @property
    def side_by_side(self) -> int:
        """How many runs go on at the same time."""
        slots = sum(member.slots for member in self._members.values())
        return min(slots, self._jobs or slots)

    @property
    def cores(self) -> int:
        """How many cores the workers have."""
        return sum(member.cores for member in self._members.values())

    def begin(self, runs: Sequence[RunSpec], store: Store, forecast: Forecast) -> None:
        """Simulate these; with workers of other versions only it is refused."""
        self._waiting.extend(runs)
        self._store, self._forecast, self._runs = store, forecast, len(runs)
        needed = files.needed(runs)
        more = {place: path.read_bytes() for place, path in needed.items()}
        self._folders |= files.folders(needed)
        self._files |= more
        self._give(more, self._members)
        self._look()
        if self._refused and not self._members:
            raise ExperimentError(next(iter(self._refused.values())))
        self._remind(first=True)

    def ended(self, patience_s: float) -> list[Ended]:
        """The runs that have ended since the last call; wait so long for one."""
        if time.monotonic() - self._looked >= _LOOK_S:
            self._look()
        self._send()
        found = self._received(patience_s)
        self._send()
        found += self._lost
        self._lost = []
        return found

    def active(self) -> list[ActiveRun]:
        """How far the runs are that have begun, as workers said a moment ago."""
        now = time.monotonic()
        if now - self._asked >= max(_STATES_S, _MESSAGE_S * len(self._members)) and self._members:
            self._asked = math.inf
            self._client.loop.add_callback(self._ask_states, list(self._members))
        # Some may have ended since.
        out = {spec["key"] for sent in self._sent.values() for spec in sent.specs}
        return [run for key, run in self._active.items() if key in out]

    def remarks(self) -> list[str]:
        """Which workers came, went, or get no work."""
        told, self._remarks = self._remarks, []
        return told

    def cancel(self) -> None:
        """Stop the workers, and keep what they had finished."""
        self._waiting.clear()
        end = time.monotonic() + _PATIENCE_S
        try:
            self._run(worker.cancel, self._sweep, on=self._members)
            while self._sent and time.monotonic() < end:
                self._received(0.1)
        except (OSError, ExperimentError):
            # What made the sweep end may go on: it has been told already.
            return

    def close(self) -> None:
        """Have the workers remove what was sent for this command."""
        if self._files:
            with suppress(OSError, ExperimentError):  # Who is gone has no files.
                self._run(worker.drop_files, self._sweep, on=self._members)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sent in self._sent.values():
            sent.future.release()
        self._sent = {}

    def _look(self) -> None:
        """See which workers there are."""
        there: Mapping[str, int] = self._ask(self._client.nthreads)
        self._looked = time.monotonic()
        before = self._members.keys() | self._refused.keys()
        for address in [address for address in self._members if address not in there]:
            runs = self._dismiss(address, blamed=True)
            again = f"; done again elsewhere: {_counted(runs, 'run')}" if runs else ""
            left = _counted(len(self._members), "worker")
            self._remarks.append(f"worker {address} is gone{again}; {left} left")
        for address in self._refused.keys() - there.keys():
            del self._refused[address]  # Another version may come to the same address.
        known = self._members.keys() | self._refused.keys()
        new = {address: cores for address, cores in there.items() if address not in known}
        if new:
            self._admit(new)
        if self._supply:
            self._remarks += self._supply.told()
            if not self._members and (why := self._supply.over()):
                raise ClusterError(errno.EIO, why, self._address)
        if self._members.keys() | self._refused.keys() != before:
            self._remind_s, self._remind_at = _REMIND_S, self._looked + _REMIND_S
        elif self._looked >= self._remind_at:
            self._remind()

    def _remind(self, first: bool = False) -> None:
        """Say what is waited for: soon, and then ever more rarely."""
        self._remind_at = time.monotonic() + self._remind_s
        self._remind_s = min(2 * self._remind_s, _RARELY_S)
        there = len(self._members) + len(self._refused)
        line = None
        if self._supply:
            line = self._supply.missing(there)
        elif not self._members:
            no, yet = ("no", " yet") if first else ("still no", "")
            line = f"{no} worker at {self._address}{yet}: waiting for one"
        if line:
            self._remarks.append(line)

    def _admit(self, new: Mapping[str, int]) -> None:
        """Give work to those of the new workers that have this version of Weft."""
        others: dict[str, list[str]] = {}
        right = []
        for address, version in self._run(worker.code_version, on=new).items():
            if version == _native.code_version:
                right.append(address)
            elif not isinstance(version, OSError):  # It may just have gone.
                others.setdefault(_version_text(version), []).append(address)
        self._give(self._files, right)
        for address in right:
            slots = max(1, new[address] // (self._threads or 1))
            self._members[address] = _Member(new[address], slots)
        for version, addresses in others.items():
            self._refuse(version, addresses)
        if right:
            runs = _counted(self.side_by_side, "run")
            self._remarks.append(f"{_counted(len(self._members), 'worker')}, {runs} at once")

    def _give(self, contents: Mapping[str, bytes], members: Iterable[str]) -> None:
        """Send files that experiments name."""
        if not contents:
            return
        kept = self._run(worker.keep_files, self._sweep, contents, on=members)
        for address, error in kept.items():
            if error is not None:
                why = f"cannot keep files of the experiment: {_one_line(error)}"
                raise ClusterError(errno.EIO, why, address)

    def _refuse(self, version: str, addresses: Sequence[str]) -> None:
        more = f" and {len(addresses) - 1} more" if len(addresses) > 1 else ""
        line = (
            f"worker {addresses[0]}{more} gets no work: {version} there, Weft "
            f"{_native.code_version} here; install the same version on both"
        )
        self._refused |= dict.fromkeys(addresses, line)
        self._remarks.append(line)

    def _dismiss(self, address: str, blamed: bool) -> int:
        """Do what a worker had elsewhere; the number of runs. Its end may be their fault."""
        member = self._members.pop(address)
        chunks = list(member.chunks.values())
        # In reverse, since each goes before what waits.
        for place, sent in reversed(list(enumerate(chunks))):
            under_way = place < member.slots
            self._take_back(sent, blamed and under_way, f"the last one was {address}")
        return sum(len(sent.specs) for sent in chunks)

    def _take_back(self, sent: _Sent, blamed: bool, why: str) -> None:
        """Have the runs of a chunk wait again; those that may have ended the worker go alone."""
        sent.given_up = True
        sent.future.release()
        self._sent.pop(sent.number, None)
        for spec in reversed(sent.specs):
            self._ends[spec["key"]] += blamed
            if self._ends[spec["key"]] < _MOST_ENDS:
                self._waiting.appendleft(spec)
                continue
            what = f"its worker ended {_MOST_ENDS} times before it did ({why})"
            mend = "look into the worker's log, and give workers more memory or more time"
            self._lost.append(Ended(spec, error=LostRunError(f"{what}; {mend}")))

    def _send(self) -> None:
        """Give workers what they have room for."""
        while self._waiting and self._members and len(self._sent) < (self._jobs or math.inf):
            address, member = min(
                self._members.items(), key=lambda one: len(one[1].chunks) / one[1].slots
            )
            expected = self._forecast.expected(self._waiting[0])
            ahead = expected is not None and expected < _CHUNK_S and not self._threads
            if len(member.chunks) >= member.slots * (1 + ahead):
                break
            self._submit(address, member)

    def _submit(self, address: str, member: _Member) -> None:
        specs, tasks = self._next_chunk()
        per_worker = math.ceil(self._runs / len(self._members))
        chunk = worker.Chunk(
            self._sweep,
            _native.code_version,
            tasks,
            self._threads,
            max(1, member.cores // per_worker),
            self._store.keeps_tables,
            self._folders,
        )
        self._number += 1
        future = self._ask(
            lambda: self._client.submit(
                pickle.loads,
                worker.request(worker.simulate, chunk),
                key=f"weft-{self._sweep}-{self._number}",
                workers=[address],
                pure=False,
            )
        )
        sent = _Sent(self._number, address, specs, future)
        self._sent[sent.number] = member.chunks[sent.number] = sent
        self._client.loop.add_callback(self._await, sent)

    def _next_chunk(self) -> tuple[list[RunSpec], list[worker.Task]]:
        """One run, or as many short ones as are worth a message."""
        slots = max(1, self.side_by_side)
        most = math.ceil(len(self._waiting) / (2 * slots))
        limit_s = max(_CHUNK_S, _MESSAGE_S * slots)
        specs: list[RunSpec] = []
        tasks: list[worker.Task] = []
        total_s, size = 0.0, 0
        while self._waiting and len(specs) < max(1, most):
            spec = self._waiting[0]
            expected = self._forecast.expected(spec)
            alone = expected is None or self._ends[spec["key"]] > 0
            total_s += expected or 0.0
            if specs and (alone or total_s > limit_s or size > _CHUNK_BYTES):
                break
            specs.append(self._waiting.popleft())
            text = json.dumps(spec["experiment"])
            tasks.append(worker.Task(spec["key"], text, spec["seed"]))
            size += len(text)
            if alone:
                break
        return specs, tasks

    async def _await(self, sent: _Sent) -> None:
        """Put the answer to a chunk where the main thread finds it; in the client's thread."""
        try:
            answer: worker.Answer | BaseException = await sent.future
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever there is.
            answer = error
        self._answers.put((sent, answer))

    def _received(self, patience_s: float) -> list[Ended]:
        found = []
        for sent, answer in taken(self._answers, patience_s):
            if not sent.given_up:
                found += self._answered(sent, answer)
        return found

    def _answered(self, sent: _Sent, answer: worker.Answer | BaseException) -> list[Ended]:
        member = self._members[sent.address]
        del member.chunks[sent.number]
        if isinstance(answer, BaseException):
            self._take_back(sent, True, f"the last one said {_one_line(answer)}")
            return []
        if answer.code_version != _native.code_version:
            member.chunks[sent.number] = sent
            self._dismiss(sent.address, blamed=False)
            self._refuse(_version_text(answer.code_version), [sent.address])
            return []
        sent.future.release()
        del self._sent[sent.number]
        done = {run.key: run for run in answer.runs}
        self._waiting.extendleft(spec for spec in sent.specs if spec["key"] not in done)
        return [self._kept(spec, done[spec["key"]]) for spec in sent.specs if spec["key"] in done]

    def _kept(self, spec: RunSpec, done: worker.Done) -> Ended:
        if done.packed is None:
            return Ended(spec, error=done.error)
        self._store.put_packed(spec["key"], done.packed)
        return Ended(spec, done.packed.record["row"], done.seconds)

    async def _ask_states(self, members: Sequence[str]) -> None:
        """Ask workers how far they are; in the client's thread."""
        told: Mapping[str, Mapping[str, worker.State]] = {}
        try:
            told = await self._client.run(
                worker.states, self._sweep, workers=members, on_error="ignore"
            )
        except (OSError, RuntimeError, ValueError):
            return  # Whoever is gone is seen elsewhere.
        finally:
            self._asked = time.monotonic()
        out = {spec["key"]: spec for sent in list(self._sent.values()) for spec in sent.specs}
        self._active = {
            key: ActiveRun(kind_of(out[key]), *state)
            for states in told.values()
            for key, state in states.items()
            if key in out
        }

    def _run(
        self, function: Callable[..., Any], *arguments: Any, on: Iterable[str]
    ) -> Mapping[str, Any]:
        """Call a function on workers: what each returned or raised."""
        workers = list(on)
        if not workers:
            return {}
        found: Mapping[str, Any] = self._ask(
            lambda: self._client.run(function, *arguments, workers=workers, on_error="return")
        )
        return found

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except (OSError, RuntimeError, ValueError) as error:
            raise ClusterError(errno.EIO, "the scheduler is gone", self._address) from error


def _version_text(version: object) -> str:
    """What to say of a worker that has another version, or an error instead."""
    return f"Weft {version}" if isinstance(version, str) else f"no Weft ({_one_line(version)})"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _one_line(error: object) -> str:
    return " ".join(str(error).split()) or type(error).__name__
