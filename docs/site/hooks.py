"""What MkDocs is told beyond `mkdocs.yml`: pages made from the code, and links out of `docs`.

Pages of the repository that lie elsewhere (notes of experiments, the changelog) are part of the
site under `repository/`, so that a link that is true in the repository is true on the site. What
stands in `<!-- site: ... -->` is text there and nothing in the repository.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))
import notebook
import reference

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
ELSEWHERE = "repository/"
"""Where on the site the files of the repository are that lie outside of `docs`."""
WITH_SITE = ("*.md", "experiments/**/README.md", "experiments/**/*.toml", "examples/**/*")
"""Those that are on it; the readme of the repository is the home page's place."""
NOTEBOOKS = {
    f"tutorials/{page}.md": ROOT / "examples" / f"{name}.ipynb"
    for page, name in (
        ("failure-study", "failure-study"),
        ("cluster-to-nccl-notebook", "cluster-to-nccl"),
        ("trace-to-perfetto", "trace-to-perfetto"),
    )
}
"""Pages that are notebooks."""
DEMO = ROOT / "out" / "web"
"""What `make web` builds."""
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
_PICTURE = re.compile(r"(!\[[^\]]*\]\()([^)#:\s]+)(\))")
_FENCE = re.compile(r"\s*(```|~~~)")
ONLY_HERE = re.compile(r"<!-- site: (.*?)-->", re.DOTALL)
"""What pages say on the site alone: links to pages that are made with it."""
_CELLS = re.compile(r"^\|.*", re.MULTILINE)
_CODE = re.compile(r"`[^`]*`")
_BLOCK = re.compile(r"\s*(?P<kind>[-*] |\d+\. |\|)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code, and those of the repository."""
    from mkdocs.structure.files import File

    for name, text in reference.pages().items():
        files.append(File.generated(config, name, content=text))
    for name, path in NOTEBOOKS.items():
        files.append(File.generated(config, name, content=notebook.page(path)))
    for path in _elsewhere():
        name = ELSEWHERE + path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn Markdown as GitHub reads it into Markdown as MkDocs does."""
    here = page.file.src_uri
    if here == "index.md":
        markdown = markdown.replace("<!-- demo -->", _demo())
    markdown = ONLY_HERE.sub(r"\1", markdown)

    def link(found: re.Match[str]) -> str:
        place = _on_site(here, found["path"])
        if place is None:
            return f"{found['text']} (`{_in_repository(here, found['path'])}`)"
        text = found["text"]
        if text.endswith(".md"):
            text = _title(_in_repository(here, found["path"]))
        return f"[{text}]({place}{found['anchor'] or ''})"

    def picture(found: re.Match[str]) -> str:
        return f"{found[1]}{_on_site(here, found[2])}{found[3]}"

    markdown = _PICTURE.sub(picture, _LINK.sub(link, _CELLS.sub(_plain_bars, markdown)))
    return "\n".join(_loosened(markdown.split("\n")))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Give the home page a title of its own: that of its text is the name of the site."""
    if page.file.src_uri != "index.md":
        return output
    name = config.site_name
    return output.replace(
        f"<title>{name} - {name}</title>", f"<title>{name}: {config.site_description}</title>"
    )


def on_post_build(config: MkDocsConfig) -> None:
    """Copy the demonstration in the browser, where it was built."""
    if DEMO.is_dir():
        shutil.copytree(DEMO, Path(config.site_dir) / "demo", dirs_exist_ok=True)


def _elsewhere() -> Iterator[Path]:
    """Files outside of `docs` that are on the site."""
    for pattern in WITH_SITE:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file() and path != ROOT / "README.md":
                yield path


def _in_repository(page: str, link: str) -> str:
    """The path in the repository that a link of a page means."""
    if page in NOTEBOOKS:
        own = NOTEBOOKS[page].relative_to(ROOT).as_posix()
    else:
        own = page.removeprefix(ELSEWHERE) if page.startswith(ELSEWHERE) else f"docs/{page}"
    return os.path.normpath(Path(own).parent / link)


def _title(path: str) -> str:
    """The heading of a page, which says more to a reader than the name of its file."""
    return (ROOT / path).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _on_site(page: str, link: str) -> str | None:
    """The same as a link between pages of the site; None for what is not on it."""
    target = _in_repository(page, link)
    if target == "README.md":
        target = "docs/index.md"
    if (ROOT / target).is_dir():
        target += "/README.md"
    if notebooks := [name for name, path in NOTEBOOKS.items() if path == ROOT / target]:
        place = notebooks[0]
    elif target.startswith("docs/"):
        place = target.removeprefix("docs/")
    elif any(ROOT / target == path for path in _elsewhere()):
        place = ELSEWHERE + target
    else:
        return None
    return os.path.relpath(place, Path(page).parent)


def _demo() -> str:
    """The demonstration's place on the home page; nothing where it was not built."""
    if not DEMO.is_dir():
        return ""
    return (
        '<iframe class="weft-demo" src="demo/index.html" title="Weft in this page"></iframe>\n\n'
        '*Weft runs in this page.* <a href="demo/index.html">Open it in a page of its own.</a>\n'
    )


def _plain_bars(row: re.Match[str]) -> str:
    r"""A row of a table with `a|b` for `a\|b` in code, which GitHub wants and MkDocs would show."""
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])


def _loosened(lines: list[str]) -> Iterator[str]:
    """Put an empty line between a paragraph and the list or table that follows it at once."""
    fenced, last = False, ""
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        begins = None if fenced else _BLOCK.match(line)
        if begins and last.strip():
            before = _BLOCK.match(last)
            list_goes_on = begins["kind"] != "|" and last.startswith(" ")
            if not list_goes_on and (
                before is None or (before["kind"] == "|") != (begins["kind"] == "|")
            ):
                yield ""
        yield line
        last = line
