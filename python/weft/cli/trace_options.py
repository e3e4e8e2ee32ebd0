"""Options of `weft run`, `compare` and `trace info` about traces, and the keys that they set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from weft.study.inputs import Overrides

ProcessGroups = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Chakra: the JSON file of process groups. Default: NAME.json beside NAME.0.et.",
    ),
]
BytesPerElement = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=16,
        metavar="N",
        help="Chakra: bytes per unit of comm_size and tensor_size, if the trace counts elements: "
        "2 for bf16, 4 for fp32. Default: 1.",
    ),
]
Dependencies = Annotated[
    Literal["all", "data"] | None,
    typer.Option(
        help="Chakra: the dependencies that nodes wait for. data: no control dependencies, as "
        "in Chakra's feeder. Default: all.",
    ),
]
PeakTflops = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=1e6,
        metavar="X",
        help="Chakra: peak rate of an accelerator, in 10^12 operations per second. The time of a "
        "computation follows from its num_ops (roofline), not from the recorded time.",
    ),
]
MemoryGbS = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=1e6,
        metavar="X",
        help="Chakra: memory bandwidth of an accelerator, in 10^9 bytes per second. A computation "
        "takes as long as its tensor_size needs, if that is longer.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any key of the trace's format, e.g. --set workload.time_unit=1us. May be given "
        "several times.",
    ),
]


def workload_keys(
    process_groups: Path | None = None,
    bytes_per_element: int | None = None,
    dependencies: str | None = None,
    peak_tflops: float | None = None,
    memory_gb_s: float | None = None,
) -> list[tuple[str, str]]:
    """The keys of `[workload]` for the options that were given; values as `--set` takes them."""
    given = {
        "process_groups": None if process_groups is None else _quoted(process_groups),
        "bytes_per_element": bytes_per_element,
        "dependencies": dependencies,
        "peak_tflops": peak_tflops,
        "memory_gb_s": memory_gb_s,
    }
    return [(key, str(value)) for key, value in given.items() if value is not None]


def of_workload(changes: Overrides) -> Overrides:
    """The keys of `[workload]` that `--set` gives, without its name."""
    from weft import ExperimentError

    own = [(key.removeprefix("workload."), value) for key, value in changes]
    for (key, _), (short, _) in zip(changes, own, strict=True):
        if key == short:
            raise ExperimentError(f"--set: {key}: a trace has keys of workload alone; remove it")
    return own


def in_workload(of_trace: Overrides) -> Overrides:
    """The same as keys of an experiment."""
    return [(f"workload.{key}", value) for key, value in of_trace]


def _quoted(path: Path) -> str:
    """An absolute path as TOML: the core reads relative paths from the experiment's folder."""
    text = str(path.absolute()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
