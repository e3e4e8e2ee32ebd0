"""Running experiments for a command: results on the screen and on disk; `run` and `compare` use it.

`weft.study` simulates and stores, `weft.report` makes tables and reports.
"""

from __future__ import annotations

import json
import shlex
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._types import RunSpec, Verdict
from weft.cli import report, terminal
from weft.cli.terminal import note
from weft.errors import ExperimentError, OutsideError, alone
from weft.report import summary
from weft.study import check as checks
from weft.study import progress, store, study, sweep
from weft.study.executor import Executor, Parallelism
from weft.study.inputs import Experiment, Overrides

if TYPE_CHECKING:
    from weft.study.cluster.places import Place


@dataclass(frozen=True)
class Options:
    """The options of `run` and `compare` about running simulations and showing results."""

    output: Path | None
    jobs: int | None
    threads: int | None
    json: bool
    report: bool
    quiet: bool
    summary: bool = False
    timeline: bool = False
    fidelities: tuple[str, ...] = ()
    check: int | None = None
    """How many runs to do over packet by packet; None for no check."""
    on: Place | None = None
    """Where to simulate; None for here."""
    shard: sweep.Shard | None = None
    verdict: bool = False
    """Whether results end with what they say: tables with two sentences, rows with a field."""
    plots: tuple[str, ...] = ()
    """What the figures of the report are drawn as, beside it."""

    @property
    def has_report(self) -> bool:
        """Whether there will be a report: that of a shard would mislead."""
        return self.report and self.shard is None

    def extend(self, changes: Overrides) -> Overrides:
        """The changes to an experiment that these options ask for."""
        told = [*changes]
        if self.timeline:
            told.append(("probe.timeline", "true"))
        if len(self.fidelities) == 1:
            told.append(("run.fidelity", self.fidelities[0]))
        elif self.fidelities:
            told.append(("sweep.run.fidelity", json.dumps(self.fidelities)))
        return told


_PROSE = 100
"""Columns of a line of prose, at most."""
_NOT_IN_REPORTS = {"--plots": 2, "--jobs": 2, "--threads": 2, "--on": 2, "--quiet": 1, "-q": 1}
"""Options on which no result depends, and how many words they take."""


def simulate(experiments: Sequence[Experiment], options: Options) -> int:
    """Simulate what is missing, and show and write the results; returns the exit status."""
    if options.timeline:
        _check_timelines(experiments)
    shown = {warning for experiment in experiments for warning in experiment.warnings}
    for warning in dict.fromkeys(w for experiment in experiments for w in experiment.warnings):
        note(f"warning: {warning}")
    whole = study.of(experiments, _command())
    kept = _store(whole, options)
    if options.output is not None:
        with alone(options.output):
            if not (options.output / store.RUNS).exists():
                # Should it not end well: what began here, for who wants to go on.
                whole.save(options.output)
    try:
        return _results(whole, kept, options, shown)
    except OutsideError as error:
        if options.output is None:
            raise
        raise error.adding(_finished(whole, kept)) from error
    except BaseException as error:
        if options.output is not None:
            error.add_note(_finished(whole, kept))
        raise


def _check_timelines(experiments: Iterable[Experiment]) -> None:
    """Refuse what has no timeline, before it is simulated."""
    workloads = (spec["experiment"]["workload"] for one in experiments for spec in one.runs)
    # Messages of hosts: nobody computes, and nobody waits for others.
    if all({"pattern", "file"} & workload.keys() for workload in workloads):
        raise ExperimentError(
            "--timeline: no run has a timeline; run a job (a collective, trace or model)"
        )


def _finished(whole: study.Study, kept: store.Store) -> str:
    wanted = {spec["key"] for spec in whole.runs()}
    done = sum(kept.has(key) for key in wanted)
    return f"{done} of {len(wanted)} runs had finished and are kept"


def _store(whole: study.Study, options: Options) -> store.Store:
    if options.output is None:
        return store.RowStore()
    kept = store.DirectoryStore(options.output)
    _discard_damaged(kept, whole.runs(), options.output)
    return kept


def _discard_damaged(kept: store.DirectoryStore, runs: Iterable[RunSpec], directory: Path) -> None:
    flaws = kept.discard_damaged(spec["key"] for spec in runs)
    if flaws:
        many = "a damaged run" if len(flaws) == 1 else f"{len(flaws)} damaged runs"
        what = ", ".join(dict.fromkeys(flaws))
        note(f"warning: {directory / 'runs'} held {many} ({what}); simulated again")


