"""A notebook as a page of the site: its cells, and what they printed, showed and drew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHELL = "%%sh\n"
"""What a cell begins with whose lines are for the shell."""
_FRAME = '<table border="1" class="dataframe">'
"""How Polars begins a table."""


def page(path: Path) -> str:
    """The notebook as Markdown; pictures are in the text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _cell(cell)) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    language = "sh" if source.startswith(SHELL) else "python"
    yield f"```{language}\n{source.removeprefix(SHELL)}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            picture = "".join(data["image/png"]).replace("\n", "")
            yield f'<img alt="What the cell draws" src="data:image/png;base64,{picture}">'
        elif "text/html" in data:
            # The site's own look is for tables without a class.
            yield "".join(data["text/html"]).replace(_FRAME, "<table>")
        elif text := "".join(output.get("text") or data.get("text/plain", [])):
            yield f"```text\n{text.rstrip()}\n```"
