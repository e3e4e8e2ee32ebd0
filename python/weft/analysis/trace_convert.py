"""Workloads in formats of other tools: `weft trace convert`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft import _native
from weft.study.inputs import Overrides


@dataclass(frozen=True)
class Converted:
    """What was written."""

    files: list[Path]
    remarks: list[tuple[str, int]]
    """What was left out or written otherwise, with how often."""


def convert(
    workload: str,
    output: Path,
    to: str | None = None,
    options: Overrides = (),
    ranks: int | None = None,
    *,
    unfold: bool = False,
    no_compute: bool = False,
) -> Converted:
    """Write `workload`, as `weft compare --workload` takes it, to `output`.

    The format is `to`, or what the end of `output` tells. A format with several files writes them
    beside each other: `NAME.0.et`, `NAME.json`. `options` are keys of `[workload]`.
    """
    told = to if to is not None else output.name
    files, remarks = _native.trace_convert(
        workload, list(options), told, ranks=ranks, unfold=unfold, no_compute=no_compute
    )
    written = []
    output.parent.mkdir(parents=True, exist_ok=True)
    for end, content in files:
        path = output if len(files) == 1 else output.with_name(_stem(output.name) + end)
        path.write_bytes(content)
        written.append(path)
    return Converted(written, remarks)


def _stem(name: str) -> str:
    """What stands before `.et`, or before `.0.et`."""
    stem = name.removesuffix(".json").removesuffix(".et")
    front, dot, number = stem.rpartition(".")
    return front if dot and number.isdigit() else stem
