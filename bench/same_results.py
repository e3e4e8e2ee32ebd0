"""Tells whether two builds give the same results: hashes of what experiments leave on disk.

Runs the demo, the quick form of McClure et al. (2025) and all schemes with one seed, and writes a
hash of every table of each. For changes that must not change behaviour: run it before and after.

    python bench/same_results.py before.json          with the build of before (some ten minutes)
    python bench/same_results.py after.json before.json    with the new one; says what differs
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
DEMO = ("fig2", "fig3", "fig4-all-to-all-short", "fig4-ring-short", "fig4-ring-long")
RUNS: dict[str, list[str | Path]] = {
    "demo": [*(EXPERIMENTS / f"ethereal-2024/{name}.toml" for name in DEMO)],
    "study-2025-quick": [EXPERIMENTS / "study-2025", "--quick"],
    "all-schemes": [EXPERIMENTS / "all-schemes", "--seeds", "1"],
}
TABLES = ("runs", "flows", "links")
LEFT_OUT = {"key"}
"""Columns that name the build."""


def main() -> int:
    """Run, hash, write, compare."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("to", type=Path, help="where hashes go (.json)")
    words.add_argument("before", type=Path, nargs="?", help="hashes to compare with")
    words.add_argument("--only", choices=list(RUNS), action="append", help="only this one")
    asked = words.parse_args()
    found = {name: hashes_of(name) for name in asked.only or RUNS}
    asked.to.write_text(json.dumps(found, indent=1) + "\n")
    if asked.before is None:
        return 0
    before = json.loads(asked.before.read_text())
    other = [
        f"{name}: {table}.{column}"
        for name, tables in found.items()
        for table, columns in tables.items()
        # What is new has nothing to be compared with.
        for column, hashed in before[name][table].items()
        if columns.get(column) != hashed
    ]
    print("\n".join(other) or "the same")
    return int(bool(other))


def hashes_of(name: str) -> dict[str, dict[str, str]]:
    """Of each column of each table."""
    with tempfile.TemporaryDirectory() as out:
        weft = [sys.executable, "-m", "weft", "run", "-q", "--no-report", "-o", out]
        # What the experiments of McClure et al. (2025) say of capacity is no result.
        subprocess.run([*weft, *map(str, RUNS[name])], check=True, stdout=subprocess.DEVNULL)
        return {table: columns_of(Path(out, f"{table}.parquet")) for table in TABLES}


def columns_of(path: Path) -> dict[str, str]:
    """The hash of each column."""
    table = pl.read_parquet(path)
    return {
        column: digest(table.select(column)) for column in table.columns if column not in LEFT_OUT
    }


def digest(column: pl.DataFrame) -> str:
    """As its values are, with their type."""
    written = io.BytesIO()
    column.write_ipc(written)
    return hashlib.sha256(written.getvalue()).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
