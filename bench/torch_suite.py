"""PyTorch's own tests of back ends over Weft, with Gloo as control: a table, test by test.

Tests are those of the PyTorch that is installed (`tests/pytorch/suite.py`). What they skip for a
back end that is not called "gloo" is done over weft under that name. Fails if weft fails a test
that Gloo passes, other than for shapes in a profiler's event (`NO_SHAPES`).

Needs `make torch-test`'s environment. One record in bench/records/torch-suite.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import record

SUITE = Path(__file__).parents[1] / "tests/pytorch/suite.py"
RECORDS = Path(__file__).parent / "records" / "torch-suite"
WAYS = {"gloo": ["gloo"], "weft": ["weft"], "weft as gloo": ["weft", "--as", "gloo"]}

NO_SHAPES = "no shapes"
"""How a test went that lacks but the shapes of tensors in a profiler's event: PyTorch lets no back
end in Python say them of an event that another thread ends. What such a test computes is checked
in `tests/pytorch/test_operations.py`."""
SHAPES = re.compile(r"^test_all_reduce_coalesced_\w+ .*length of the sequences mismatch: 1 != \d")

Table = dict[str, dict[str, str]]
"""By test and way: how it went."""


def main() -> int:
    """Measure, show, keep."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    options.add_argument("--keep", action="store_true", help="keep the record in bench/records")
    options.add_argument("tests", nargs="*", help="all, if none is named")
    asked = options.parse_args()
    origin = record.origin_of(["bench/torch_suite.py", *sys.argv[1:]])
    tables = {str(ranks): table(ranks, asked.tests) for ranks in asked.ranks}
    behind = [one for ranks in tables for one in show(ranks, tables[ranks])]
    if asked.keep:
        record.keep(RECORDS, origin | {"by_ranks": tables})
    return 1 if behind else 0


def table(ranks: int, tests: list[str]) -> Table:
    """Do the tests in every way that says something new."""
    found: Table = {}
    for way, words in WAYS.items():
        asked = tests
        if way == "weft as gloo":
            # Only what the name keeps from being done.
            asked = [
                test for test, by in found.items() if by["gloo"] == "ok" and by["weft"] == "skipped"
            ]
            if not asked:
                continue
        for test, how in run([words[0], str(ranks), *words[1:], *asked]):
            found.setdefault(test, {})[way] = how
    return found


def run(words: list[str]) -> list[tuple[str, str]]:
    """Test and how it went, as they are done."""
    interfaces = {"WEFT_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, str(SUITE), *words]
    found = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | interfaces
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            test, how, *why = line.rstrip("\n").split("\t")
            found.append((test, NO_SHAPES if SHAPES.search(" ".join((test, *why))) else how))
            if how == "failed":
                print(f"{' '.join(words[:4])}: {test}: {' '.join(why)}", flush=True)
    return found


def show(ranks: str, tests: Table) -> list[str]:
    """Print how many went how; what Gloo passes and weft does not."""
    of_weft = {test: by.get("weft as gloo", by["weft"]) for test, by in tests.items()}
    gloo, weft = Counter(by["gloo"] for by in tests.values()), Counter(of_weft.values())
    behind = [test for test, by in tests.items() if by["gloo"] == "ok" and of_weft[test] != "ok"]
    alone = [test for test, by in tests.items() if by["gloo"] != "ok" and of_weft[test] == "ok"]
    print(f"{ranks} ranks: gloo passes {gloo['ok']}, weft {weft['ok']} of {len(tests)}")
    print(f"  gloo alone: {', '.join(behind) or 'none'}")
    print(f"  weft alone: {', '.join(alone) or 'none'}")
    shapeless = [test for test in behind if of_weft[test] == NO_SHAPES]
    print(f"  of these but for shapes in events: {', '.join(shapeless) or 'none'}")
    return [test for test in behind if test not in shapeless]


if __name__ == "__main__":
    sys.exit(main())
