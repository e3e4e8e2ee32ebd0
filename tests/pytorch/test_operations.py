"""Every operation of the back end beside Gloo's, by 2 to 4 processes.

PyTorch is no dependency of Weft: these run where it is, which `make torch-test` sees to.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from cases import CASES
from processes import cases_of


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where ranks meet."""
    return str(tmp_path_factory.mktemp("meeting"))


@pytest.mark.parametrize(
    ("count", "backend"), [(2, "weft"), (3, "weft"), (4, "weft"), (2, "weft-whole")]
)
@pytest.mark.parametrize("name", list(CASES))
def test_as_gloo_does(name: str, count: int, backend: str, folder: str) -> None:
    """All ranks say so."""
    for rank, report in enumerate(cases_of(count, folder, backend)):
        assert report[name] == "ok", f"rank {rank}: {report[name]}"
