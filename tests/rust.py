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
from pathlib import Path

_SHOWN = 10
_TAKEN = re.compile(r"^test (.+?) \.\.\. (\w+)(?:.*?<([\d.]+)s>)?", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Builds, runs and reports; returns the exit status."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    to_cargo, to_tests = arguments[:at] or ["--workspace"], arguments[at + 1 :]
    times: list[tuple[float, str]] = []
    passed = failed = 0
    for name, folder, binary in _built(to_cargo):
        started = time.monotonic()
        # Times are shown to whoever may use unstable options.
        run = subprocess.run(
            [binary, "-Zunstable-options", "--report-time", "--show-output", *to_tests],
            cwd=folder,
            env={**os.environ, "RUSTC_BOOTSTRAP": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        tests = [
            (found[1], found[2], float(found[3] or 0)) for found in _TAKEN.finditer(run.stdout)
        ]
        times += [(taken, f"{name} {test}") for test, _, taken in tests]
        passed += sum(outcome == "ok" for _, outcome, _ in tests)
        bad = sum(outcome == "FAILED" for _, outcome, _ in tests) or int(run.returncode != 0)
        failed += bad
        took = time.monotonic() - started
        print(f"{name}: {len(tests)} tests, {took:.1f} s{', FAILED' if bad else ''}", flush=True)
        said = [line for line in run.stdout.splitlines() if "to repeat it: WEFT_CASE=" in line]
        print("\n".join([run.stdout] if bad else said), end="\n" if bad or said else "", flush=True)
    documented = subprocess.run(["cargo", "test", "--quiet", "--doc", *to_cargo], check=False)
    print(f"the slowest {_SHOWN}:")
    for taken, test in sorted(times, reverse=True)[:_SHOWN]:
        print(f"  {taken:7.2f} s  {test}")
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or documented.returncode != 0)


def _built(to_cargo: list[str]) -> list[tuple[str, Path, str]]:
    """Names, folders and files of the test programs, built anew where that is needed."""
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
            programs.append((f"{folder.name}/{one['target']['name']}", folder, one["executable"]))
    return programs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
