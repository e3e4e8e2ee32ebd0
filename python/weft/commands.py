"""What the commands do: from arguments to results on the screen and on disk."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft import api, inputs, progress, store, study, summary, sweep
from weft._types import CatalogueEntry
from weft.errors import DiskError, ExperimentError
from weft.inputs import Experiment, Overrides

# A pipe has no width; whoever reads it can scroll.
_WIDE = 200


@dataclass(frozen=True)
class Options:
    """What `run` and `compare` are told about carrying out and showing."""

    output: Path | None
    jobs: int | None
    threads: int | None
    json: bool
    report: bool
    quiet: bool
    summary: bool = False
    timeline: bool = False

    def over(self, changes: Overrides) -> Overrides:
        """The changes to an experiment that these options ask for."""
        return [*changes, ("probe.timeline", "true")] if self.timeline else changes


_NOT_IN_REPORTS = {"--jobs": 2, "--threads": 2, "--quiet": 1, "-q": 1}
"""Options on which no result depends, and how many words they take."""


def run(
    files: Sequence[str],
    options: Options,
    seeds: int | None,
    changes: Overrides,
    fabric: str | None,
    schemes: Sequence[str] | None,
    quick: bool = False,
    of_trace: Overrides = (),
) -> int:
    """`weft run`; returns the exit status."""
    changes = options.over([*changes, *_in_workload(of_trace)])
    experiments = []
    for path in (path for file in files for path in inputs.files_of(Path(file))):
        key = inputs.workload_key(path)
        if of_trace and key != "trace":
            option = "--" + of_trace[0][0].replace("_", "-")
            raise ExperimentError(
                f"{path}: {option} is for traces; --set changes keys of experiments"
            )
        if key:
            experiment, chosen = inputs.from_workload(path, fabric, schemes, changes, seeds)
            if chosen and not options.quiet:
                _note(chosen)
        elif fabric or schemes:
            key = "--fabric" if fabric else "--schemes"
            raise ExperimentError(
                f"{path}: {key} is for workloads (.cm, .csv, traces); an experiment file has a "
                "table for it, which --set can change"
            )
        else:
            experiment = inputs.from_file(path, changes, seeds, quick)
        experiments.append(experiment)
    return _carry_out(inputs.distinct_names(experiments), options)


def compare(
    fabric: str,
    workload: str,
    schemes: Sequence[str],
    transport: str | None,
    options: Options,
    seeds: int | None,
    changes: Overrides,
    of_trace: Overrides = (),
) -> int:
    """`weft compare`; returns the exit status."""
    experiment: dict[str, Any] = {
        "title": f"{workload} on {fabric}",
        "fabric": inputs.table_of("fabric", fabric),
        "workload": inputs.table_of("workload", workload),
        "sweep": {"balance.scheme": list(schemes)},
    }
    told = [(f"transport.{key}", value) for key, value in _transport(transport)]
    told += options.over([*changes, *_in_workload(of_trace)])
    checked = inputs.from_dict(experiment, "command line", told, seeds)
    return _carry_out([replace(checked, name="compare")], options)


def capacity(files: Sequence[str], seed: int | None, changes: Overrides, as_json: bool) -> int:
    """`weft capacity`; returns the exit status."""
    from weft import verdicts

    paths = [path for file in files for path in inputs.files_of(Path(file))]
    bare = next((path for path in paths if inputs.workload_key(path)), None)
    if bare is not None:
        raise ExperimentError(
            f"{bare}: is traffic without a fabric; write an experiment with it as "
            f"workload.{inputs.workload_key(bare)}"
        )
    experiments = inputs.distinct_names([inputs.from_file(path, changes) for path in paths])
    answers = [verdicts.of(experiment, seed) for experiment in experiments]
    if as_json:
        print(json.dumps([row for rows in answers for row in rows], indent=1))
        return 0
    tables = zip(experiments, answers, strict=True)
    print("\n\n".join(verdicts.text(rows, one.title, _width()) for one, rows in tables))
    return 0


def tune(
    fabric: str,
    slowdown: float | None,
    queue_pairs: int | None,
    accelerators: int | None,
    changes: Overrides,
    as_json: bool,
) -> int:
    """`weft tune`; returns the exit status."""
    from weft import plan

    found = plan.tune(
        fabric,
        slowdown=slowdown,
        queue_pairs=queue_pairs,
        accelerators=accelerators,
        changes=changes,
    )
    print(json.dumps(found, indent=1) if as_json else plan.text(found))
    return 0


def plan_job(
    cluster: Path,
    job: Path | None,
    scheme: str,
    seed: int,
    changes: Overrides,
    output: Path | None,
    optimum: bool,
    host: str | None,
    as_json: bool,
) -> int:
    """`weft plan`; returns the exit status."""
    from weft.plans import command

    if job is None:
        raise ExperimentError("--job: is missing; name the file of the job (it has a [workload])")
    plan = command.make(cluster, job, scheme, seed, changes, output)
    if as_json:
        print(json.dumps(plan, indent=1))
    else:
        print(command.text(plan, host, optimum))
        if output:
            written = command.written(output)
            print(f"\n{output}/{', '.join(written)}")
    return 0


def plan_verify(path: Path, as_json: bool) -> int:
    """`weft plan --verify`; returns the exit status."""
    from weft.plans import command

    print(command.verified(path, as_json))
    return 0


def trace_info(
    path: Path, options: Overrides, ranks: int | None, fabric: str | None, as_json: bool
) -> int:
    """`weft trace info`; returns the exit status."""
    from weft import traces

    found = traces.info(path, options, ranks)
    if fabric is not None and not found["problems"]:
        found["work"] = traces.work(path, options, ranks, fabric)
    print(json.dumps(found, indent=1) if as_json else traces.text(found))
    return 1 if found["problems"] else 0


def topology_info(path: Path, as_json: bool, placement: bool) -> int:
    """`weft topology info`; returns the exit status."""
    from weft import topology

    found = topology.info(path)
    if placement:
        print("\n".join(map(str, topology.placement(found))))
    else:
        print(json.dumps(found, indent=1) if as_json else topology.text(found))
    return 1 if found["problems"] else 0


def catalogue(kind: str, as_json: bool) -> int:
    """`weft list`."""
    entries: list[CatalogueEntry] = getattr(api, kind)()
    if as_json:
        print(json.dumps(entries, indent=1))
        return 0
    from weft import listing

    print(listing.text(entries, shutil.get_terminal_size().columns))
    return 0


def report(directory: Path, quiet: bool) -> int:
    """`weft report`."""
    _report(directory, quiet)
    return 0


def overrides(texts: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs in `--set key=value` arguments."""
    return [_pair("--set", text) for text in texts]


