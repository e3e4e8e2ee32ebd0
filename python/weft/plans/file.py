"""The plan file: JSON, one object. The core writes it; `docs/plans.md` describes every key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft import _native
from weft.errors import ExperimentError, replace_text, writing

NAME = "plan.json"
_KEYS = ("title", "scheme", "seed", "mtu", "cluster", "experiment", "links", "steps")

Plan = dict[str, Any]


def write(plan: Plan, path: Path) -> None:
    """Write a plan, whole or not at all."""
    with writing(path.parent):
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
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}; name a file of weft plan -o") from None
    except UnicodeDecodeError:
        raise ExperimentError(f"{path}: is not text; name a plan.json of weft plan") from None
    _native.check_plan(text, str(path), list(keys))
    return dict(json.loads(text))


@contextmanager
def as_written(source: str = "plan") -> Iterator[None]:
    """Let what a plan lacks, or has another kind of, be told as a mistake of the plan.

    A file may have been changed since `weft plan` wrote it, and readers look at what they need.
    Messages about "plan:" are about `source`.
    """
    try:
        yield
    except ExperimentError as error:
        raise ExperimentError(re.sub(r"^plan(?=:)", lambda _: source, str(error))) from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        is_key = isinstance(error, KeyError)
        what = f"{error} is missing" if is_key else " ".join(str(error).split())
        raise ExperimentError(
            f"{source}: not as weft plan writes it ({what}); make the plan again"
        ) from None
