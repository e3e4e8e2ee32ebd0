"""Prints what pip has to install for an extra of pyproject.toml, or for Weft itself."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
print(*(one for name in sys.argv[1:] for one in extras[name]), sep="\n")
if not sys.argv[1:]:
    print(*project["dependencies"], sep="\n")
