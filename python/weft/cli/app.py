"""The application: all commands, the options of `weft` itself, and `main`."""

from __future__ import annotations

import atexit
import copy
import gc
import io
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer
from typer.models import CommandInfo

from weft import internal_errors
from weft.cli import completion, exit_status, options, testbed, topology, trace
from weft.cli.bench_net import bench_net
from weft.cli.capacity import capacity
from weft.cli.compare import compare
from weft.cli.demo import demo
from weft.cli.discover import discover
from weft.cli.doctor import doctor
from weft.cli.explain import explain
from weft.cli.list import list_
from weft.cli.merge import merge
from weft.cli.plan import plan
from weft.cli.report import report
from weft.cli.run import run
from weft.cli.switch_config import switch_config
from weft.cli.top import top
from weft.cli.tune import tune

app = typer.Typer(
    name="weft",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=options.WithCheck)(run)
app.command(cls=options.WithCheck)(compare)
app.command()(merge)
app.command()(capacity)
app.command()(tune)
app.command()(plan)
app.command("list")(list_)
app.command()(demo)
app.command()(discover)
app.command()(doctor)
app.command()(explain)
app.command()(report)
app.command("switch-config")(switch_config)
app.add_typer(trace.app, name="trace")
app.add_typer(topology.app, name="topology")
app.command("bench-net")(bench_net)
app.command()(top)
app.add_typer(testbed.app, name="testbed")


def _version(wanted: bool) -> None:
    if wanted:
        from weft import version

        typer.echo(version.text())
        raise typer.Exit


@app.callback()
def weft(
    _shown: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Print version, commit, and what is in this installation.",
        ),
    ] = False,
    _debug: Annotated[
        bool,
        typer.Option(
            internal_errors.OPTION,
            help="Show the traceback of an internal error of Weft, which ends a command with exit "
            "status 70. May also follow the command.",
        ),
    ] = False,
) -> None:
    """Balance the traffic of AI training jobs over a data-centre fabric.

    Weft simulates a job packet by packet under different load balancers, and shows how long it
    takes, how far that is from optimal, and where packets queued.

    \b
    Start here:
      weft list
      weft compare --fabric leaf-spine:leaves=4,spines=4,hosts=4,link=100Gbps,delay=500ns \\
                   --workload all-to-all:size=64KB --schemes ecmp,spray,ethereal --seeds 3
      weft run experiment.toml -o out/     (then open out/report.html)
    """
    if not {"-h", "--help"} & set(sys.argv):
        internal_errors.HANDLER.install()


def main() -> None:
    """Run the command line and exit with its status."""
    # No command multiplies large matrices; threads for that would only wait, and take a core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Little of what a command makes refers to itself, and all of it ends with the command: to look
    # for that often, and at exit, takes a tenth of a short one.
    gc.set_threshold(100_000, 20, 50)
    atexit.register(gc.freeze)
    _make_printable()
    words = sys.argv[1:] = internal_errors.HANDLER.take_option(sys.argv[1:])
    if set(completion.OPTIONS) & set(words):
        completion.use_own_script()
    try:
        found = internal_errors.HANDLER.status(status(words))
    except KeyboardInterrupt:
        # A second one, while the first is answered.
        found = 130
    sys.exit(found)


def _make_printable() -> None:
    """Let output go nowhere that is closed, and print what its encoding does not have as `?`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and (
            stream.errors == "strict"
            # Of the C locale; in UTF-8 it prints names of files as they are.
            or (stream.errors == "surrogateescape" and stream.encoding != "utf-8")
        ):
            stream.reconfigure(errors="replace")


def _with(command: str) -> typer.Typer:
    """The application with this command alone; all of it where there is no such command.

    Typer looks at each function of the commands that it has: half of the time to start.
    """
    narrowed = copy.copy(app)
    narrowed.registered_commands = [
        info for info in app.registered_commands if _name(info) == command
    ]
    narrowed.registered_groups = [info for info in app.registered_groups if info.name == command]
    return narrowed if narrowed.registered_commands or narrowed.registered_groups else app


def _name(info: CommandInfo) -> str | None:
    return info.name or (info.callback and typer.main.get_command_name(info.callback.__name__))


def _check_output(words: Sequence[str]) -> None:
    """Refuse an output without a name (`-o "$UNSET"`), which would be this directory."""
    own = words[: words.index("--")] if "--" in words else words
    if "--output=" in own or any(
        word in ("-o", "--output") and not name for word, name in pairwise(own)
    ):
        from weft import ExperimentError

        raise ExperimentError("-o: has no name; give one, or . for this directory")


def _check_text(words: Sequence[str]) -> None:
    """Refuse bytes that are no text: tables and reports, which name files, could not hold them."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            from weft import ExperimentError

            shown = os.fsencode(word).decode(errors="backslashreplace")
            raise ExperimentError(
                f"{shown}: is not UTF-8; rename the file, or correct the value"
            ) from None


def status(arguments: list[str]) -> int:
    """Run a command; its exit status. An error takes one line on standard error."""
    try:
        _check_text(arguments)
        _check_output(arguments)
        narrowed = _with(arguments[0]) if arguments else app
        found = int(narrowed(arguments, prog_name="weft", standalone_mode=False) or 0)
        # Not at exit, where trouble with it would no longer be ours to tell.
        sys.stdout.flush()
        return found
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            # Typer's own answer to it is 1.
            return exit_status.of(ended.__context__)
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the native core is no Exception.
        return exit_status.of(error)
