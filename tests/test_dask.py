"""Sweeps on workers of Dask: the same bytes, whoever comes, goes or is of another version."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest

import sweeps
from conftest import SMALL, Weft, command, heard, start, until
from dask_workers import scheduler
from test_sweep import run_folders, same_tables
from weft.errors import ClusterError, ExperimentError
from weft.study import inputs, store
from weft.study.cluster import dispatcher, files, places, slurm, worker
from weft.study.executor import Parallelism
from weft.study.progress import Silent
from weft.study.sweep import execute

LONG = """
[fabric]
topology = "leaf-spine"
leaves = 4
spines = 4
hosts_per_leaf = 8
[workload]
pattern = "all-to-all"
size = "2MB"
[sweep]
"balance.scheme" = ["ecmp", "spray"]
seeds = 3
"""
OLD = "from weft import _native\n_native.code_version = '0.0.9+old'\n"
DEADLY = """
import os
from weft import _native
_native.real = getattr(_native, "real", _native.run)
def run(experiment, seed, *rest, **cores):
    if '"spray"' in experiment and seed == 2:
        os._exit(1)
    return _native.real(experiment, seed, *rest, **cores)
_native.run = run
"""
"""Dask may load it twice."""


class Sweep:
    """A sweep that goes on, and what it has said so far."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._said = folder / "said"
        with self._said.open("w") as said:
            self.process = subprocess.Popen(
                command(*words), cwd=folder, stdout=subprocess.DEVNULL, stderr=said, text=True
            )

    def says(self, words: str) -> bool:
        """Whether it has said this."""
        return words in self._said.read_text()

    def ends(self) -> list[str]:
        """All its lines, when it has ended well."""
        self.process.wait(timeout=120)
        lines = self._said.read_text().splitlines()
        assert self.process.returncode == 0, lines
        return lines


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_run_and_no_result(weft: Weft, tmp_path: Path) -> None:
    """Several processes, one killed in the middle of a run: the bytes of a sweep without them."""
    (tmp_path / "long.toml").write_text(LONG)
    with scheduler(tmp_path) as cluster:
        cluster.start(3)
        until(lambda: cluster.has(3))
        sweep = Sweep(tmp_path, "run", "long.toml", "--on", cluster.address, "-o", "far")
        # Runs follow each other at once: each worker is at one of them.
        until(lambda: sweep.says("[1/6] "))
        cluster.workers[0].kill()
        lines = sweep.ends()
    assert "3 workers, 3 runs at once" in lines
    # Where runs are expected to be short, workers have the next one as well.
    gone = re.compile(r"worker .* is gone; done again elsewhere: (1 run|2 runs); 2 workers left")
    assert sum(gone.fullmatch(line) is not None for line in lines) == 1, lines
    assert sum(": CCT " in line for line in lines) == 6
    assert weft("run", "long.toml", "-o", "near", "-q", "--no-report").returncode == 0
    assert same_tables(tmp_path / "far", tmp_path / "near")
    near, far = ((tmp_path / name / "study.json").read_text() for name in ("near", "far"))
    assert far.replace("-o far", "-o near") == near.replace(" --no-report", "")


