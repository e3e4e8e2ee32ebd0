"""What the shell offers behind a Tab; looked up only then. And how bash asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from weft._types import CatalogueEntry

OPTIONS = ("--install-completion", "--show-completion")
_BASH = r"""
%(complete_func)s() {
    # bash also ends words at ":" and "=" (COMP_WORDBREAKS). What it takes for several words is one
    # here, and of what is offered it wants the part behind the last of them only.
    local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} word begun='' part end
    local -a words
    IFS=$' \t\n' read -r -d '' -a words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    word=${words[-1]}
    [[ $word == --*=* ]] && word=${word#*=}
    for end in : =; do
        part=${word%%"${word##*$end}"}
        [[ $COMP_WORDBREAKS == *$end* && ${#part} -gt ${#begun} ]] && begun=$part
    done
    COMPREPLY=( $( env COMP_WORDS="$line" COMP_CWORD=$(( ${#words[@]} - 1 )) \
                   %(autocomplete_var)s=complete_bash "$1" ) )
    COMPREPLY=( "${COMPREPLY[@]#"$begun"}" )
    # More is to follow.
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:=] ]] && compopt -o nospace
    return 0
}

complete -o default -F %(complete_func)s %(prog_name)s
"""
"""Typer's own asks for what stands behind the last colon, as if it were a word."""


def use_own_script() -> None:
    """Have Typer install and show `_BASH`; where it has no place for that, its own."""
    try:
        from typer import _completion_shared

        _completion_shared._completion_scripts["bash"] = _BASH
    except (ImportError, AttributeError):
        return


def kinds(incomplete: str) -> list[str]:
    """What `weft list` can list."""
    from weft.catalogue import KINDS

    return _starting(KINDS, incomplete)


def entries(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of the kind that was typed before."""
    from weft import api
    from weft.catalogue import KINDS
    from weft.cli.list import names

    kind = ctx.params.get("kind")
    if kind not in KINDS:
        return []
    found = getattr(api, kind)()
    return _starting(names(kind, found) if kind == "variables" else _names(found), incomplete)


def schemes(incomplete: str) -> list[str]:
    """Schemes, of a list with commas the last one."""
    from weft import api

    return _listed(_names(api.schemes()), incomplete)


def software(incomplete: str) -> list[str]:
    """Software that `--hosts-for` writes for, of a list with commas the last one."""
    from weft.software import SOFTWARE

    return _listed(SOFTWARE, incomplete)


def _listed(names: Iterable[str], incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    left = (name for name in names if name not in taken)
    return [f"{before}{comma}{name}" for name in _starting(left, last)]


def fabrics(incomplete: str) -> list[str]:
    """Topologies; behind the colon their own keys, and the words that these may be."""
    return _short(incomplete, "topologies", "fabric")


def workloads(incomplete: str) -> list[str]:
    """Patterns, collectives, models; behind the colon their keys, and words that these may be."""
    return _short(incomplete, "workloads", "workload")


def keys(incomplete: str) -> list[str]:
    """Keys of an experiment."""
    from weft.analysis import keys

    return _starting((key.name for key in keys.all_keys()), incomplete)


def _short(incomplete: str, kind: str, section: str) -> list[str]:
    from weft import api

    name, colon, rest = incomplete.partition(":")
    found = [entry for entry in getattr(api, kind)() if entry["name"] == name]
    if not colon:
        return [f"{one}:" for one in _starting(_names(getattr(api, kind)()), incomplete)]
    before, comma, last = rest.rpartition(",")
    own: dict[str, list[str]] = {}
    for option in (option for one in found for option in one["options"]):
        own.setdefault(option["key"].removeprefix(f"{section}."), []).extend(option["words"])
    key, equals, _ = last.partition("=")
    if equals:
        offered = [f"{key}={word}" for word in dict.fromkeys(own.get(key, ()))]
    else:
        taken = [pair.partition("=")[0] for pair in before.split(",")]
        offered = [f"{one}=" for one in own if one not in taken]
    return [f"{name}:{before}{comma}{one}" for one in _starting(offered, last)]


def _names(entries: Iterable[CatalogueEntry]) -> list[str]:
    """What may be typed: no patterns of file names, and numbered ones without their number."""
    names = dict.fromkeys(entry["name"] for entry in entries)
    return [name.removesuffix("N") for name in names if name[:1].isalnum()]


def _starting(words: Iterable[str], start: str) -> list[str]:
    return [word for word in words if word.startswith(start)]
