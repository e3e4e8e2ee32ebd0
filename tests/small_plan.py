"""A small cluster and its job, for tests of plans."""

from __future__ import annotations

LEAF_SPINE = {
    "fabric": {
        "topology": "leaf-spine",
        "leaves": 3,
        "spines": 4,
        "hosts_per_leaf": 4,
        "link": "100Gbps",
        "delay": "500ns",
    }
}
EXCHANGE = {"workload": {"collective": "all-to-all", "size": "1200KB"}}
