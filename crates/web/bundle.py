"""Packs the page and the compiled engine into one HTML file that needs no server and no network.

    python crates/web/bundle.py ENGINE.wasm OUT.html

A page that is opened from a folder may fetch nothing, neither modules nor the engine: so the
modules lie in an import map, and the engine, compressed, beside it.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "page"


def bundle(engine: bytes) -> str:
    """The page with everything in it."""
    packed = base64.b64encode(gzip.compress(engine, 9, mtime=0)).decode()
    parts = {
        'id="style">': (PAGE / "style.css").read_text(),
        'id="engine" type="text/plain">': packed,
        'id="worker" type="text/plain">': (PAGE / "worker.js").read_text(),
        'id="modules" type="importmap">': _import_map(),
    }
    text = (PAGE / "index.html").read_text()
    for place, content in parts.items():
        before, found, after = text.partition(place)
        if not found or "</script" in content or "</style" in content:
            raise SystemExit(f"{place!r} is not in page/index.html, or what goes there ends early")
        text = before + found + content + after
    return text


def _import_map() -> str:
    """Modules by the names under which they import each other."""
    modules = sorted(path for path in PAGE.glob("*.js") if path.stem != "worker")
    address = "data:text/javascript;charset=utf-8;base64,"
    imports = {
        f"weft/{path.stem}": address + base64.b64encode(path.read_bytes()).decode()
        for path in modules
    }
    return json.dumps({"imports": imports})


def main() -> None:
    """Write the page."""
    engine, out = map(Path, sys.argv[1:])
    text = bundle(engine.read_bytes())
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
