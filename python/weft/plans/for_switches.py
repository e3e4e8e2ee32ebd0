"""What switches need of a plan, or of a cluster and a scheme: names of the cluster, segments."""

from __future__ import annotations

from pathlib import Path

from weft import cluster as clusters
from weft.cluster import Cluster
from weft.errors import ExperimentError
from weft.plans import file
from weft.plans.file import Plan
from weft.switches import segments
from weft.switches.segments import Segments


def read(path: Path, scheme: str | None) -> tuple[Cluster, Segments]:
    """Cluster and segments from a plan file, or from a cluster file and a scheme.

    Raises:
        ExperimentError: The file is wrong, or switches do not steer by its scheme.
    """
    if path.suffix == ".toml":
        found = clusters.read(path)
        if scheme is None:
            raise ExperimentError(
                f"{path}: is a cluster, not a plan; add --scheme dnlb or ethereal, or name a plan"
            )
        try:
            return found, segments.of(found, scheme)
        except ExperimentError as error:
            raise ExperimentError(f"{path}: {error}") from None
    if scheme is not None:
        raise ExperimentError(f"{path}: a plan has its scheme; remove --scheme")
    return of(file.read(path, keys=("cluster",)), str(path))


def read_cluster(path: Path, scheme: str | None) -> Cluster:
    """The cluster alone, for ways that need no segments: of a plan file, or a cluster file.

    Raises:
        ExperimentError: The file is wrong, or a scheme is named, which says nothing here.
    """
    if scheme is not None:
        raise ExperimentError("--scheme: only source ports follow from it; remove it")
    if path.suffix == ".toml":
        return clusters.read(path)
    return clusters.from_json(file.read(path, keys=("cluster",))["cluster"], str(path))


def of(plan: Plan, source: str = "plan") -> tuple[Cluster, Segments]:
    """Cluster and segments of a plan; `source` is what messages call it.

    Raises:
        ExperimentError: It has no segments.
    """
    found = clusters.from_json(plan["cluster"], source)
    return found, segments.of_plan(plan, found, source)
