"""What must be true of a run, by what the test's machine said."""

from __future__ import annotations

import re

import packets

H1, H2 = "10.0.1.2", "10.0.2.2"


def judge(said: str) -> list[str]:
    """What is wrong; nothing if all is well."""
    seen = packets.read(said)
    wrong = [f"{p} went over the wrong link" for p in packets.astray(seen)]
    wrong += [f"{stage}: {word}" for stage, word in _missing(said)]
    wrong += _pairs(said, seen)
    if "guest: ends" not in said:
        wrong.append("the test's machine did not come to its end")
    return wrong


def _missing(said: str) -> list[tuple[str, str]]:
    """Stages whose good end was not said."""
    stages = dict(re.findall(r"^== (\S+)\n(.*?)(?=^== |\Z)", said, re.M | re.S))
    good = {"pingpong": r"usec/iter", "pairs": r"^ok \d+ bytes"}
    return [
        (stage, f"no line like {pattern!r}")
        for stage, pattern in good.items()
        if not re.search(pattern, stages.get(stage, ""), re.M)
    ]


def _pairs(said: str, seen: list[packets.Packets]) -> list[str]:
    """Queue pairs of `roce_pairs`: each used its own port both ways, and all did."""
    planned = re.findall(r"^pair (\d+) (\d+) (\d+)$", said, re.M)
    data = packets.ports(seen, "pairs", H1, "data")
    answers = packets.ports(seen, "pairs", H2, "answer")
    wrong = [] if planned else ["pairs: no queue pairs were made"]
    for port, ours, theirs in planned:
        for what, found in (("data", data.get(int(theirs))), ("answers", answers.get(int(ours)))):
            if found != {int(port)}:
                wrong.append(f"pairs: {what} of port {port} came from {found or 'nowhere'}")
    return wrong