def names(option: str, text: str | None) -> list[str] | None:
    """`a,b,c` as a list of different names."""
    parts = _split(text)
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice is not None:
        raise ExperimentError(f"{option} {text}: {twice} is there twice; name each once")
    return parts or None


def _in_workload(options: Overrides) -> Overrides:
    return [(f"workload.{key}", value) for key, value in options]


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _pair(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ExperimentError(f"{option} {text}: no key and value; write {option} key=value")
    return key.strip(), value.strip()


def _transport(text: str | None) -> list[tuple[str, str]]:
    return [_pair("--transport", part) for part in _split(text)]


def _carry_out(experiments: Sequence[Experiment], options: Options) -> int:
    told = {warning for experiment in experiments for warning in experiment.warnings}
    for warning in dict.fromkeys(w for experiment in experiments for w in experiment.warnings):
        _note(f"warning: {warning}")
    whole = study.of(experiments, _command())
    kept = _store(whole, options)
    try:
        return _results(whole, kept, options, told)
    except DiskError as error:
        raise error.adding(_finished(whole, kept)) from error
    except BaseException as error:
        if options.output is not None:
            error.add_note(_finished(whole, kept))
        raise


def _finished(whole: study.Study, kept: store.Store) -> str:
    wanted = {spec["key"] for spec in whole.runs()}
    done = sum(kept.has(key) for key in wanted)
    return f"{done} of {len(wanted)} runs had finished and are kept"


def _store(whole: study.Study, options: Options) -> store.Store:
    if options.output is None:
        return store.RowStore()
    kept = store.DirectoryStore(options.output)
    flaws = kept.discard_damaged(spec["key"] for spec in whole.runs())
    if flaws:
        many = "a damaged run" if len(flaws) == 1 else f"{len(flaws)} damaged runs"
        what = ", ".join(dict.fromkeys(flaws))
        _note(f"warning: {options.output / 'runs'} held {many} ({what}); simulated again")
    return kept


def _results(whole: study.Study, kept: store.Store, options: Options, told: Collection[str]) -> int:
    watcher = progress.watcher(options.quiet)
    crew = sweep.Crew(options.jobs, options.threads)
    whole, tally = whole.carry_out(kept, crew, watcher)
    for stall in tally.stalls:
        _note(f"stalled: {stall}")
    listed = whole.listed(kept)
    _warn_of_runs(listed, kept, told)
    if not tally.interrupted and options.output and listed:
        _save(whole, listed, kept, options.output, options.quiet)
    if options.json:
        _print_json(listed, kept)
    elif options.summary:
        print(summary.text(_summaries(whole, kept)))
    elif listed:
        _print_tables(whole, kept)
    if tally.interrupted:
        _interrupted(tally, options.output)
        return 130
    if options.output and listed and options.timeline:
        _timelines(options.output, options.quiet)
    if options.output and listed and options.report:
        _report(options.output, options.quiet)
    return 1 if tally.stalls else 0


def _save(
    whole: study.Study, listed: store.Listed, kept: store.Store, output: Path, quiet: bool
) -> None:
    """The tables in the output directory, which hold one study at a time."""
    others = whole.replaced(output)
    whole.save(output)
    store.assemble(output, listed, kept)
    summary.save(_summaries(whole, kept), output)
    if others and not quiet:
        _note(
            f"{output} held the tables of {', '.join(others)}: replaced "
            f"(finished runs stay in {output / 'runs'})"
        )


def _warn_of_runs(listed: store.Listed, kept: store.Store, told: Collection[str]) -> None:
    """What the runs found odd, each thing once, and nothing that was `told` before."""
    found: dict[str, int] = {}
    for _, spec in listed:
        for warning in kept.record(spec["key"])["warnings"]:
            if warning not in told:
                found[warning] = found.get(warning, 0) + 1
    for warning, count in found.items():
        _note(f"warning: {warning}" + (f" ({count} runs)" if count > 1 else ""))


def _print_json(listed: store.Listed, kept: store.Store) -> None:
    rows = []
    for experiment, spec in listed:
        record = kept.record(spec["key"])
        swept = {key: value for key, value in spec["swept"].items() if key not in record["row"]}
        rows.append({"experiment": experiment, **record["row"], **record["timing"], **swept})
    print(json.dumps(rows, indent=1))


def _print_tables(whole: study.Study, kept: store.Store) -> None:
    from weft import beside, overview, tables, views

    width = _width()
    number = 0
    for experiment in whole.experiments:
        rows = whole.rows(experiment, kept)
        if not rows:
            continue
        view = views.of(experiment, rows)
        print("\n" * (number > 0), end="")
        print(tables.text(overview.table_of(view, len(experiment.runs)), experiment.title, width))
        compared = beside.of(view)
        if compared is not None:
            print("\n" + beside.text(compared, width))
        number += 1


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE


def _summaries(whole: study.Study, kept: store.Store) -> list[dict[str, Any]]:
    from weft import views

    found = []
    for experiment in whole.experiments:
        rows = whole.rows(experiment, kept)
        if rows:
            found.append(summary.of(experiment, views.of(experiment, rows), len(rows)))
    return found


def _report(directory: Path, quiet: bool) -> None:
    from weft import report as reports

    results = study.load(directory)
    if not quiet:
        _note("drawing plots and the report")
    written = reports.make(results, directory)
    if not quiet:
        _note(f"{written[-1]} and {len(written) - 1} plots in {directory / 'plots'}")


def _timelines(directory: Path, quiet: bool) -> None:
    from weft import timeline

    written = timeline.write(study.load(directory), directory)
    if not quiet:
        _note(f"{len(written)} timelines in {directory / 'timeline'}; open them in ui.perfetto.dev")


def _command() -> str:
    """The command line at hand, for whoever reads the report."""
    words = ["weft"]
    given = iter(sys.argv[1:])
    for word in given:
        option, equals, _ = word.partition("=")
        if option not in _NOT_IN_REPORTS:
            words.append(word)
        elif not equals and _NOT_IN_REPORTS[option] == 2:
            next(given, None)
    return shlex.join(words)


def _interrupted(tally: sweep.Tally, output: Path | None) -> None:
    finished = f"interrupted: {tally.done} of {tally.total} runs had finished"
    if output is None:
        _note(f"{finished}; with -o DIR they would have been kept")
        return
    rest = tally.total - tally.done
    what = f"to run the other {rest}" if rest else "for tables and plots"
    again = shlex.join(["weft", *sys.argv[1:]])
    _note(f"{finished} and are kept in {output / 'runs'}; {what}: {again}")


def _note(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
