"""Looks at sources again and again, or once, and shows what they move."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from weft.errors import ExperimentError
from weft.top import show
from weft.top.rates import Rates, View
from weft.top.sources import File, Missing, Reading, Source, read

if TYPE_CHECKING:
    from rich.live import Live

_WRITTEN_S = 1.25
"""Files are written once a second: within so long there is a new one."""


def _look(sources: Sequence[Source], rates: Rates) -> tuple[View, list[Missing]]:
    answers = list(read(sources))
    missing = [one for one in answers if isinstance(one, Missing)]
    return rates.view(one for one in answers if isinstance(one, Reading)), missing


def once(sources: Sequence[Source], interval_s: float, as_json: bool) -> int:
    """Show what is sent within one interval.

    Raises:
        ExperimentError: A source gives nothing; what others give has been shown.
    """
    rates = Rates()
    view, missing = _look(sources, rates)
    if view.processes:
        files = any(isinstance(source, File) for source in sources)
        time.sleep(max(interval_s, _WRITTEN_S) if files else interval_s)
        view, missing = _look(sources, rates)
    if view.processes:
        if as_json:
            print(json.dumps(show.as_dict(view, missing, time.time()), indent=1))
        else:
            print("\n".join(show.lines(view, [], _clock())))
    if missing:
        raise ExperimentError("; ".join(map(str, missing)))
    return 0


def again(sources: Sequence[Source], interval_s: float, as_json: bool) -> int:
    """Show it at every interval until somebody interrupts."""
    screen = None if as_json or not sys.stdout.isatty() else _screen()
    shown: AbstractContextManager[object] = screen if screen is not None else nullcontext()
    last: list[str] = []
    try:
        with shown:
            _repeat(sources, interval_s, as_json, screen, last.append)
    except KeyboardInterrupt:
        # A screen of its own is gone with its end.
        if screen is not None and last:
            print(last[-1])
    return 0


def _repeat(
    sources: Sequence[Source],
    interval_s: float,
    as_json: bool,
    screen: Live | None,
    keep: Callable[[str], None],
) -> None:
    rates, told = Rates(), set[Missing]()
    while True:
        began = time.monotonic()
        view, missing = _look(sources, rates)
        if screen is not None:
            from rich.text import Text

            room = screen.console.size.height
            text = "\n".join(show.lines(view, missing, _clock(), room))
            keep(text)
            screen.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)
        else:
            for one in set(missing) - told:
                print(f"{one}; trying again", file=sys.stderr, flush=True)
            told = set(missing)
            if as_json:
                print(json.dumps(show.as_dict(view, missing, time.time())), flush=True)
            elif view.processes:
                print("\n".join([*show.lines(view, [], _clock()), ""]), flush=True)
        time.sleep(max(0.0, interval_s - (time.monotonic() - began)))


def _screen() -> Live:
    from rich.live import Live

    return Live(screen=True, auto_refresh=False)


def _clock() -> str:
    return time.strftime("%H:%M:%S")
