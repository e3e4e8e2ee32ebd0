"""The experiments of `weft demo`: part of the wheel, or where the sources have them."""

from __future__ import annotations

from pathlib import Path

from weft.errors import ExperimentError

SOURCES = Path(__file__).parents[3] / "experiments/ethereal-2024"
PACKED = Path(__file__).parents[1] / "experiments/ethereal-2024"
"""Where wheels have them (packaging/wheels.py)."""

# The long all-to-all of 1 MB takes minutes: `make ethereal-2024` has it.
_FIGURES = ("fig2", "fig3", "fig4-all-to-all-short", "fig4-ring-short", "fig4-ring-long")


def files() -> list[Path]:
    """The experiments, in the order of the report.

    Raises:
        ExperimentError: Neither the package nor the sources have them.
    """
    folder = PACKED if PACKED.exists() else SOURCES
    if not folder.exists():
        raise ExperimentError(
            "demo: its experiments are not in this installation; install the wheel of weft-fabric"
        )
    return [folder / f"{figure}.toml" for figure in _FIGURES]
