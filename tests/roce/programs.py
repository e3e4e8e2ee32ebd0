"""Programs of this repository that run in the test's machine."""

from __future__ import annotations

import json
from pathlib import Path

from packages import run

TOP = Path(__file__).parents[2]


def build(cache: Path) -> list[Path]:
    """Where cargo put all examples and the plugin, built if need be; and what is preloaded.

    As `cargo test --workspace` builds them, so that nothing is built twice; and optimised, since
    emulated processors are slow enough. A test of the plugin has cargo build what NCCL loads.
    """
    command = ["cargo", "build", "--profile", "test", "--message-format", "json", "--workspace"]
    found = []
    for line in run([*command, "--examples", "--test", "vtable"], cwd=TOP).splitlines():
        message = json.loads(line)
        target = message.get("target", {})
        if target.get("kind") == ["example"] and message.get("executable"):
            found.append(Path(message["executable"]))
        elif target.get("name") == "nccl_net_weft":
            found += [Path(name) for name in message["filenames"] if name.endswith(".so")]
    preloaded = cache / "dmabuf.so"
    flags = ["-std=c11", "-Wall", "-Wextra", "-O1", "-shared", "-fPIC"]
    run(["cc", *flags, str(Path(__file__).with_name("dmabuf.c")), "-o", str(preloaded)])
    return [*found, preloaded]
