"""The licences of the crates that a wheel's libraries have in them: their texts go with the wheel.

python packaging/licences.py > licences.txt
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINKED = ("weft-python", "weft-nccl-plugin")
"""The crates that become libraries."""
NAMES = re.compile(r"(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)


def text() -> str:
    """Each text once, under the crates that have it; last, crates that name a licence only."""
    crates_of: dict[str, list[str]] = {}
    for crate in linked():
        name = f"{crate['name']} {crate['version']}"
        folder = Path(crate["manifest_path"]).parent
        files = [one for one in sorted(folder.iterdir()) if NAMES.match(one.name) and one.is_file()]
        for one in files:
            told = one.read_text(encoding="utf-8", errors="replace").strip()
            crates_of.setdefault(told, []).append(name)
        if not files:
            told = f"{crate['license']}; no text comes with it: {crate['repository']}"
            crates_of.setdefault(told, []).append(name)
    parts = [f"{', '.join(names)}\n\n{told}\n" for told, names in crates_of.items()]
    head = "What the libraries of Weft have in them of others, with the licences.\n"
    return f"\n{'=' * 80}\n".join([head, *parts])


def linked() -> list[dict[str, Any]]:
    """The crates of others that are linked, as cargo knows them, by their names."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    told = json.loads(said)
    needs = {
        node["id"]: [
            one["pkg"]
            for one in node["deps"]
            if any(kind["kind"] is None for kind in one["dep_kinds"])
        ]
        for node in told["resolve"]["nodes"]
    }
    packages = {one["id"]: one for one in told["packages"]}
    reached: set[str] = set()
    waiting = [name for name, one in packages.items() if one["name"] in LINKED]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += needs[name]
    found = [packages[name] for name in reached if packages[name]["source"]]
    return sorted(found, key=lambda one: (one["name"], one["version"]))


if __name__ == "__main__":
    sys.stdout.write(text())