@contextmanager
def _workers(options: Options) -> Iterator[Parallelism]:
    """What simulates; a cluster is looked for when there is something to do, and let go after."""
    place = options.on
    if place is None:
        yield Parallelism(options.jobs, options.threads)
        return
    with ExitStack() as stack:

        @cache
        def elsewhere() -> Executor:
            from weft.study.cluster import places

            return stack.enter_context(places.opened(place, options.jobs, options.threads))

        yield Parallelism(options.jobs, options.threads, elsewhere)


def _results(
    whole: study.Study, kept: store.Store, options: Options, shown: Collection[str]
) -> int:
    reporter = progress.reporter(options.quiet)
    output = terminal.Output()
    with _workers(options) as parallelism:
        whole, result = whole.simulate(kept, parallelism, reporter, options.shard)
        for stall in result.stalls:
            note(f"stalled: {stall}")
        for lost in result.lost:
            note(f"lost: {lost}")
        listed = _show_tables(whole, kept, options, output, shown, result.interrupted)
        found = None
        if options.check is not None and listed and not result.interrupted:
            found, result = _check(whole, listed, kept, options, result, parallelism)
    _show_rows(whole, listed, kept, options, output, found)
    if result.interrupted:
        _interrupted(result, options.output)
        return 130
    _draw(listed, options)
    output.close()
    return 1 if result.stalls or result.lost else 0


def show(whole: study.Study, kept: store.Store, options: Options) -> None:
    """Show and write the results that there are."""
    output = terminal.Output()
    listed = _show_tables(whole, kept, options, output, (), False)
    _show_rows(whole, listed, kept, options, output, None)
    _draw(listed, options)
    output.close()


def _show_tables(
    whole: study.Study,
    kept: store.Store,
    options: Options,
    output: terminal.Output,
    shown: Collection[str],
    interrupted: bool,
) -> store.Listed:
    """Write and print the tables; the runs that they are of."""
    listed = whole.listed(kept)
    _print_warnings(listed, kept, shown)
    if not interrupted and options.output and listed:
        with alone(options.output):
            _save(whole, listed, kept, options.output, options)
    elif whole.stalled and options.output:
        if (options.output / store.RUNS).exists():
            note(
                f"warning: {options.output} has tables of earlier runs only: none of these finished"
            )
        else:
            whole.save(options.output)
    if not (options.json or options.summary):
        with output.printing():
            _print_tables(whole, kept, options.verdict)
    return listed


def _show_rows(
    whole: study.Study,
    listed: store.Listed,
    kept: store.Store,
    options: Options,
    output: terminal.Output,
    found: checks.Check | None,
) -> None:
    """Print what was asked for in place of tables, and the check."""
    with output.printing():
        if options.json:
            verdicts = _verdicts(whole, kept) if options.verdict else {}
            _print_json(whole, listed, kept, found, verdicts)
        elif options.summary:
            print(summary.text(_summaries(whole, kept), found))
        if found is not None:
            _show_check(found, options)


def _draw(listed: store.Listed, options: Options) -> None:
    """Write timelines and the report, which says whether there are any, if they are wanted."""
    if options.output and listed and options.timeline:
        _timelines(options.output, options.quiet)
    if options.output and listed and options.has_report:
        report.make(options.output, options.quiet, options.plots)


def _check(
    whole: study.Study,
    listed: store.Listed,
    kept: store.Store,
    options: Options,
    result: sweep.SweepResult,
    parallelism: Parallelism,
) -> tuple[checks.Check | None, sweep.SweepResult]:
    """Do some runs over packet by packet, after a sweep that ended with `result`.

    What that found, None if it was interrupted; and how the command has ended.
    """
    drawn = checks.draw(listed, kept, options.check or 0)
    if isinstance(kept, store.DirectoryStore) and options.output is not None:
        _discard_damaged(kept, (one.packets for one in drawn), options.output)
    reporter = progress.reporter(options.quiet)
    done = checks.run(drawn, kept, parallelism, reporter, whole.name_of)
    failed = [*done.stalls, *done.lost]
    for failure in failed:
        note(f"not checked: {failure}")
    if done.interrupted:
        runs, ended = result.total + done.total, result.done + done.done
        return None, replace(done, total=runs, done=ended)
    found = checks.of(drawn, listed, kept)
    if options.output is not None:
        checks.save(found, options.output)
        summary.save(_summaries(whole, kept), options.output, found)
    return found, replace(result, stalls=[*result.stalls, *failed])


def _show_check(found: checks.Check, options: Options) -> None:
    """Print the table of a check; where JSON goes to standard output, its lines to the other."""
    from weft.report import check_table

    if not (options.json or options.summary):
        print("\n" + check_table.text(found, terminal.width()))
    elif not options.quiet:
        for line in check_table.below(found):
            note(line)


