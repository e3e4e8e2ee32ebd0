"""The plan file: JSON, one object. `docs/plans.md` describes every key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weft.errors import ExperimentError, replace_text, writing

FORMAT = "weft-plan"
VERSION = 1
NAME = "plan.json"
_KEYS = ("title", "scheme", "seed", "mtu", "cluster", "experiment", "links", "steps")

Plan = dict[str, Any]


def write(plan: Plan, path: Path) -> None:
    """Write a plan, whole or not at all."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps(plan, separators=(",", ":")) + "\n")


def read(path: Path, keys: tuple[str, ...] = _KEYS) -> Plan:
    """Read a plan file, or the one in a directory that `weft plan -o` has written.

    What it has under `keys` is all that its reader needs.

    Raises:
        ExperimentError: It is no plan file, or one of another version.
    """
    path = path / NAME if path.is_dir() else path
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}; name a file of weft plan -o") from None
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise ExperimentError(
            f"{path}: not JSON (line {line}); name a plan.json of weft plan"
        ) from None
    if not isinstance(plan, dict) or plan.get("format") != FORMAT:
        raise ExperimentError(f"{path}: format: not a plan of weft; name what weft plan wrote")
    if plan.get("version") != VERSION:
        raise ExperimentError(
            f"{path}: version: {plan.get('version')!r} is not known; make the plan again"
        )
    missing = [key for key in keys if key not in plan]
    if missing:
        raise ExperimentError(f"{path}: {missing[0]}: is missing; make the plan again")
    return plan
