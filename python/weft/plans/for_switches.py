"""What switches need of a plan, or of a cluster and a scheme: names of the cluster, segments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft import cluster as clusters
from weft.cluster import Cluster, Protocol
from weft.errors import ExperimentError
from weft.plans import file
from weft.plans.file import Plan
from weft.switches import addresses, advice, config, port_names, segments, srv6
from weft.switches.config import File
from weft.switches.segments import Segments
from weft.switches.ways import WAYS, Way


@dataclass(frozen=True)
class Request:
    """What is asked of `weft switch-config`."""

    platform: str
    enforce: Way = "segments"
    scheme: str | None = None
    """Only with a cluster file."""
    switch: str | None = None
    protocol: Protocol | None = None
    srv6_block: str = srv6.BLOCK
    lanes: int | None = None
    port_config: Path | None = None
    advice: bool = False
    """Not configurations, but what else the scheme wants of switches."""


def files(plan: Path | Plan, asked: Request) -> tuple[list[File], list[str]]:
    """The files that are asked for, and remarks.

    Raises:
        ExperimentError: A file is wrong, or the platform cannot do what is asked of it.
    """
    if asked.enforce not in WAYS:
        raise ExperimentError(
            f"enforce: {asked.enforce!r} is unknown; use one of {', '.join(WAYS)}"
        )
    if asked.advice:
        return [advice.file(_scheme(plan, asked.scheme), asked.platform)], []
    cluster, found = _input(plan, asked)
    if asked.protocol is not None:
        cluster = clusters.for_protocol(cluster, asked.protocol)
    cluster, renamed = port_names.for_platform(
        cluster, asked.platform, asked.lanes, asked.port_config
    )
    if asked.enforce == "addresses":
        if cluster.path_addresses is None:
            where = f"{plan}: " if isinstance(plan, Path) else ""
            raise ExperimentError(where + addresses.MISSING)
        made, remarks = config.files_by_address(cluster, asked.platform, asked.switch)
    elif asked.enforce == "srv6":
        made, remarks = config.files_by_segment_routing(
            cluster, found, asked.platform, asked.switch, asked.srv6_block
        )
    else:
        made, remarks = config.files(cluster, found, asked.platform, asked.switch)
    return made, [*remarks, *renamed]


def _scheme(plan: Path | Plan, scheme: str | None) -> str:
    if isinstance(plan, Path) and plan.suffix == ".toml":
        clusters.read(plan)
        if scheme is None:
            raise ExperimentError(f"{plan}: is a cluster, not a plan; add --scheme, or name a plan")
        return scheme
    if scheme is not None:
        raise ExperimentError(f"{plan}: a plan has its scheme; remove --scheme")
    found = file.read(plan, keys=("scheme",)) if isinstance(plan, Path) else plan
    return str(found["scheme"])


def _input(plan: Path | Plan, asked: Request) -> tuple[Cluster, Segments]:
    if asked.enforce == "addresses":
        # Whatever chooses the paths, their addresses are the cluster's.
        if isinstance(plan, Path):
            return read_cluster(plan, asked.scheme), {}
        return clusters.from_json(plan["cluster"]), {}
    if not isinstance(plan, Path):
        return of(plan)
    usual = "dnlb" if asked.enforce == "srv6" and plan.suffix == ".toml" else None
    return read(plan, asked.scheme or usual)


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
    with file.as_written(source):
        found = clusters.from_json(plan["cluster"], source)
        return found, segments.of_plan(plan, found, source)
