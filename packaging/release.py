"""Completes the folder of a release: `make release`.

Beside the wheels come the sources, the documentation site, Weft in the browser, a bill of materials
for each wheel (CycloneDX: the crates that are linked into it; Python's packages are not in it) and
check sums. All of it is of one commit and one version, or nothing is made.

    python packaging/release.py dist
"""

from __future__ import annotations

import filecmp
import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from wheels import LIBRARIES, ROOT, check, commit, version

SITE = ROOT / "out/docs"
PAGE = ROOT / "out/web/index.html"


def main(words: list[str]) -> int:
    """Complete a folder that has wheels; returns the exit status."""
    folder = (ROOT / words[0]).resolve()
    wheels = sorted(folder.glob(f"weft_fabric-{version()}-*.whl"))
    wrong = [*disagreements(ROOT), *strangers(wheels)]
    if not wheels:
        wrong.append(f"no wheel of {version()} in {folder}; run make wheel")
    wrong += [
        f"no {path.relative_to(ROOT)}; run make {target}"
        for path, target in ((SITE, "docs"), (PAGE, "web"))
        if not path.exists()
    ]
    if not wrong and not shows(SITE, PAGE):
        wrong.append("the site does not have this page of Weft in the browser; run make docs")
    if wrong:
        print(*(f"release: {line}" for line in wrong), sep="\n", file=sys.stderr)
        return 2
    name = folder / f"weft-fabric-{version()}"
    made = [*wheels, sources(name), site(name), page(name)]
    made += [bill for wheel in wheels for bill in bills(wheel)]
    sums = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in sorted(made)]
    (folder / "SHA256SUMS").write_text("".join(sums))
    print(*(one.name for one in sorted(made)), "SHA256SUMS", sep="\n")
    return 0


def disagreements(root: Path) -> list[str]:
    """Which files under `root` tell another version than Cargo.toml, or another date: a line each.

    The changelog may have a heading for what is not released yet above the newest version's.
    """
    newest = re.search(
        r"^## \[(\d[^]]*)\] - (\S+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    if newest is None:
        return ["CHANGELOG.md has no heading `## [VERSION] - DATE`"]
    wrong = []
    if newest[1] != version():
        wrong.append(
            f"the newest version in CHANGELOG.md is {newest[1]}, in Cargo.toml {version()}"
        )
    cited = (root / "CITATION.cff").read_text().splitlines()
    lines = (f"version: {version()}", f"date-released: {newest[2]}")
    return wrong + [f"CITATION.cff has no line `{line}`" for line in lines if line not in cited]


def strangers(wheels: list[Path]) -> list[str]:
    """What is not of the commit at hand, files or wheels: a line each."""
    here = commit()
    if not here or here.endswith(".dirty"):
        return ["a release is made of a commit: commit what has changed, then run make release"]
    wrong = []
    for wheel in wheels:
        check(wheel)
        with zipfile.ZipFile(wheel) as packed:
            core = packed.read(LIBRARIES[0])
        if here.encode() not in core or f"{here}.dirty".encode() in core:
            wrong.append(f"{wheel.name} is not of commit {here}; run make wheel, or remove it")
    return wrong


def shows(site: Path, page: Path) -> bool:
    """Whether the site has this page, and not one that was built before."""
    shown = site / "demo/index.html"
    return shown.exists() and filecmp.cmp(shown, page, shallow=False)


def sources(name: Path) -> Path:
    """The sources of the commit at hand."""
    archive = name.with_name(f"{name.name}.tar.gz")
    command = ["git", "archive", "--format=tar.gz", f"--prefix={name.name}/", "-o", archive, "HEAD"]
    subprocess.run(command, cwd=ROOT, check=True)
    return archive


def site(name: Path) -> Path:
    """The documentation, to read without a network."""
    return Path(shutil.make_archive(f"{name}-docs", "zip", SITE))


def page(name: Path) -> Path:
    """Weft in the browser: one file."""
    return Path(shutil.copy(PAGE, name.with_name(f"{name.name}-browser.html")))


def bills(wheel: Path) -> list[Path]:
    """Copies of the bills of materials that maturin has put into a wheel."""
    copies = []
    with zipfile.ZipFile(wheel) as packed:
        inside = [one for one in packed.namelist() if "/sboms/" in one and one.endswith(".json")]
        if not inside:
            raise SystemExit(f"release: {wheel.name} has no bill of materials; update maturin")
        for one in inside:
            copy = wheel.with_name(f"{wheel.stem}.{Path(one).name}")
            copy.write_bytes(packed.read(one))
            copies.append(copy)
    return copies


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
