"""Plans and clusters as input of `weft switch-config`, and every mistake in them."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conftest import Weft
from weft import cluster
from weft.cluster import Cluster
from weft.errors import ExperimentError
from weft.plans import for_switches
from weft.switches import config as switchconfig
from weft.switches import segments
from weft.switches.segments import Segments

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "switch-config"
GUIDE = HERE.parent / "docs" / "deploy.md"


def plan_of(found: Cluster, cut: Segments) -> dict[str, Any]:
    """A plan file without its steps."""
    return {
        **{"format": "weft-plan", "version": 1, "scheme": "dnlb", "enforce": "none"},
        "cluster": cluster.as_json(found),
        # Most switches have one range an uplink, which a plan writes without its list.
        "segments": {
            node: [each[0] if len(each) == 1 else each for each in ranges]
            for node, ranges in cut.items()
        },
    }


def test_a_plan_gives_the_same_files(tmp_path: Path, weft: Weft) -> None:
    """As the cluster that it was made from; one switch alone is printed."""
    shutil.copy(GOLDEN / "three-tier.toml", tmp_path / "mine.toml")
    found = cluster.read(tmp_path / "mine.toml")
    plan = plan_of(found, segments.of(found, "ethereal"))
    plan["segments"]["agg-1"] = plan["segments"].pop("pod-0-agg-1")
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    for words in (["plan.json", "-o", "one"], ["mine.toml", "--scheme", "ethereal", "-o", "two"]):
        done = weft("switch-config", *words, "--format", "junos")
        assert done.returncode == 0, done.stderr
        assert "16 files in " in done.stderr
    one = {path.name: path.read_text() for path in (tmp_path / "one").iterdir()}
    assert one == {path.name: path.read_text() for path in (tmp_path / "two").iterdir()}
    done = weft("switch-config", "plan.json", "--format", "junos", "--switch", "pod-0-agg-0", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert "==> agg-0.set <==\n# Weft: aggregation switch agg-0 of Three tiers." in done.stdout


CLUSTER = {"fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}}


def changed_plan(**changes: Any) -> str:
    """A plan with mistakes."""
    found = cluster.from_dict(CLUSTER)
    return json.dumps(plan_of(found, segments.of(found, "dnlb")) | changes)


BAD_PLANS = [
    ("{", r"not JSON \(line 1\); name a plan"),
    ("[]", "format: not a plan of weft; name what"),
    (changed_plan(version=2), "version: 2 is not known; make the plan again"),
    (changed_plan(cluster={}), "cluster: not as weft plan writes it"),
    (changed_plan(segments={}), "segments: none, as the paths of dnlb are enforced by none; plan"),
    (changed_plan(segments={"leaf-9": []}), "segments.leaf-9: no switch with uplinks in this"),
    (changed_plan(segments={"spine-0": []}), "segments.spine-0: no switch with uplinks in this"),
    (changed_plan(segments={"leaf-0": [[1, 2]]}), "segments.leaf-0: 1 segments for 2 uplinks; w"),
    (changed_plan(segments={"leaf-0": [[1, 5], [5, 9]]}), "leaf-0: 1-5 and 5-9 overlap; let each"),
    (changed_plan(segments={"leaf-0": [[5, 1], [6, 9]]}), r"leaf-0: \[5, 1\] is not a range of po"),
    (changed_plan(segments={"leaf-0": [3, [6, 9]]}), "leaf-0: 3 is not a segment; write"),
]


@pytest.mark.parametrize(("text", "message"), BAD_PLANS)
def test_a_wrong_plan_is_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    """File, key and mend."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ExperimentError, match=message) as caught:
        for_switches.read(path, None)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_wrong_options(tmp_path: Path) -> None:
    """A scheme too many or too few, a switch that there is not, names that a platform cannot."""
    path = tmp_path / "mine.toml"
    path.write_text('[fabric]\ntopology = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2')
    with pytest.raises(ExperimentError, match="is a cluster, not a plan; add --scheme"):
        for_switches.read(path, None)
    with pytest.raises(ExperimentError, match=r"a plan has its scheme; remove --scheme"):
        for_switches.read(tmp_path / "plan.json", "dnlb")
    found, cut = for_switches.read(path, "dnlb")
    with pytest.raises(ExperimentError, match="'leaf-7' steers nothing here; use one of leaf-0"):
        switchconfig.files(found, cut, "linux", "leaf-7")
    for platform, pattern, message in [
        ("linux", "Ethernet0/{place+1}", "'Ethernet0/1' is not a Linux interface name"),
        ("nftables", "averylongportname{place}", "is not a Linux interface name"),
    ]:
        table = {**CLUSTER, "cluster": {"host_port": pattern}}
        wrong = cluster.from_dict(table)
        with pytest.raises(ExperimentError, match=message):
            switchconfig.files(wrong, segments.of(wrong, "dnlb"), platform)
    wide = cluster.from_dict({"fabric": {**CLUSTER["fabric"], "spines": 64}})
    with pytest.raises(ExperimentError, match="each uplink would go up to 89, and 63 is"):
        switchconfig.files(wide, segments.of(wide, "dnlb"), "cumulus")
    tiers = cluster.read(GOLDEN / "three-tier.toml")
    with pytest.raises(ExperimentError, match="no room for a second tier; plan with"):
        switchconfig.files(tiers, segments.of(tiers, "ethereal"), "cumulus")
    narrow = {"fabric": {**CLUSTER["fabric"], "topology": "clos", "tiers": 3, "pods": 2}}
    narrow["fabric"] = {k: v for k, v in narrow["fabric"].items() if k != "spines"}
    narrow["fabric"] |= {"aggs": 2, "cores": 4}
    few = cluster.from_dict({**narrow, "cluster": {"first_port": 65_533}})
    with pytest.raises(ExperimentError, match="3 source ports cannot be cut into 2 times 2"):
        segments.of(few, "ethereal")


def test_the_guide_is_right() -> None:
    """Its cluster can be configured, and its table has every key."""
    guide = GUIDE.read_text()
    example = tomllib.loads(
        guide.partition('```toml title="cluster.toml"\n')[2].partition("```")[0]
    )
    found = cluster.from_dict(example)
    made, remarks = switchconfig.files(found, segments.of(found, "dnlb"), "ios")
    assert {file.name for file in made} >= {"leaf-0.cfg", "leaf-0.rollback", "spine-1.cfg"}
    assert any("leaf-0: Ethernet1/61 to spine-1 is down" in remark for remark in remarks)
    assert [key for key in cluster.KEYS if f"`{key}`" not in guide] == []
