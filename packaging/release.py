"""Completes the folder of a release: `make release`.

Beside the wheels come the sources, the documentation site, a bill of materials for each wheel
(CycloneDX: the crates that are linked into it; Python's packages are not in it) and check sums.

    python packaging/release.py dist
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = ROOT / "out/docs"


def main(words: list[str]) -> int:
    """Complete a folder that has wheels; returns the exit status."""
    folder = (ROOT / words[0]).resolve()
    wheels = sorted(folder.glob(f"weft_fabric-{version()}-*.whl"))
    if not wheels:
        print(f"release: no wheel of {version()} in {folder}; run make wheel", file=sys.stderr)
        return 2
    name = folder / f"weft-fabric-{version()}"
    made = [*wheels, sources(name), site(name)]
    made += [bill for wheel in wheels for bill in bills(wheel)]
    sums = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in sorted(made)]
    (folder / "SHA256SUMS").write_text("".join(sums))
    print(*(one.name for one in sorted(made)), "SHA256SUMS", sep="\n")
    return 0


def version() -> str:
    """The version that is released: Cargo.toml's, which pip has, too."""
    told = tomllib.loads((ROOT / "Cargo.toml").read_text())
    return str(told["workspace"]["package"]["version"])


def sources(name: Path) -> Path:
    """The sources of the commit at hand."""
    archive = name.with_name(f"{name.name}.tar.gz")
    command = ["git", "archive", "--format=tar.gz", f"--prefix={name.name}/", "-o", archive, "HEAD"]
    subprocess.run(command, cwd=ROOT, check=True)
    return archive


def site(name: Path) -> Path:
    """The documentation, to read without a network."""
    return Path(shutil.make_archive(f"{name}-docs", "zip", SITE))


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
