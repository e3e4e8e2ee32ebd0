"""Counters of running jobs: what Prometheus is given, `weft top`, examples that use them."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from conftest import Weft, command, start
from weft.errors import ExperimentError
from weft.top import show, sources
from weft.top.rates import Rates, View
from weft.top.sources import Missing, Reading

ROOT = Path(__file__).parents[1]
DASHBOARD = json.loads((ROOT / "examples/grafana/weft.json").read_text())
FROM_SCRAPE = {"instance", "job"}
"""Labels that Prometheus adds."""
WAIT_S = 30


@contextmanager
def job(where: str, folder: Path) -> Iterator[int]:
    """Two ranks that send until they are killed; their process group."""
    # Both ask without a break; whoever looks at them goes first.
    words = ("bench-net", "--ranks", "2", "-b", "64K", "-e", "64K", "-n", "100000000")
    environment = {**os.environ, "WEFT_PROMETHEUS": where}
    with (folder / "job.txt").open("w") as said:
        ranks = subprocess.Popen(
            ["nice", "-n", "19", *command(*words)],
            env=environment,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield ranks.pid
    finally:
        # The group has this test's ranks alone.
        os.killpg(ranks.pid, signal.SIGKILL)
        ranks.wait()


def until(look: Callable[[], Any]) -> Any:
    """What it finds in the end."""
    end = time.monotonic() + WAIT_S
    while not (found := look()):
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)
    return found


@dataclass
class Watched:
    """What a job of two ranks gave while it ran."""

    kind: str | None
    """The type of the page for Prometheus."""
    metrics: str
    top: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """A job that serves its counters at two ports."""
    folder = tmp_path_factory.mktemp("job")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        first = int(free.getsockname()[1]) % 10_000 + 20_000  # Not where systems pick ports.
    ports = f"127.0.0.1:{first}-{first + 7}"

    def sending() -> bool:
        readings = [one for one in sources.named([ports])[0].read() if isinstance(one, Reading)]
        devices = [device for one in readings for device in one.devices]
        return len(devices) == 2 and all(device["paths"] for device in devices)

    with job(f"127.0.0.1:{first}", folder):
        until(sending)
        top = command("top", ports, "--once", "--json", "--interval", "0.5")
        done = subprocess.run(top, capture_output=True, text=True, check=False)
        return Watched(*fetch(first, "/metrics"), done)


def fetch(port: int, path: str) -> tuple[str | None, str]:
    """The type and the text of a page."""
    caller = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    caller.request("GET", path)
    answer = caller.getresponse()
    assert answer.status == 200
    return answer.getheader("Content-Type"), answer.read().decode()


def labels_of(text: str) -> dict[str, set[str]]:
    """Metrics that have samples, with their labels."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)\{(.*)\} \d+$", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def test_what_is_served_follows_the_guide(watched: Watched) -> None:
    """Prefix, base units, `_total` for counters alone; each described before its samples."""
    assert watched.kind == "text/plain; version=0.0.4; charset=utf-8"
    text = watched.metrics
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    helps = dict(re.findall(r"^# HELP (\w+) (.+)$", text, re.MULTILINE))
    assert set(kinds) == set(helps) == set(labels_of(text))
    for name, kind in kinds.items():
        assert re.fullmatch(r"weft_[a-z_]+", name)
        assert (kind == "counter") == name.endswith("_total"), name
    for name, labels in labels_of(text).items():
        assert "port" not in labels, f"{name}: ever more series"
        old = re.fullmatch(r"Old name of (\w+), until \d.\d\.", helps[name])
        assert old is None or old[1] in kinds
    guide = (ROOT / "docs/counters.md").read_text()
    for name in kinds:
        is_old = helps[name].startswith("Old name")
        row = f"| `{name}` | {kinds[name]} |"
        assert (f"`{name}`" in guide) if is_old else (row in guide), name


def expressions() -> Iterator[str]:
    """All of the dashboard."""
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (
        one["query"]["query"] for one in DASHBOARD["templating"]["list"] if one["type"] == "query"
    )


def test_the_dashboard_asks_for_what_is_served(watched: Watched) -> None:
    """Every metric and label of its expressions, none by an old name."""
    served, asked = labels_of(watched.metrics), set()
    for expression in expressions():
        for name, matched in re.findall(r"(weft_\w+)(?:\{(.*?)\})?", expression):
            asked.add(name)
            wanted = set(re.findall(r"(\w+)=", matched))
            assert wanted - FROM_SCRAPE <= served[name], expression
        (metric,) = set(re.findall(r"weft_\w+", expression))
        kept = {word for by in re.findall(r"by \((.*?)\)", expression) for word in by.split(", ")}
        assert kept - FROM_SCRAPE <= served[metric], expression
    old = set(re.findall(r"^# HELP (\w+) Old name", watched.metrics, re.MULTILINE))
    assert asked == set(served) - old


