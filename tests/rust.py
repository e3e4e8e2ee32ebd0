"""Runs the Rust tests of the workspace and lists the slowest.

As `cargo test`, which does not say what a test took. Arguments go to cargo (`-p weft-sim`); what
stands behind `--` goes to the tests.
"""

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

_CRATES = Path(__file__).parents[1] / "crates"
_IN_REAL_TIME = {"comm", "group", "net", "net-bench", "nccl-plugin"}
"""Crates with time-outs that pass: one of their programs runs at a time."""
_SHOWN = 10
_TESTS = re.compile(r"^\s*(#\[test\]|(\w+::)?trials! \{)", re.MULTILINE)
_TAKEN = re.compile(r"^test (.+?) \.\.\. (\w+)(?:.*?<([\d.]+)s>)?", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Builds, runs and reports; returns the exit status."""
    if forgotten := _forgotten():
        print("in no test program; all.rs beside it should name it:", *forgotten, file=sys.stderr)
        return 1
    if untried := _untried():
        print("tests that the [lib] of Cargo.toml leaves out:", *untried, file=sys.stderr)
        return 1
    at = arguments.index("--") if "--" in arguments else len(arguments)
    to_cargo, to_tests = arguments[:at] or ["--workspace"], arguments[at + 1 :]
    times: list[tuple[float, str]] = []
    passed = failed = 0
    for done in _runs(_built(to_cargo), to_tests):
        times += [(taken, f"{done.name} {test}") for test, _, taken in done.tests]
        passed += sum(outcome == "ok" for _, outcome, _ in done.tests)
        failed += done.bad
        print(done.told(), flush=True)
    # Of all crates, cargo would read those, too, whose comments have none.
    shown = [f"-pweft-{name}" for name in _with_examples()] if not arguments[:at] else to_cargo
    documented = subprocess.run(["cargo", "test", "--quiet", "--doc", *shown], check=False)
    print(f"the slowest {_SHOWN}:")
    for taken, test in sorted(times, reverse=True)[:_SHOWN]:
        print(f"  {taken:7.2f} s  {test}")
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or documented.returncode != 0)


@dataclass(frozen=True)
class _Program:
    """A test program, and the folder of its crate."""

    name: str
    folder: Path
    binary: Path


@dataclass(frozen=True)
class _Done:
    """What a program said: its tests with outcome and seconds, and how many failed."""

    name: str
    tests: list[tuple[str, str, float]]
    bad: int
    took: float
    output: str

    def told(self) -> str:
        """A line, and what is to be known of failures and slow random cases."""
        line = f"{self.name}: {len(self.tests)} tests, {self.took:.1f} s"
        said = [one for one in self.output.splitlines() if "to repeat it: WEFT_CASE=" in one]
        return "\n".join([f"{line}, FAILED", self.output] if self.bad else [line, *said])


def _runs(programs: list[_Program], to_tests: list[str]) -> Iterator[_Done]:
    """What came of each program.

    Several run at once, since one may end with a single long test: those with most code first, and
    beside them those in real time, which mostly wait, and go before when they do not.
    """
    alone = [one for one in programs if one.folder.name in _IN_REAL_TIME]
    others = sorted(set(programs) - set(alone), key=lambda one: -one.binary.stat().st_size)
    cores = min(4, os.cpu_count() or 1)
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(cores) as rest:
        began = [first.submit(_run, one, to_tests) for one in alone]
        began += [rest.submit(_run, one, to_tests, under=("nice",)) for one in others]
        yield from (one.result() for one in as_completed(began))


def _run(program: _Program, to_tests: list[str], *, under: tuple[str, ...] = ()) -> _Done:
    started = time.monotonic()
    # Times are shown to whoever may use unstable options.
    run = subprocess.run(
        [*under, program.binary, "-Zunstable-options", "--report-time", "--show-output", *to_tests],
        cwd=program.folder,
        env={**os.environ, "RUSTC_BOOTSTRAP": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    took = time.monotonic() - started
    tests = [(found[1], found[2], float(found[3] or 0)) for found in _TAKEN.finditer(run.stdout)]
    bad = sum(outcome == "FAILED" for _, outcome, _ in tests) or int(run.returncode != 0)
    return _Done(program.name, tests, bad, took, run.stdout)


def _forgotten() -> list[Path]:
    """Files of tests that are neither modules of their crate's `tests/all.rs` nor programs."""
    found = []
    for listing in _CRATES.glob("*/tests/all.rs"):
        manifest = (listing.parents[1] / "Cargo.toml").read_text()
        programs = {one["name"] for one in tomllib.loads(manifest)["test"]}
        known = programs | set(re.findall(r"^mod (\w+);", listing.read_text(), re.MULTILINE))
        found += [path for path in listing.parent.glob("*.rs") if path.stem not in known]
    return sorted(found)


def _untried() -> list[Path]:
    """Files with tests in crates whose library is not built for tests."""
    found = []
    for manifest in _CRATES.glob("*/Cargo.toml"):
        if not tomllib.loads(manifest.read_text()).get("lib", {}).get("test", True):
            sources = (manifest.parent / "src").rglob("*.rs")
            found += [path for path in sources if _TESTS.search(path.read_text())]
    return sorted(found)


def _with_examples() -> list[str]:
    """Crates whose comments have Rust to run."""
    crates = set()
    for path in _CRATES.glob("*/src/**/*.rs"):
        fences = re.findall(r"^\s*//[/!] ```(\w*)", path.read_text(), re.MULTILINE)
        # The others end a block.
        if {"", "rust"} & set(fences[::2]):
            crates.add(path.relative_to(_CRATES).parts[0])
    return sorted(crates)


def _built(to_cargo: list[str]) -> list[_Program]:
    """The test programs, built anew where that is needed."""
    command = ["cargo", "test", "--no-run", "--quiet", "--message-format=json", *to_cargo]
    build = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if build.returncode != 0:
        for line in build.stdout.splitlines():
            print((json.loads(line).get("message") or {}).get("rendered", ""), file=sys.stderr)
        sys.exit(build.returncode)
    made = [json.loads(line) for line in build.stdout.splitlines() if line.startswith("{")]
    programs = []
    for one in made:
        if one["reason"] == "compiler-artifact" and one["profile"]["test"] and one["executable"]:
            folder = Path(one["manifest_path"]).parent
            name = f"{folder.name}/{one['target']['name']}"
            programs.append(_Program(name, folder, Path(one["executable"])))
    return programs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