@pytest.mark.slow
def test_workers_may_come_late_and_those_of_another_version_get_nothing(tmp_path: Path) -> None:
    """With none but those the command is refused, in one line, before anything is sent."""
    (tmp_path / "small.toml").write_text(SMALL)
    with scheduler(tmp_path) as cluster:
        words = ("run", "small.toml", "--on", cluster.address, "--no-report")
        late = Sweep(tmp_path, *words, "-o", "out")
        until(lambda: late.says(f"no worker at {cluster.address} yet: waiting for one"))
        cluster.start(preload=OLD)
        until(lambda: late.says("gets no work: Weft 0.0.9+old there, Weft "))
        refused = subprocess.run(command(*words), cwd=tmp_path, capture_output=True, text=True)
        cluster.start()
        lines = late.ends()
    assert sum(": CCT " in line for line in lines) == 6
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: worker tcp://127.0.0.1:")
    assert refused.stderr.endswith(" here; install the same version on both\n")
    assert refused.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_run_that_ends_every_worker_is_given_up(tmp_path: Path) -> None:
    """Exit status 1 and one line, the others are kept; without a scheduler that is one line too."""
    (tmp_path / "small.toml").write_text(SMALL)
    words = ("run", "small.toml", "-o", "out", "--no-report", "-q", "--on")
    with scheduler(tmp_path) as cluster:
        cluster.start(4, preload=DEADLY)
        until(lambda: cluster.has(4))
        done = subprocess.run(
            command(*words, cluster.address), cwd=tmp_path, capture_output=True, text=True
        )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("lost: small spray seed 2: its worker ended 3 times before it")
    assert done.stderr.count("\n") == 1
    assert len(run_folders(tmp_path / "out")) == 5


@pytest.mark.slow
def test_interrupt_ends_workers_and_keeps_what_had_finished(tmp_path: Path) -> None:
    """Ctrl-C reaches the local workers as well; none of them says anything."""
    (tmp_path / "long.toml").write_text(LONG.replace("seeds = 3", "seeds = 30"))
    running = start(
        *("run", "long.toml", "-o", "cut", "--no-report", "--on", "local:workers=2"), cwd=tmp_path
    )
    until(lambda: bool(run_folders(tmp_path / "cut")))
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    kept = len(run_folders(tmp_path / "cut"))
    assert running.returncode == 130
    assert said.splitlines()[0] == "2 workers, 2 runs at once"
    assert said.splitlines()[-1].startswith(f"interrupted: {kept} of 60 runs had finished")
    assert said.endswith("weft run long.toml -o cut --no-report --on local:workers=2\n")
    assert "Traceback" not in said


def _in_threads() -> Any:
    """A cluster in this process, over TCP."""
    import distributed

    return distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        protocol="tcp://",
        dashboard_address=":0",
        silence_logs=50,
    )