def test_the_dashboard_is_one() -> None:
    """Panels have numbers and a place of their own, and take the data source that is chosen."""
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
        for one in [panel, *panel["targets"]]:
            assert one["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD)))
    assert {name for name in used if not name.startswith("__")} == variables


def test_the_daemon_set_hangs_together() -> None:
    """Folders that are mounted are there, and Prometheus is told the port that is served."""
    path = ROOT / "examples/kubernetes/weft-daemonset.yaml"
    daemon_set = yaml.safe_load(path.read_text())
    assert daemon_set["kind"] == "DaemonSet"
    pod = daemon_set["spec"]["template"]
    labels = daemon_set["spec"]["selector"]["matchLabels"]
    assert labels.items() <= pod["metadata"]["labels"].items()
    folders = {one["name"]: one["hostPath"]["path"] for one in pod["spec"]["volumes"]}
    containers = pod["spec"]["initContainers"] + pod["spec"]["containers"]
    for container in containers:
        for mount in container["volumeMounts"]:
            assert folders[mount["name"]] == mount["mountPath"]
    (server,) = [one for one in containers if "ports" in one]
    port = pod["metadata"]["annotations"]["prometheus.io/port"]
    assert server["ports"][0]["containerPort"] == int(port)
    assert f"--web.listen-address=:{port}" in server["args"]
    assert f"--collector.textfile.directory={folders['counters']}" in server["args"]
    # What it says to pods of jobs.
    said = [line[1:] for line in path.read_text().splitlines() if line.startswith("#   ")]
    of_job = yaml.safe_load("\n".join(said[1:]))["spec"]
    variables = {one["name"]: one["value"] for one in of_job["containers"][0]["env"]}
    assert variables["NCCL_NET_PLUGIN"] == f"{folders['library']}/libnccl-net-weft.so"
    assert variables["WEFT_PROMETHEUS"] == folders["counters"]
    assert {one["hostPath"]["path"] for one in of_job["volumes"]} == set(folders.values())


def test_top_once_as_json(watched: Watched) -> None:
    """Both ranks of the job; shares add up."""
    assert watched.top.returncode == 0, watched.top.stderr
    found = json.loads(watched.top.stdout)
    assert found["processes"] == 2
    assert found["missing"] == []
    (peer,) = found["peers"]
    assert (peer["device"], peer["peer"]) == ("lo", "127.0.0.1")
    assert peer["bytes_per_s"] == pytest.approx(sum(one["bytes_per_s"] for one in peer["paths"]))
    assert peer["bytes_per_s"] > 0
    assert sum(one["share"] for one in peer["paths"]) == pytest.approx(1)
    assert {one["connections"] for one in peer["paths"]} == {1}


def test_ports_of_others_are_left_out(weft: Weft) -> None:
    """Beside a job they are nothing to speak of; alone they are."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        taken = other.server_port
        (found,) = sources.named([f"127.0.0.1:{taken}"])[0].read()
        done = weft("top", f"127.0.0.1:{taken}", "--once")
        other.shutdown()
    assert isinstance(found, Missing)
    assert done.returncode == 2
    assert done.stderr == f"error: {found}\n"
    assert found.why == "no NCCL plugin of Weft 0.2 or newer; try the next port"


def test_top_goes_on_until_it_is_interrupted(tmp_path: Path) -> None:
    """Lines where there is no terminal; what is not there is told once."""
    gone = "127.0.0.1:1"
    (tmp_path / "weft-1.json").write_text(json.dumps(reading(1, row(1, 300)).devices))
    process = start("top", "weft-1.json", gone, "--interval", "0.1", cwd=tmp_path)
    assert process.stdout is not None
    lines: list[str] = []
    while sum("process" in line for line in lines) < 3:
        lines.append(process.stdout.readline())
        assert lines[-1], "it has ended"
    process.send_signal(signal.SIGINT)
    rest, complaints = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert all(len(line.rstrip("\n")) <= show.WIDTH for line in [*lines, *rest.splitlines()])
    (complaint,) = complaints.splitlines()
    assert complaint.startswith(f"{gone}: nobody listens; ")
    assert complaint.endswith("; trying again")


def test_of_port_zero_the_one_that_was_taken_is_told() -> None:
    """Else nobody finds it."""
    done = subprocess.run(
        command("bench-net", "-b", "8", "-e", "8", "-n", "1", "--verbose"),
        env={**os.environ, "WEFT_PROMETHEUS": "127.0.0.1:0"},
        check=True,
        capture_output=True,
        text=True,
    )
    ports = re.findall(r"statistics at http://127\.0\.0\.1:(\d+)/", done.stdout + done.stderr)
    assert ports, done.stderr
    assert "0" not in ports


def test_a_directory_of_several_processes(tmp_path: Path, weft: Weft) -> None:
    """Each has files of its own, which go with it; those of the killed go when the next come."""
    folder = tmp_path / "counters"
    folder.mkdir()

    def both() -> bool:
        files = [folder / f"weft-{number}.prom" for number in (0, 1)]
        return all(file.exists() and file.stat().st_size for file in files)

    with job(str(folder), tmp_path):
        until(both)
        done = weft("top", folder, "--once", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["processes"] == 2
        text = (folder / "weft-1.prom").read_text()
        assert all("process" in labels for labels in labels_of(text).values())
        assert 'process="1"' in text
        assert (folder / "weft-1.prom").stat().st_mode & 0o777 == 0o644
    assert both()
    environment = {**os.environ, "WEFT_PROMETHEUS": str(folder)}
    subprocess.run(
        command("bench-net", "-b", "8", "-e", "8", "-n", "1"),
        env=environment,
        check=True,
        capture_output=True,
    )
    assert list(folder.glob("weft-*")) == []
    done = weft("top", folder, "--once")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {folder}: no weft-*.json; is a job with WEFT_PROMETHEUS=")


def row(port: int, sent: int, path: str | None = None, **counts: int) -> dict[str, Any]:
    """A path as the plugin writes it."""
    rest = {"time_outs": 0, "re_routes": 0, "reconnects": 0, "open": 1, **counts}
    return {"peer": "10.0.0.2", "host": 1, "path": path, "port": port, "bytes": sent, **rest}


def reading(at: float, *paths: dict[str, Any], source: str = "one", **counts: Any) -> Reading:
    """What a process with one device has."""
    rest = {"strangers": 0, "damaged": 0, "starved": 0, "starved_why": "", **counts}
    device = {"device": "eth0", "address": "10.0.0.1:4791", "paths": list(paths), **rest}
    return Reading(source, at, [device])


def view(*looks: list[Reading]) -> View:
    """What is known after several looks."""
    rates = Rates()
    return [rates.view(look) for look in looks][-1]


def test_paths_are_compared_over_processes() -> None:
    """By rate, against an even share; ports of a path and processes of a NIC are one."""
    first = [
        reading(1, row(1, 0, "0.0"), row(2, 0, "1.0")),
        reading(5, row(3, 9, "0.0"), source="b"),
    ]
    then = [
        reading(3, row(1, 200, "0.0"), row(2, 100, "1.0", time_outs=2, re_routes=1)),
        reading(6, row(3, 59, "0.0"), source="b"),
    ]
    (peer,) = view(first, then).peers
    assert [(one.path, one.bytes_per_s) for one in peer.paths] == [("0.0", 150.0), ("1.0", 50.0)]
    assert [one.share for one in peer.paths] == [0.75, 0.25]
    assert [one.of_even for one in peer.paths] == [1.5, 0.5]
    assert (peer.paths[0].bytes, peer.paths[0].connections) == (259, 2)
    assert (peer.paths[1].new_time_outs, peer.paths[1].new_re_routes) == (2, 1)


def test_a_closed_connection_moves_no_bytes() -> None:
    """The plugin counts it at port zero then; what it had sent before is no news."""
    before = reading(1, row(0, 1000, open=0), row(7, 5000), row(8, 300))
    after = reading(2, row(0, 6010, open=0, time_outs=1), row(8, 300))
    (peer,) = view([before], [after]).peers
    assert [(one.port, one.bytes_per_s) for one in peer.paths] == [(0, 10.0), (8, 0.0)]
    assert peer.paths[0].new_time_outs == 1


def test_another_process_at_the_same_place_begins_anew() -> None:
    """No negative rates."""
    (peer,) = view([reading(1, row(7, 5000))], [reading(2, row(7, 10))]).peers
    assert peer.bytes_per_s == 0


def test_a_file_that_was_not_written_since_keeps_its_rates() -> None:
    """Whoever looks more often than once a second sees no zeros between."""
    first, second = reading(1, row(7, 0)), reading(2, row(7, 10))
    (peer,) = view([first], [second], [second]).peers
    assert peer.bytes_per_s == 10


def test_a_file_that_is_older_than_the_last_begins_anew() -> None:
    """As after a clock was set back: no negative rates."""
    looks = [reading(at, row(7, sent)) for at, sent in ((10, 100), (8, 1000), (9, 1050))]
    (peer,) = view(*[[look] for look in looks[:2]]).peers
    assert peer.bytes_per_s == 0
    (peer,) = view(*[[look] for look in looks]).peers
    assert peer.bytes_per_s == 50


def test_a_process_that_was_killed_sends_nothing(weft: Weft, tmp_path: Path) -> None:
    """Its files stay, and are not written any more."""
    first, second = reading(1, row(7, 0)), reading(2, row(7, 10))
    found = view([first], [second], [replace(second, age_s=9)])
    assert found.peers[0].bytes_per_s == 0
    assert show.lines(found, [], "12:00:00")[0].startswith("12:00:00  1 process (1 silent), 0 B/s")
    # Files of a host whose clock is behind.
    assert view([first], [replace(second, age_s=9)]).peers[0].bytes_per_s == 10
    file = tmp_path / "weft-0.json"
    file.write_text(json.dumps(first.devices))
    os.utime(file, (1, 1))
    done = weft("top", tmp_path, "--once", "--json", "--interval", "0.1")
    assert (json.loads(done.stdout)["processes"], json.loads(done.stdout)["silent"]) == (1, 1)


def test_lines_fit_a_terminal() -> None:
    """Whatever the numbers; in as many lines as it has."""
    big = 10**18
    paths = [row(1, big * n, f"{n}.{n}", time_outs=10**4, re_routes=10**4) for n in range(1, 40)]
    why = "EMFILE (Too many open files); raise its limit (ulimit -n), or use fewer connections"
    found = view(
        [reading(1, *[row(1, 0, f"{n}.{n}") for n in range(1, 40)])],
        [reading(2, *paths, starved=3, starved_why=why, strangers=1, damaged=2)],
    )
    missing = [Missing("x" * 80, "nobody listens")]
    lines = show.lines(found, missing, "12:00:00", 24)
    assert max(map(len, lines)) <= show.WIDTH
    assert len(lines) == 24
    assert lines[-1] == f"... {len(show.lines(found, missing, '')) - 23} more lines"
    assert [line.split(":")[0] for line in lines[2:5]] == ["eth0"] * 3
    (head,) = [line for line in lines if line.startswith("  path")]
    assert head.endswith("con"), "uncut"


def test_names_in_files_do_not_command_the_terminal() -> None:
    """Other users write into a directory of counters."""
    one = reading(1, row(1, 5) | {"peer": "10.0.0.2\n\x1b[2J"})
    text = show.lines(view([one]), [], "12:00:00")
    assert all(line.isprintable() for line in text)
    assert any("to 10.0.0.2??[2J: " in line for line in text)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nonsense"], "nonsense: no file and no address; write HOST:PORT"),
        (["here:0"], "here:0: ports are 1 to 65535"),
        (["here:9-8"], "here:9-8: ports are 1 to 65535"),
    ],
)
def test_bad_sources_take_one_line(words: list[str], complaint: str) -> None:
    """What, and the mend."""
    with pytest.raises(ExperimentError, match=re.escape(complaint)):
        sources.named(words)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("none.json", None, "none.json: no such file"),
        ("junk.json", "{", "junk.json: no statistics of Weft's NCCL plugin"),
        *(
            ("other.json", text, "other.json: no statistics of Weft's NCCL plugin")
            for text in (
                '[{"device": 1}]',
                '{"device": "x"}',
                '[{"device": "x", "address": 5, "starved": 0, "paths": []}]',
                '[{"device": "x", "address": null, "starved": "0", "paths": []}]',
            )
        ),
    ],
)
def test_files_that_are_none_take_one_line(
    name: str, text: str | None, complaint: str, weft: Weft, tmp_path: Path
) -> None:
    """Before any second look."""
    if text is not None:
        (tmp_path / name).write_text(text)
    done = weft("top", name, "--once")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {complaint}\n"


def test_a_file_that_is_too_deep_is_none(tmp_path: Path) -> None:
    """Python's own limit is no mistake of Weft's."""
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (found,) = sources.File(tmp_path / "deep.json").read()
    assert isinstance(found, Missing)
    assert found.why == "no statistics of Weft's NCCL plugin"


def test_a_file_of_a_job_that_has_ended(weft: Weft, tmp_path: Path) -> None:
    """Shares of all that it has sent."""
    device = reading(1, row(1, 300, "0.0", open=0), row(1, 100, "1.0", open=0)).devices
    (tmp_path / "weft-1.json").write_text(json.dumps(device))
    done = weft("top", "weft-1.json", "--once")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"  \d", line)]
    assert [(one[0], one[-6], one[-4]) for one in rows] == [
        ("0.0", "75", "1.50"),
        ("1.0", "25", "0.50"),
    ]
