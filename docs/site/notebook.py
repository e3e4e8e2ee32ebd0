"""A notebook as a page of the site: its cells, and what they printed and drew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def page(path: Path) -> str:
    """The notebook as Markdown; pictures are in the text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _cell(cell)) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            picture = "".join(data["image/png"]).replace("\n", "")
            yield f'<img alt="What the cell draws" src="data:image/png;base64,{picture}">'
        elif text := "".join(output.get("text") or data.get("text/plain", [])):
            yield f"```text\n{text.rstrip()}\n```"
