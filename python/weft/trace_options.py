"""What `weft run`, `compare` and `trace info` can be told of a trace, and the keys that say it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

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
        help="Chakra: what 1 of comm_size and tensor_size is, where a trace counts elements: 2 for "
        "bf16, 4 for fp32. Default: 1.",
    ),
]
Dependencies = Annotated[
    Literal["all", "data"] | None,
    typer.Option(
        help="Chakra: what nodes wait for. With data not for control dependencies, as in its "
        "feeder. Default: all.",
    ),
]
PeakTflops = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=1e6,
        metavar="X",
        help="Chakra: 10^12 operations a second. Computations take as long as their num_ops need "
        "(roofline), not as long as was recorded.",
    ),
]
MemoryGbS = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=1e6,
        metavar="X",
        help="Chakra: 10^9 bytes a second of an accelerator's memory. Computations take as long as "
        "their tensor_size needs, if that is longer.",
    ),
]


def told(
    process_groups: Path | None = None,
    bytes_per_element: int | None = None,
    dependencies: str | None = None,
    peak_tflops: float | None = None,
    memory_gb_s: float | None = None,
) -> list[tuple[str, str]]:
    """The keys of `[workload]` that were given, with values as `--set` takes them."""
    given = {
        "process_groups": None if process_groups is None else _quoted(process_groups),
        "bytes_per_element": bytes_per_element,
        "dependencies": dependencies,
        "peak_tflops": peak_tflops,
        "memory_gb_s": memory_gb_s,
    }
    return [(key, str(value)) for key, value in given.items() if value is not None]


def _quoted(path: Path) -> str:
    """As TOML, and from the root: the core looks for files beside the experiment."""
    text = str(path.absolute()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