def test_many_short_runs_take_few_messages(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message to a worker has many of them; the store gets the same files as without workers."""
    sent = []
    real = worker.request
    monkeypatch.setattr(worker, "request", lambda *call: sent.append(call) or real(*call))
    runs = inputs.from_file(small, seeds=100).runs
    far, near = (store.DirectoryStore(tmp_path / name) for name in ("far", "near"))
    with (
        _in_threads() as cluster,
        places.opened(places.Place(cluster.scheduler_address, {}, ""), None, None) as dispatcher,
    ):
        parallelism = Parallelism(elsewhere=lambda: dispatcher)
        assert execute(runs, far, parallelism, Silent()).done == len(runs) == 300
    assert 2 < len(sent) < 100
    execute(runs[:6], near, Parallelism(), Silent())
    for spec in runs[:6]:
        for name in store.ALWAYS:
            files = [
                tmp_path / at / "runs" / spec["key"] / f"{name}.parquet" for at in ("far", "near")
            ]
            assert files[0].read_bytes() == files[1].read_bytes()


def test_a_worker_of_another_version_simulates_nothing() -> None:
    """Even if it has come to the address of one that was asked."""
    task = worker.Task("key", "{}", 1)
    answer = worker.simulate(worker.Chunk("sweep", "0.0.9+old", [task], None, 1, False, {}))
    assert answer == worker.Answer(worker.code_version(), [])
    assert answer.code_version != "0.0.9+old"


def test_files_travel_to_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload file that is not where the worker is; messages name it as it is named here."""
    (tmp_path / "some.csv").write_text("src,dst,size\n0,1,1000\n1,2,2000\n")
    monkeypatch.chdir(tmp_path)
    experiment = {
        "fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        "workload": {"file": "some.csv"},
        "balance": {"scheme": "ecmp"},
    }
    runs, kept = inputs.from_dict(experiment).runs, store.RowStore()
    with (
        _in_threads() as cluster,
        places.opened(places.Place(cluster.scheduler_address, {}, ""), None, None) as dispatcher,
    ):
        real = dispatcher._send

        def send() -> None:
            # Worker and sweep are one process here, but what follows is the worker's alone.
            (tmp_path / "elsewhere").mkdir(exist_ok=True)
            monkeypatch.chdir(tmp_path / "elsewhere")
            real()

        monkeypatch.setattr(dispatcher, "_send", send)
        assert execute(runs, kept, Parallelism(elsewhere=lambda: dispatcher), Silent()).done == 1
    assert kept.record(runs[0]["key"])["row"]["workload"] == "some.csv"


def test_traces_travel_with_the_files_of_all_ranks(tmp_path: Path) -> None:
    """And go into one folder under their own names, in which messages do not show them."""
    for name in ("gpt.0.et", "gpt.1.et", "gpt.json", "groups.json", "gpt2.0.et"):
        (tmp_path / name).touch()
    workload = {
        "trace": str(tmp_path / "gpt.0.et"),
        "process_groups": str(tmp_path / "groups.json"),
    }
    spec = sweeps.specs({}, 1, workload={"jobs": {"a": workload}})[0]
    needed = files.needed([spec])
    assert [path.name for path in needed.values()] == ["gpt.0.et", "gpt.1.et", "groups.json"]
    there = tmp_path / "worker"
    moved = files.moved(spec["experiment"], there)["workload"]["jobs"]["a"]
    assert set(moved.values()) == {str(there / place) for place in needed if "gpt.1" not in place}
    said = f"{moved['trace']} is empty"
    assert files.as_named(said, there, files.folders(needed)) == f"{tmp_path}/gpt.0.et is empty"


def test_files_of_ranks_that_differ_in_numbers_travel(tmp_path: Path) -> None:
    """Of a trace and of its execution traces; a file of messages is alone."""
    there = ("kineto_0.json", "kineto_12.json", "host7.json", "host8.json", "all_1.csv")
    for name in (*there, "kineto_a.json", "host.json", "all_2.csv"):
        (tmp_path / name).touch()
    jobs = {
        "a": {
            "trace": str(tmp_path / "kineto_12.json"),
            "execution_trace": str(tmp_path / "host7.json"),
        },
        "b": {"file": str(tmp_path / "all_1.csv")},
    }
    needed = files.needed(sweeps.specs({}, 1, workload={"jobs": jobs}))
    assert {path.name for path in needed.values()} == set(there)


def _job_of_ranks(folder: Path, ranks: int) -> dict[str, Any]:
    """An experiment with a trace that has a file for each rank."""
    programme = {"workload_graph": [{"Id": 1, "Name": "a", "NodeType": 4, "runtime": 5}]}
    for rank in range(ranks):
        (folder / f"job_{rank}.json").write_text(json.dumps(programme))
    return {
        "fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        "workload": {"trace": str(folder / "job_0.json")},
        "balance": {"scheme": "ecmp"},
    }


def test_workers_keep_no_files_of_other_commands(tmp_path: Path) -> None:
    """They would be further ranks of a trace of the same name."""
    with _in_threads() as cluster:
        for ranks in (2, 1):
            (spec,) = inputs.from_dict(_job_of_ranks(tmp_path, ranks)).runs
            place = places.Place(cluster.scheduler_address, {}, "")
            with places.opened(place, None, None) as dispatcher:
                parallelism = Parallelism(elsewhere=lambda made=dispatcher: made)
                kept = store.RowStore()
                assert execute([spec], kept, parallelism, Silent()).done == 1
            (tmp_path / "job_1.json").unlink(missing_ok=True)
        (one,) = cluster.workers.values()
        assert not any((Path(one.local_directory) / "weft").iterdir())


@pytest.mark.parametrize("same", [True, False])
def test_a_worker_with_other_files_simulates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    """Where not all ranks of a trace have come, say: the run would be another one."""
    (spec,) = inputs.from_dict(_job_of_ranks(tmp_path, 2)).runs
    needed = files.needed([spec])
    monkeypatch.setattr(worker, "_folder", lambda *_: tmp_path / "there")
    come = list(needed.items())[: 2 if same else 1]
    worker.keep_files("sweep", {place: path.read_bytes() for place, path in come})
    task = worker.Task(spec["key"], json.dumps(spec["experiment"]), spec["seed"])
    chunk = worker.Chunk(
        "sweep", worker.code_version(), [task], None, 1, False, files.folders(needed)
    )
    (done,) = worker.simulate(chunk).runs
    assert (done.packed is not None) == same
    if not same:
        assert isinstance(done.error, ExperimentError)
        assert "are not the same on the worker; run it again" in str(done.error)


SBATCH = """#!/bin/sh
cp "$1" job.sh
setsid sh job.sh > job.log 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job; do kill -- -"$job" && echo "$job" >> cancelled; done
"""


@pytest.mark.slow
def test_slurm_jobs_are_submitted_and_cancelled(tmp_path: Path) -> None:
    """Through dask-jobqueue, with an `sbatch` that starts the job on this machine."""
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    (tmp_path / "small.toml").write_text(SMALL)
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    on = "slurm:queue=batch,account=me,cores=2,memory=2GB,walltime=0:10:00,interface=lo"
    done = subprocess.run(
        command("run", "small.toml", "-o", "out", "--no-report", "--on", on),
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert len(run_folders(tmp_path / "out")) == 6
    job = (tmp_path / "job.sh").read_text()
    for line in ("-p batch", "-A me", "--cpus-per-task=2", "--mem=2G", "-t 0:10:00"):
        assert f"#SBATCH {line}\n" in job
    assert f"{sys.executable} -m distributed.cli.dask_worker tcp://127.0.0.1:" in job
    assert len((tmp_path / "cancelled").read_text().split()) == 1


@pytest.mark.slow
def test_local_workers_do_not_wait_for_memory() -> None:
    """Nobody would free it: near its limit a worker of Dask takes no work."""
    from dask import config

    place = places.Place("local", {"workers": "1"}, "")
    with places.opened(place, None, None) as dispatcher:
        (pause,) = dispatcher._client.run(config.get, "distributed.worker.memory.pause").values()
    assert pause is False


REFUSES = """#!/bin/sh
echo "sbatch: error: invalid partition specified: batch" >&2
exit 1
"""


@pytest.mark.parametrize(
    ("sbatch", "said"),
    [
        (None, "there is no sbatch here; run this where jobs are submitted"),
        (REFUSES, "sbatch takes no such job: sbatch: error: invalid partition specified: batch"),
        ("#!/bin/sh\nexit 1\n", "sbatch takes no such job: no reason given"),
    ],
)
def test_jobs_that_cannot_be_submitted_take_one_line(
    tmp_path: Path, sbatch: str | None, said: str
) -> None:
    """At once, where a sweep would wait for workers that never come."""
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    (tmp_path / "small.toml").write_text(SMALL)
    if sbatch is not None:
        (tmp_path / "sbatch").write_text(sbatch)
        (tmp_path / "sbatch").chmod(0o755)
    # A time at the end is no port of a scheduler.
    on = "slurm:queue=batch,cores=2,memory=2GB,interface=lo,walltime=0:10:00"
    done = subprocess.run(
        command("run", "small.toml", "-o", "out", "--no-report", "--on", on),
        cwd=tmp_path,
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr == f"error: --on {on}: {said}\n"


def _on_path(folder: Path, **scripts: str) -> None:
    """Put scripts into a folder, in place of Slurm's commands."""
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


def _slurm_sweep(folder: Path, jobs: int) -> subprocess.Popen[str]:
    """A sweep on jobs of Slurm, with a process each."""
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    (folder / "small.toml").write_text(SMALL)
    on = f"slurm:queue=batch,cores=1,memory=2GB,interface=lo,jobs={jobs}"
    with heard(signal.SIGINT, signal.SIGHUP):
        return subprocess.Popen(
            command("run", "small.toml", "--no-report", "--on", on),
            cwd=folder,
            env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"},
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_sweep_whose_slurm_job_waits_is_interrupted(
    tmp_path: Path, number: signal.Signals
) -> None:
    """As every sweep, and its job is cancelled; the line has what squeue says of it alone."""
    state = "echo '7 PENDING (Priority)'; echo '8 RUNNING (None)'"
    cancel = "echo $1 >> cancelled"
    _on_path(tmp_path, sbatch="echo Submitted batch job 7", scancel=cancel, squeue=state)
    process = _slurm_sweep(tmp_path, jobs=1)
    assert process.stderr
    line = process.stderr.readline()
    assert line == "waiting for a worker; see squeue (1 PENDING (Priority))\n"
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stderr.startswith("interrupted: 0 of 6 runs had finished")
    assert stderr.count("\n") == 1
    assert (tmp_path / "cancelled").read_text() == "7\n"


TAKES_ONE = """
mkdir taken 2> /dev/null || { echo "sbatch: error: limit [1] reached" >&2; exit 1; }
cp "$1" job.sh
setsid sh job.sh > job.log 2>&1 &
echo "Submitted batch job $!"
"""


@pytest.mark.slow
def test_jobs_that_slurm_refuses_beside_others_are_warned_of(tmp_path: Path) -> None:
    """The sweep goes on with those that it takes."""
    _on_path(tmp_path, sbatch=TAKES_ONE, scancel='kill -- -"$1"')
    process = _slurm_sweep(tmp_path, jobs=3)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    warned = [line for line in stderr.splitlines() if line.startswith("sbatch refuses ")]
    assert warned, stderr
    words = "sbatch: error: limit [1] reached; the sweep goes on without"
    assert {line.partition(": ")[2] for line in warned} == {words}
    assert sum(": CCT " in line for line in stderr.splitlines()) == 6


class _Queue:
    """Jobs that stay in the queue, until none is left."""

    left = True

    def told(self) -> list[str]:
        return []

    def missing(self, there: int) -> str | None:
        return f"waiting for {2 - there} workers" if there < 2 else None

    def over(self) -> str | None:
        return None if self.left else "no job is left"


@pytest.mark.parametrize(
    ("supply", "said"),
    [(_Queue(), "waiting for 2 workers"), (None, "still no worker at tcp://here: ")],
)
def test_what_is_waited_for_is_said_again(
    monkeypatch: pytest.MonkeyPatch, supply: _Queue | None, said: str
) -> None:
    """Ever more rarely; when nothing will come the sweep ends."""
    monkeypatch.setattr(dispatcher, "_LOOK_S", 0.0)
    monkeypatch.setattr(dispatcher, "_REMIND_S", 0.1)
    scheduler = types.SimpleNamespace(address="tcp://here")
    client = types.SimpleNamespace(scheduler=scheduler, nthreads=dict)
    waits = dispatcher.Dispatcher(client, None, None, supply)
    forecast: Any = None
    waits.begin([], store.RowStore(), forecast)
    assert len(waits.remarks()) == 1
    times: list[float] = []
    while len(times) < 3:
        waits.ended(0.01)
        times += [time.monotonic() for line in waits.remarks() if line.startswith(said)]
    first, second, third = times
    assert third - second > second - first > 0.15
    if supply:
        supply.left = False
        with pytest.raises(ClusterError, match="no job is left"):
            waits.ended(0.01)


def test_jobs_of_slurm_are_over_when_all_were_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has ended before may be submitted again."""
    monkeypatch.setenv("PATH", "")
    jobs = slurm.Jobs(2)
    jobs._take("7", 4)
    jobs.wait()
    assert (jobs.missing(1), jobs.missing(4)) == ("waiting for 3 workers; see squeue", None)
    jobs._refuse("limit")
    jobs._taken.clear()
    assert jobs.over() is None
    jobs._refuse("limit")
    assert jobs.over() == "no job is left, and sbatch takes no other: limit"
    assert jobs.told() == ["sbatch refuses 2 jobs: limit; the sweep goes on without"]
    assert jobs.told() == []


def test_jobs_of_slurm_that_ended_without_a_worker_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once squeue has said twice that none of the same jobs is there."""
    queue: dict[str, str] | None = {"7": "PENDING (Priority)"}
    monkeypatch.setattr(slurm, "_GONE_S", 0.0)
    monkeypatch.setattr(slurm, "_known", lambda: queue)
    jobs = slurm.Jobs(2)
    jobs._take("7", 1)
    jobs._take("8", 1)
    assert jobs.over() is None
    queue = {"5": "RUNNING (None)"}
    assert jobs.over() is None
    # One that had a worker is submitted again; squeue may not answer.
    jobs._take("9", jobs._taken.pop("8"))
    assert jobs.over() is None
    queue = None
    assert jobs.over() is None
    queue = {}
    assert jobs.over() is None
    assert str(jobs.over()).startswith("all jobs have ended (7 and 1 more), and no worker is there")


def test_kubernetes_is_told_what_it_knows() -> None:
    """There is no Kubernetes to try it on: only names of arguments are compared."""
    operator = pytest.importorskip(
        "dask_kubernetes.operator", reason="dask-kubernetes is not installed"
    )
    told: dict[str, Any] = {}
    given = {"workers": 4, "image": "weft", "namespace": "a", "name": "b", "cores": "1"}
    assert given.keys() | {"memory"} == places.KINDS["kubernetes"].keys.keys()
    recorder = types.SimpleNamespace(KubeCluster=lambda **words: told.update(words))
    places.KINDS["kubernetes"].start(recorder, given | {"memory": "2GB"}, None)
    assert told.pop("resources")["limits"] == {"cpu": "1", "memory": "2GB"}
    assert told.keys() <= inspect.signature(operator.KubeCluster.__init__).parameters.keys()


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the packages to install."""
    monkeypatch.setitem(sys.modules, "dask_kubernetes.operator", None)
    place = places.Place("kubernetes", {}, "kubernetes")
    with (
        pytest.raises(ExperimentError, match="; pip install distributed dask-kubernetes"),
        places.opened(place, None, None),
    ):
        pass


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("slurm:queu=batch", 'unknown key queu; did you mean "queue"?'),
        ("slurm:cores=all,memory=1GB", "cores = 'all' is not a number from 1 on; correct it"),
        ("slurm:queue=batch,cores=2", "no memory of a job; add cores=16,memory=32GB"),
        ("slurn:queue=batch", 'did you mean "slurm"?; or write HOST:PORT of a Dask scheduler'),
        ("slurm:queue", "no key and value; write --on key=value"),
        ("slurm:cores=2,memory=32", "memory = '32' is not a size with a unit; write 4GB"),
        ("local:memory=4", "memory = '4' is not a size with a unit; write 4GB"),
        ("local:memory=200MB", "'200MB' is too little for a process; give it at least 256MB"),
        ("local:workers=1,workers=2", "workers is given twice; remove one of them"),
        (
            "tls://127.0.0.1:1",
            "no certificates for TLS; name them in Dask's configuration: ca-file",
        ),
    ],
)
def test_wrong_places_take_one_line(small: Path, weft: Weft, on: str, said: str) -> None:
    """Before anything is started."""
    if said.startswith("no memory"):
        pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    done = weft("run", small, "--on", on)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --on ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
