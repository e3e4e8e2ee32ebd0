"""What is computed without simulating: ParaLet's equation 1, table 3 and tuning."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from conftest import Weft
from weft import ExperimentError, plan

FABRIC = "fat-tree:k=16,link=100Gbps,delay=1us"
PAPER = Path(__file__).parent.parent / "experiments" / "paralet-2024"


def test_equation_1_and_table_3_as_the_paper_has_them() -> None:
    """Section 5.2: 36 queue pairs for a slowdown of 2 over 10^9; table 3: 43 of 2 deviations."""
    assert plan.queue_pairs(2.0, 10**9) == 36
    assert plan.slowdown(36, 10**9) == pytest.approx(2.0, abs=0.001)
    assert [int(plan.ports(deviations)) for deviations in (1, 2, 3, 4)] == [6, 43, 740, 31574]


def test_a_fabric_is_tuned_with_its_own_round_trip() -> None:
    """Four bandwidth-delay products over m, in whole packets; N are its hosts."""
    found = plan.tune(FABRIC, slowdown=1.5, changes=[("fabric.nic.mtu", "1000B")])
    assert found["queue_pairs"] == plan.queue_pairs(1.5, 1024) == 39
    assert found["slowdown"] == plan.slowdown(39, 1024)
    assert found["flowlet_bytes"] % 1000 == 0
    # Six links of 1 us each way, and a packet and its acknowledgement six times on the wire.
    exact = 4 * (12e-6 + 6 * 8 * (1000 + 48 + 64) / 100e9) * 100e9 / 8 / 39
    assert exact <= found["flowlet_bytes"] <= exact + 1100
    given = plan.tune(FABRIC, queue_pairs=32, accelerators=128)
    assert given["slowdown"] == plan.slowdown(32, 128)
    assert given["rate_bps"] == 100 * 10**9 // 32


def test_the_command_says_the_same(weft: Weft) -> None:
    """`weft tune`, for people and as JSON; what has no answer takes one line."""
    done = weft("tune", "--fabric", FABRIC, "--queue-pairs", "32", "--json")
    assert json.loads(done.stdout) == plan.tune(FABRIC, queue_pairs=32)
    words = weft("tune", "--fabric", FABRIC).stdout
    assert "paralet-10" in words
    assert plan.queue_pairs(2.0, 1024) == 10
    for wrong in (["--slowdown", "1"], ["--slowdown", "2", "--queue-pairs", "8"]):
        refused = weft("tune", "--fabric", FABRIC, *wrong)
        assert refused.returncode == 2
        assert refused.stderr.count("\n") == 1, refused.stderr
    with pytest.raises(ExperimentError, match="2 or more"):
        plan.slowdown(8, 1)


@pytest.mark.parametrize("name", ["equation1", "equation1-tiers"])
def test_the_files_print_what_equation_1_gives(name: str) -> None:
    """Values and tolerances beside the simulations: three digits of it, and 15 % of it."""
    tables = tomllib.loads((PAPER / f"{name}.toml").read_text())["printed"]
    for table in tables:
        ports = int(table["source"].rpartition(" ")[2])
        given = table.get("values") or {
            table["where"]["balance.queue_pairs"]: table["value"],
        }
        for queue_pairs, value in given.items():
            expected = plan.slowdown(int(queue_pairs), ports)
            assert value == pytest.approx(expected, abs=6e-4)
            assert table["within"] <= 0.15 * expected + 6e-4