def _save(
    whole: study.Study, listed: store.Listed, kept: store.Store, output: Path, options: Options
) -> None:
    """Write the tables of the output directory, which holds one study at a time."""
    quiet = options.quiet
    others = whole.replaced(output)
    runs = output / store.RUNS
    before = runs.read_bytes() if runs.exists() else b""
    checks.save(None, output)
    whole.save(output)
    store.assemble(output, listed, kept)
    summary.save(_summaries(whole, kept), output)
    if not options.has_report and runs.read_bytes() != before and report.remove(output):
        note(f"removed the report of earlier results; for one of these: weft report {output}")
    if others and not quiet:
        note(
            f"{output} held the tables of {', '.join(others)}: replaced "
            f"(finished runs stay in {output / 'runs'})"
        )


def _print_warnings(listed: store.Listed, kept: store.Store, shown: Collection[str]) -> None:
    """Print the warnings of runs, each once, without those that were `shown` before."""
    found: dict[str, int] = {}
    for _, spec in listed:
        for warning in kept.record(spec["key"])["warnings"]:
            if warning not in shown:
                found[warning] = found.get(warning, 0) + 1
    for warning, count in found.items():
        note(f"warning: {warning}" + (f" ({count} runs)" if count > 1 else ""))


def _verdicts(whole: study.Study, kept: store.Store) -> dict[str, dict[str, Any]]:
    """The field `verdict` for the rows of each experiment."""
    return {one["name"]: {"verdict": one["verdict"]} for one in _summaries(whole, kept)}


def _print_json(
    whole: study.Study,
    listed: store.Listed,
    kept: store.Store,
    found: checks.Check | None,
    verdicts: Mapping[str, dict[str, Any]],
) -> None:
    checked = {} if found is None else {row["key"]: row for row in found.rows}
    rows = []
    for experiment, spec in listed:
        record = kept.record(spec["key"])
        swept = {key: value for key, value in spec["swept"].items() if key not in record["row"]}
        own = {"experiment": experiment, **record["row"], **record["timing"], **swept}
        own |= verdicts.get(experiment, {})
        if found is not None:
            own |= checks.fields(checked.get(spec["key"]))
        rows.append(own)
    for one in whole.experiments:
        for run in whole.stalled_runs(one):
            swept = run.pop("swept")
            own = {"experiment": one.name, **run, "cct_s": None, **swept}
            rows.append(own | verdicts.get(one.name, {}))
    print(json.dumps(rows, indent=1))


def _print_tables(whole: study.Study, kept: store.Store, verdicts: bool) -> None:
    from weft.report import console, verdict, views

    width = terminal.width()
    shown = views.of_study(whole, lambda one: whole.rows(one, kept))
    for number, (experiment, rows, view) in enumerate(shown):
        print("\n" * (number > 0), end="")
        print(console.text(experiment, rows, view, width))
        if verdicts:
            _print_verdict(verdict.of(view), width)


def _print_verdict(found: Verdict | None, width: int) -> None:
    if found is not None:
        print("\n" + textwrap.fill(found["text"], min(width, _PROSE), break_on_hyphens=False))


def _summaries(whole: study.Study, kept: store.Store) -> list[dict[str, Any]]:
    return summary.of_study(whole, lambda one: whole.rows(one, kept))


def _timelines(directory: Path, quiet: bool) -> None:
    from weft.report import timeline

    kept, folder = study.load(directory), directory / "timeline"
    written = timeline.write(kept.runs, kept.nodes, kept.messages, folder)
    if not quiet:
        note(f"{len(written)} timelines in {folder}; open them in ui.perfetto.dev")


def _command() -> str:
    """The command line, for readers of the report, without options on which no result depends."""
    words = ["weft"]
    given = iter(sys.argv[1:])
    for word in given:
        option, equals, _ = word.partition("=")
        if option not in _NOT_IN_REPORTS:
            words.append(word)
        elif not equals and _NOT_IN_REPORTS[option] == 2:
            next(given, None)
    return shlex.join(words)


def _interrupted(result: sweep.SweepResult, output: Path | None) -> None:
    finished = f"interrupted: {result.done} of {result.total} runs had finished"
    if output is None:
        note(f"{finished}; with -o DIR they would have been kept")
        return
    rest = result.total - result.done
    what = f"to run the other {rest}" if rest else "for tables and the report"
    again = shlex.join(["weft", *sys.argv[1:]])
    note(f"{finished} and are kept in {output / 'runs'}; {what}: {again}")
