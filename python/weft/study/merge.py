"""Putting results of one study together that are in several directories: those of `--shard`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.errors import ExperimentError
from weft.study.store import DirectoryStore
from weft.study.study import Study, saved

_OUTPUT = re.compile(r"-(?P<flags>[a-np-zA-Z]*)o(?P<directory>.*)")
"""`-o` as a word: with flags before it, and perhaps its directory behind it."""


@dataclass(frozen=True)
class Merged:
    """What is in the directory now."""

    study: Study
    """With the command that simulates all of it."""
    store: DirectoryStore
    flaws: list[str]
    """What is wrong with runs that were left out, each with its directory."""

    def missing(self) -> int:
        """The number of runs that are in none of the directories, and have not stalled."""
        keys = {spec["key"] for spec in self.study.runs()}
        return sum(not self.store.has(key) for key in keys - self.study.stalled.keys())

    def stalls(self) -> list[str]:
        """The runs that have stalled, each with what waits for what."""
        runs = {spec["key"]: spec for spec in self.study.runs()}
        why = self.study.stalled
        return [
            f"{self.study.name_of(spec)}: {why[key]}" for key, spec in runs.items() if key in why
        ]


def merge(directories: Sequence[Path], output: Path) -> Merged:
    """Copy the finished runs of all directories into one; `output` may be one of them.

    Raises:
        ExperimentError: A directory has no results, those of another study, or of another version.
    """
    studies = [saved(directory) for directory in directories]
    for directory, other in zip(directories[1:], studies[1:], strict=True):
        _check_same(directories[0], studies[0], directory, other)
    store = DirectoryStore(output)
    keys = {spec["key"]: None for spec in studies[0].runs()}
    flaws = [
        f"{directory / 'runs'}: {flaw}"
        for directory in directories
        for key in keys
        if not store.has(key) and (flaw := store.adopt(key, directory)) is not None
    ]
    stalled = {key: why for one in studies for key, why in one.stalled.items()}
    whole = replace(
        studies[0],
        command=whole_command(studies[0].command, output),
        stalled={key: why for key, why in stalled.items() if not store.has(key)},
    )
    return Merged(whole.searched(store), store, flaws)


def whole_command(command: str, output: Path) -> str:
    """The command of a shard without `--shard`, and with another `-o`."""
    words = shlex.split(command)
    # Behind `--` there are files, whatever they are called.
    end = words.index("--") if "--" in words else len(words)
    return shlex.join([*_without_share(words[:end]), "-o", str(output), *words[end:]])


def _without_share(words: Sequence[str]) -> Iterable[str]:
    """The words without `--shard` and `-o`, however they are written: also `-oDIR`, `-qo DIR`."""
    left = iter(words)
    for word in left:
        name, equals, _ = word.partition("=")
        short = _OUTPUT.fullmatch(word)
        if name in ("--shard", "--output"):
            if not equals:
                next(left, None)
        elif short:
            if not short["directory"]:
                next(left, None)
            if short["flags"]:
                yield f"-{short['flags']}"
        else:
            yield word


def _check_same(first: Path, ours: Study, directory: Path, other: Study) -> None:
    """Refuse to mix what does not belong together."""
    if ours.code_version != other.code_version:
        raise ExperimentError(
            f"{directory}: made by Weft {other.code_version}, {first} by {ours.code_version}; "
            "make both with the same version"
        )
    for mine, its in zip(ours.experiments, other.experiments, strict=False):
        if (mine.text, mine.runs, mine.shown) != (its.text, its.runs, its.shown):
            raise ExperimentError(
                f"{directory}: {its.name} is not as in {first}; merge what one command with "
                "different --shard has made"
            )
    if len(ours.experiments) != len(other.experiments):
        raise ExperimentError(
            f"{directory}: {len(other.experiments)} experiments, {first} has "
            f"{len(ours.experiments)}; merge what one command with different --shard has made"
        )
