"""All keys of an experiment: what each means, what it may be, and what holds without it.

Nothing is written here: the native core lists the keys that its readers ask for, this package those
of the sections that it reads itself (`shown_keys`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from weft import api
from weft._types import CatalogueEntry, CatalogueOption
from weft.study.fields import suggestion

_LISTS = ("sections", "topologies", "workloads", "transports", "schemes")
_JOBS = ("workload", "jobs")
_OF_A_JOB = ("collective", "trace", "model")
"""Keys that say what one of several jobs does."""
_CHOSEN_BY_A_JOB = {f"workload.{key}" for key in (*_OF_A_JOB, "algorithm")}


@dataclass(frozen=True)
class Use:
    """What a key means where one thing is chosen, or several of which it means the same."""

    meaning: str
    kind: str
    """What it may be, with its range and its unit; empty where nothing says it."""
    words: tuple[str, ...]
    default: str
    under: tuple[tuple[str, str], ...] = ()
    """What chooses it: keys and their values; none if it is always there."""


@dataclass(frozen=True)
class Key:
    """A key of an experiment."""

    name: str
    """Dotted; `NAME` and `KEY` stand for a name of the user's."""
    uses: list[Use] = field(default_factory=list)

    @property
    def section(self) -> str:
        """All but its last part."""
        return self.name.rpartition(".")[0]


def all_keys() -> list[Key]:
    """All keys in the order of the lists, each once."""
    found: dict[str, dict[tuple[str, ...], list[tuple[str, str]]]] = {}
    words: dict[tuple[str, ...], tuple[str, ...]] = {}
    for entry, option in _options():
        default = option["default"] or '""'
        said = (option["meaning"], option["kind"], default, "\n".join(option["words"]))
        words[said] = tuple(option["words"])
        chosen = () if entry["key"] == "section" else ((entry["key"], entry["name"]),)
        found.setdefault(option["key"], {}).setdefault(said, []).extend(chosen)
    return [
        Key(
            name,
            [
                Use(said[0], said[1], words[said], said[2], tuple(dict.fromkeys(under)))
                for said, under in uses.items()
            ],
        )
        for name, uses in found.items()
    ]


def _options() -> Iterator[tuple[CatalogueEntry, CatalogueOption]]:
    for kind in _LISTS:
        entries: list[CatalogueEntry] = getattr(api, kind)()
        for entry in entries:
            yield from ((entry, option) for option in entry["options"])


def find(text: str, keys: Sequence[Key]) -> list[Key]:
    """The keys that a text means: one by its name with those in it, or all with such an end.

    Of a key that is swept, `sweep.X`, what sweeps it and itself.
    """
    wanted = text.strip("[]").split(".")
    if tuple(wanted[:2]) == _JOBS and len(wanted) > 3:
        wanted = ["workload", *wanted[3:]]
    elif tuple(wanted[:2]) == _JOBS:
        of_jobs = ".".join(_JOBS)
        itself = [key for key in keys if key.name == of_jobs and len(wanted) == 2]
        return [*itself, *_of_each_job(keys)]
    exact = [key for key in keys if _matches(key.name.split("."), wanted)]
    inside = [key for key in keys if _matches(key.section.split("."), wanted)]
    if exact or inside:
        return [*exact, *inside]
    below = [key for key in keys if _matches(key.name.split(".")[: len(wanted)], wanted)]
    ending = [key for key in keys if key.name.split(".")[-len(wanted) :] == wanted]
    return below or ending or _under_any(text, keys)


def _of_each_job(keys: Sequence[Key]) -> list[Key]:
    """What a table of `workload.jobs` has: of `[workload]` what is not for all jobs together."""
    found = []
    for key in keys:
        section, _, last = key.name.rpartition(".")
        uses = [use for use in key.uses if any(name in _CHOSEN_BY_A_JOB for name, _ in use.under)]
        if last in _OF_A_JOB:
            one_of = f"required: one of {', '.join(_OF_A_JOB)}"
            uses = [replace(use, default=one_of) for use in key.uses]
        for_all = any(name == ".".join(_JOBS) for use in uses for name, _ in use.under)
        if section == "workload" and uses and not for_all:
            found.append(replace(key, name=f"workload.jobs.NAME.{last}", uses=uses))
    return found


def _under_any(text: str, keys: Sequence[Key]) -> list[Key]:
    """Of `sweep.X`, where any key may stand: `sweep.KEY`, and what X means."""
    section, _, rest = text.strip("[]").partition(".")
    any_key = [key for key in keys if key.name == f"{section}.KEY"]
    meant = find(rest.strip('"'), keys) if any_key and rest else []
    return [*any_key, *meant] if meant else []


def near(text: str, keys: Sequence[Key]) -> str:
    """What somebody may have meant by a text that is no key."""
    names = [key.name for key in keys]
    section, _, last = text.rpartition(".")
    longer = [name for name in names if section and name.startswith(f"{text}_")]
    found = longer or [name for name in names if name.rpartition(".")[2] == last]
    if found:
        return f"did you mean {' or '.join(found[:3])}?"
    likely = suggestion(text, names)
    return likely if likely.startswith("did") else "weft explain lists all sections"


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a dotted name is meant by a pattern in which `NAME` stands for any one part."""
    return len(pattern) == len(parts) and all(
        one in (part, "NAME") for one, part in zip(pattern, parts, strict=True)
    )
