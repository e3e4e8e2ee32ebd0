"""A test bed: built, changed, removed; and the state files of standing ones.

A bed for one run has no names that others see (`system.hide_namespaces`) and leaves nothing behind.
One that `weft testbed up` made has: its namespaces begin with a prefix of its own, and a file under
/run/weft/testbed describes it, written before the first of them and removed after the last.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft import cluster as clusters
from weft.cluster import Cluster, Protocol
from weft.errors import ExperimentError
from weft.switches.ways import Way
from weft.testbed import failures, layout, rules, system
from weft.testbed.failures import Failure, Step
from weft.testbed.rules import Rules

STATES = Path("/run/weft/testbed")


@dataclass
class Bed:
    """Namespaces and the links between them."""

    cluster: Cluster
    prefix: str = ""
    rules: Rules = "linux"
    """How leaves follow source ports, where they do."""

    def build(self, seed: int) -> None:
        """Make all of it. Switches hash under `seed`."""
        cluster, prefix = self.cluster, self.prefix
        layout.check(cluster)
        ports = layout.ports(cluster)
        system.batch("ip", layout.wires(cluster, prefix))
        for number, switch in enumerate(cluster.switches):
            system.set_sysctls([prefix + switch.node], layout.kernel(seed, number, True))
        hosts = [prefix + host.node for host in cluster.hosts]
        system.set_sysctls(hosts, layout.kernel(seed, 0, False))
        nodes = cluster.by_node
        for node, own in ports.items():
            system.batch("ip", layout.addresses(own, nodes[node]), prefix + node)
            shaped = (layout.shape(port) for port in own if port.rate_bps is not None)
            system.batch("tc", shaped, prefix + node)
        # Not before all ends are up, or routes would begin without a carrier.
        for node, own in ports.items():
            system.batch("ip", layout.routes(cluster, own, nodes[node]), prefix + node)

    def reseed(self, seed: int) -> None:
        """Have switches hash under another seed."""
        for number, switch in enumerate(self.cluster.switches):
            system.set_sysctls([self.prefix + switch.node], layout.hashing(seed, number))

    @property
    def _loaded(self) -> Path:
        return STATES / f"{self.prefix}rules"

    def hash_all(self) -> None:
        """Have leaves hash everything; also what a run that was killed had them do."""
        rules.unload(self.cluster, self.prefix, self._loaded)

    def enforce(self, way: Way, protocol: Protocol) -> None:
        """Have switches keep to the paths of a protocol's packets, whatever they did before."""
        self.hash_all()
        # An uplink that was failed takes no route: ECMP has its segment until it is mended.
        rules.load(self.cluster, self.prefix, self._loaded, self.rules, protocol, way)

    def fail(self, failure: Failure) -> None:
        """Have a link fail."""
        self._carry_out(failures.failure_steps(self.cluster, failure))

    def repair(self, failure: Failure) -> None:
        """Bring it back, with all routes over it."""
        self._carry_out(failures.repair_steps(self.cluster, failure))
        rules.restore_routes(self.cluster, self.prefix, self._loaded, failure.leaf, failure.spine)

    def _carry_out(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if step.tool == "nft":
                system.nft(step.lines, self.prefix + step.node)
            else:
                system.batch(step.tool, step.lines, self.prefix + step.node)

    def remove(self) -> None:
        """Take all of it down, whatever of it is there."""
        for node in layout.nodes(self.cluster):
            if (system.NAMES / (self.prefix + node)).exists():
                # It may go in between: what counts is that it is gone.
                subprocess.run(  # noqa: S603
                    ["ip", "netns", "delete", self.prefix + node],  # noqa: S607
                    capture_output=True,
                    check=False,
                )


def prefix_of(path: Path) -> str:
    """What the names of a standing bed begin with: another for each file."""
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    return f"weft-{digest[:6]}-"


def _state(path: Path) -> Path:
    return STATES / f"{prefix_of(path)}bed.json"


def _lock(path: Path) -> Path:
    return STATES / f"{prefix_of(path)}lock"


def standing(path: Path) -> tuple[Bed, dict[str, Any]] | None:
    """The bed that `up` made of a file, and what its state file says."""
    try:
        state = json.loads(_state(path).read_text())
        cluster = clusters.from_json(state["cluster"], str(_state(path)))
        return Bed(cluster, state["prefix"], state["rules"]), state
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, ExperimentError):
        raise ExperimentError(
            f"{_state(path)}: not as this version of weft writes it; remove it, and by ip netns "
            f"delete what begins with {prefix_of(path)}"
        ) from None


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Have the bed of a file alone, until this process ends at the latest.

    Raises:
        ExperimentError: Another process has it.
    """
    import fcntl

    STATES.mkdir(parents=True, exist_ok=True)
    with _lock(path).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExperimentError(
                f"testbed: {path}: another weft testbed is at work on its bed; wait for it, or use "
                "a copy of the file, which has a bed of its own"
            ) from None
        yield


def save_state(path: Path, bed: Bed, **more: Any) -> None:
    """Write down what a standing bed is."""
    STATES.mkdir(parents=True, exist_ok=True)
    state = {
        "source": str(path.resolve()),
        "prefix": bed.prefix,
        "rules": bed.rules,
        "cluster": clusters.as_json(bed.cluster),
    }
    file = _state(path)
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(state | more))
    draft.replace(file)


def folder_of(path: Path) -> Path:
    """Where runs on a standing bed keep what they need."""
    return STATES / f"{prefix_of(path)}runs"


def remove_state(path: Path) -> None:
    """Remove what was written down."""
    for kept in (folder_of(path), STATES / f"{prefix_of(path)}rules"):
        shutil.rmtree(kept, ignore_errors=True)
    for file in (_state(path), _lock(path)):
        file.unlink(missing_ok=True)
