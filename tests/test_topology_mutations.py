"""Damaged topology files of every format: a description or one line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from test_topologies import IN_ORDER, TOPO
from test_trace_mutations import damaged
from weft import ExperimentError
from weft.analysis import topology_info, topology_picture

INFRAGRAPH = """name: tiny
devices:
- {name: host, components: [{name: nic, count: 2, choice: nic}], links: [], edges: []}
- name: sw
  components: [{name: port, count: 8, choice: port}]
links:
- name: eth
  physical:
    bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400}
    latency: {choice: ns, ns: 500}
instances:
- {name: host, device: host, count: 2}
- {name: leaf, device: sw, count: 2}
- {name: spine, device: sw, count: 2}
edges:
- ep1: {instance: "host[0]", component: "nic[0:2]"}
  ep2: {instance: "leaf[0]", component: "port[0:2]"}
  scheme: one2one
  link: eth
- ep1: {instance: "host[1]", component: "nic"}
  ep2: {instance: "leaf[1]", component: "port[0:2]"}
  scheme: one2one
  link: eth
- ep1: {instance: "leaf", component: "port[4:6]"}
  ep2: {instance: "spine", component: "port[0:2]"}
  scheme: one2one
  link: eth
- ep1: {instance: "leaf[0]", component: "port[6]"}
  ep2: {instance: "spine[1]", component: "port[2]"}
  scheme: many2many
  link: eth
- ep1: {instance: "leaf[1]", component: "port[6]"}
  ep2: {instance: "spine[0]", component: "port[2]"}
  scheme: many2many
  link: eth
"""
SIMAI = (Path(__file__).parents[1] / "examples/rails_H100.topo").read_text()
FILES = {"a.txt": IN_ORDER, "a.topo": TOPO, "a.yaml": INFRAGRAPH, "a_H100": SIMAI}


@pytest.mark.parametrize("name", FILES)
def testdamaged_files_give_a_description_or_a_line(name: str, tmp_path: Path) -> None:
    """And what can be a fabric can be drawn."""
    described = 0
    for seed in range(150):
        draw = random.Random(f"{name} {seed}")
        path = tmp_path / f"{seed}-{name}"
        path.write_bytes(damaged(FILES[name].encode(), draw))
        try:
            found = topology_info.info(path)
            assert topology_info.text(found)
            if not found["problems"] and described < 5:
                topology_picture.draw(str(path), tmp_path / "a.svg", [], None)
            described += 1
        except ExperimentError as error:
            line = str(error)
            assert line.strip()
            assert "\n" not in line
        except BaseException:
            print(f"seed {seed}: {path}")
            raise
    assert described > 0


def test_infragraph_runs(tmp_path: Path) -> None:
    """A file as `fabric.file` gives the results of the keys that `weft topology info` prints."""
    import weft

    (tmp_path / "a.yaml").write_text(INFRAGRAPH)
    found = topology_info.info(tmp_path / "a.yaml")
    assert found["kind"] == "infragraph"
    assert found["file_nodes"][:2] == ["host.0.nic.0", "host.0.nic.1"]
    assert "host.0.nic.0 to host.1.nic.1 are host-0 to host-3" in topology_info.text(found)
    rest = {"workload": {"pattern": "all-to-all", "size": "16KB"}, "balance": {"scheme": "spray"}}
    by_file = {"fabric": {"file": str(tmp_path / "a.yaml")}, **rest}
    rows = [
        weft.simulate(one).runs.to_dicts()[0]
        for one in (by_file, {"fabric": found["fabric"], **rest})
    ]
    assert rows[0] == rows[1]
