"""`weft.simulate` and the package as Python sees it."""

from __future__ import annotations

import builtins
import importlib.util
import json
import math
import multiprocessing
import pickle
import re
import shutil
import subprocess
import sys
import tomllib
import traceback
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import weft as package
from conftest import SMALL, STALLS, Weft
from weft import catalogue

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_simulate_takes_a_dict_and_a_path(small: Path) -> None:
    """Both give the same frames."""
    from_path = package.simulate(small)
    from_dict = package.simulate(tomllib.loads(SMALL))
    assert from_path.runs.height == 6
    assert_frame_equal(from_path.runs.drop("experiment"), from_dict.runs.drop("experiment"))
    assert_frame_equal(from_path.flows.drop("experiment"), from_dict.flows.drop("experiment"))
    assert from_path.flows.height == 6 * 4 * 3
    assert set(from_path.series["kind"]) == {"port", "switch"}
    assert "ethereal" in str(from_path)


def test_simulate_equals_the_command_line(weft: Weft, small: Path, tmp_path: Path) -> None:
    """The same experiment gives the same numbers either way."""
    assert weft("run", small, "-o", "out", "--no-report", "-q").returncode == 0
    result = package.simulate(small, jobs=1)
    for name in ("runs", "flows", "links", "series"):
        assert_frame_equal(
            getattr(result, name), pl.read_parquet(tmp_path / "out" / f"{name}.parquet")
        )


def test_seeds_can_be_given(small: Path) -> None:
    """They replace the experiment's."""
    assert package.simulate(small, seeds=1).runs["seed"].to_list() == [1, 1, 1]


def test_wrong_experiment_is_one_line() -> None:
    """And a ValueError, for those who do not know Weft's own."""
    with pytest.raises(package.ExperimentError) as caught:
        package.simulate({"workload": {"pattern": "all-to-all", "size": 16}})
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def _nested(depth: int) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for _ in range(depth):
        table = {"x": table}
    return table


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seeds": -1}, "seeds: -1 is out of range; use 1 or more"),
        ({"seeds": 2.5}, "seeds: 2.5 is not a whole number; use 1 or more"),
        ({"seeds": 1 << 32}, "seeds: 4294967296 is out of range; use 4294967295 at most"),
        ({"jobs": 0}, "jobs: 0 is out of range; use 1 or more"),
        ({"threads": 0}, "threads: 0 is out of range; use 1 or more"),
        ({"balance": {"batch": math.nan}}, "experiment: balance.batch: not a finite number"),
        ({"sweep": {"x": [1, math.inf]}}, r"experiment: sweep.x\[1\]: not a finite number"),
        ({"sweep": {"x": [1 << 63]}}, r"experiment: sweep.x\[0\]: 9223372036854775808 has more"),
        ({"sweep": {(1, 2): 3}}, "experiment: keys must be str"),
        ({"sweep": _nested(5000)}, "experiment: maximum recursion depth"),
    ],
)
def test_mistakes_of_python_callers(change: dict[str, Any], said: str) -> None:
    """What a file cannot hold gets a line of the same kind."""
    counts = {key: change.pop(key) for key in ("seeds", "jobs", "threads") if key in change}
    with pytest.raises(package.ExperimentError, match=said):
        package.simulate(tomllib.loads(SMALL) | change, **counts)


def test_traffic_alone_is_no_experiment(tmp_path: Path) -> None:
    """Python has no fabric for it, as `weft run` has."""
    (tmp_path / "a.csv").write_text("src,dst,size\n0,1,1MB\n")
    with pytest.raises(package.ExperimentError, match=r"without a fabric; .*as workload\.file$"):
        package.simulate(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["ExperimentError", "StallError"])
def test_exceptions_say_where_they_are_found(name: str) -> None:
    """In tracebacks, and for `multiprocessing`, which pickles them."""
    kind = getattr(package, name)
    assert traceback.format_exception_only(kind("why")) == [f"weft.{name}: why\n"]
    assert isinstance(pickle.loads(pickle.dumps(kind("why"))), kind)


def test_what_is_never_raised_can_still_be_imported() -> None:
    """With a warning at the line that does."""
    with pytest.warns(DeprecationWarning, match=r"weft\.Cancelled is never raised") as caught:
        assert issubclass(package.Cancelled, RuntimeError)
    assert caught[0].filename == __file__
    assert "Cancelled" not in dir(package)


def times(way: str) -> list[float]:
    """Of a simulation in a child, after one here."""
    package.simulate(tomllib.loads(SMALL))
    with multiprocessing.get_context(way).Pool(1) as pool:
        return pool.apply_async(simulated).get(timeout=60)


def simulated() -> list[float]:
    """What a child says."""
    return package.simulate(tomllib.loads(SMALL)).runs["cct_s"].to_list()


def test_a_forked_child_does_not_wait_for_threads_that_it_lacks() -> None:
    """It raises; one that is started by itself simulates."""
    with pytest.raises(RuntimeError, match=r"^simulate: .*get_context\(.spawn.\)$"):
        times("fork")
    assert times("spawn") == simulated()


def test_odd_experiments_warn() -> None:
    """Once for each thing, as Python warns and in the result."""
    odd = tomllib.loads(SMALL) | {"transport": {"recovery": "go-back-n"}}
    with pytest.warns(package.WeftWarning) as caught:
        result = package.simulate(odd)
    assert [str(one.message) for one in caught] == result.warnings
    assert len(result.warnings) == len(set(result.warnings)) > 0
    assert caught[0].filename == __file__
    with pytest.warns(package.WeftWarning) as caught:
        package.compare(odd["fabric"], odd["workload"], ["spray"], transport=odd["transport"])
    assert [one.filename for one in caught] == [__file__]


def test_catalogues() -> None:
    """What there is, with where it comes from."""
    assert "ethereal" in [entry["name"] for entry in package.schemes()]
    for entry in package.schemes() + package.transports():
        assert entry["summary"]
    assert package.workloads()
    assert package.topologies()
    assert "nccl-2.28" in [entry["name"] for entry in package.presets()]


def test_importing_is_cheap() -> None:
    """`import weft` and its command line load none of the heavy libraries."""
    heavy = ["polars", "matplotlib", "plotly", "numpy", "jinja2", "rich.progress", "weft._native"]
    check = f"import sys, weft, weft.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_error_has_its_name_at_once() -> None:
    """As the page about errors writes it: `weft.errors` needs no import of its own."""
    check = "import weft; print(weft.errors.DiskError.__name__)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "DiskError"


def test_what_holds_dicts_is_compared_by_them() -> None:
    """And is no key of a dict, as they are none."""
    made = [package.plan(EXAMPLES / "cluster.toml", "all-reduce:size=1MB") for _ in range(2)]
    configs = [package.switch_config(one, "linux") for one in made]
    traces = [package.trace_info(EXAMPLES / "chakra" / "gpt.0.et") for _ in range(2)]
    for one, other in (made, configs, traces):
        assert one == other
        assert not isinstance(one, Hashable)


def test_unknown_name() -> None:
    """As for any module."""
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = package.nothing_like_it
    assert {*package.__all__, "errors", "list"} == set(dir(package))
    # `from weft import *` must leave Python's `list` alone.
    assert not set(package.__all__) & set(dir(builtins))


def test_load_gives_what_the_command_line_wrote(weft: Weft, small: Path, tmp_path: Path) -> None:
    """The same frames and the same summary as from `simulate`."""
    assert weft("run", small, "-o", "out", "-q").returncode == 0
    simulated = package.simulate(small)
    for place in ("out", "out/report.html"):
        loaded = package.load(tmp_path / place)
        for name in ("runs", "flows", "links", "series"):
            assert_frame_equal(getattr(loaded, name), getattr(simulated, name))
        assert loaded.summary == simulated.summary
        assert loaded.warnings == simulated.warnings
    with pytest.raises(package.ExperimentError, match="no results there"):
        package.load(tmp_path / "nowhere")
    with pytest.raises(package.ExperimentError, match="not a directory; name the -o"):
        package.load(tmp_path / "out" / "runs.parquet")
    # Tables alone are enough, and nothing is written.
    shutil.rmtree(tmp_path / "out" / "runs")
    assert_frame_equal(package.load(tmp_path / "out").runs, simulated.runs)
    assert not (tmp_path / "out" / "runs").exists()


def test_a_notebook_shows_the_table(small: Path) -> None:
    """With the cells of the text's table, and nothing of an experiment's name as HTML."""
    result = package.simulate(small, seeds=1)
    shown = result._repr_html_()
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", shown)
    assert {"ecmp", "spray", "ethereal", "slowdown"} <= set(cells)
    drawn = str(result).split()
    numbers = [cell for cell in cells if re.fullmatch(r"\d\.\d+", cell)]
    assert len(numbers) >= 3
    assert all(number in drawn for number in numbers)
    odd = package.simulate(tomllib.loads(SMALL) | {"title": "<script>"}, seeds=1)
    assert "<caption>&lt;script&gt;</caption>" in odd._repr_html_()


def test_a_result_shows_what_the_command_line_does(weft: Weft, tmp_path: Path) -> None:
    """A table for each experiment, with its title and the columns that it asks for."""
    own = '[report]\ncolumns = ["drops"]\noverview = ["max_qps"]\n'
    (tmp_path / "a.toml").write_text(SMALL + own)
    other = SMALL.replace("small", "large").replace("16KB", "1MB").replace('"ecmp", ', "")
    (tmp_path / "b.toml").write_text(other)
    done = weft("run", "a.toml", "b.toml", "-o", "out", "-q", "--no-report")
    loaded = package.load(tmp_path / "out")
    assert str(loaded).splitlines()[0] == "A small all-to-all"
    assert " ".join(str(loaded).split("fidelity")[0].split()) in " ".join(done.stdout.split())
    captions = re.findall("<caption>([^<]*)</caption>", loaded._repr_html_())
    assert captions == ["A small all-to-all", "A large all-to-all"]


def test_a_stall_keeps_what_finished(weft: Weft, tmp_path: Path) -> None:
    """The error has the other runs, and shows who stalled; so does what the command line wrote."""
    with pytest.raises(package.StallError) as caught:
        package.simulate(tomllib.loads(STALLS))
    result = caught.value.result
    assert result is not None
    assert set(result.runs["scheme"]) == {"spray", "twill"}
    assert "\necmp: stalled (2 of 2 seeds)\n" in str(result)
    alone = tomllib.loads(STALLS)
    alone["sweep"]["balance.scheme"] = ["ecmp"]
    alone["run"] = {"fidelity": "fluid"}
    with pytest.warns(package.WeftWarning), pytest.raises(package.StallError) as caught:
        package.simulate(alone)
    assert caught.value.result is None
    (tmp_path / "stalls.toml").write_text(STALLS)
    assert weft("run", "stalls.toml", "-o", "out", "-q", "--no-report").returncode == 1
    loaded = package.load(tmp_path / "out")
    assert loaded.summary == result.summary | {"name": "stalls"}
    for text in (str(loaded), loaded._repr_html_()):
        assert "stalled (2 of 2 seeds)" in text


def test_frames_for_pandas(small: Path) -> None:
    """A frame that is not there, or Pandas that is not, takes one line."""
    result = package.simulate(small, seeds=1)
    with pytest.raises(package.ExperimentError, match="no frame 'rows'; use one of runs, flows"):
        result.to_pandas("rows")
    if importlib.util.find_spec("pandas") and importlib.util.find_spec("pyarrow"):
        assert list(result.to_pandas("flows").columns) == result.flows.columns
    else:
        with pytest.raises(package.ExperimentError, match="run: pip install pandas pyarrow"):
            result.to_pandas()


def test_results_are_equal_to_themselves(small: Path) -> None:
    """Frames compare by element, which is no answer."""
    one, other = (package.simulate(small, seeds=1) for _ in range(2))
    assert one == one
    assert one != other


def test_list_has_what_the_command_line_lists(weft: Weft) -> None:
    """And names the kinds that there are."""
    for kind in catalogue.KINDS:
        assert package.list(kind) == json.loads(weft("list", kind, "--json").stdout)
    with pytest.raises(package.ExperimentError, match="use one of schemes, transports"):
        package.list("scheme")


def test_compare_equals_the_command_line(weft: Weft, tmp_path: Path) -> None:
    """Short forms and tables alike, with further sections and a sweep."""
    fabric = "leaf-spine:leaves=2,spines=2,hosts=2,link=100Gbps,delay=500ns"
    words = ("--fabric", fabric, "--workload", "all-to-all:size=16KB", "--schemes", "ecmp,spray")
    swept = ("--sweep", "workload.size=16KB,32KB", "--transport", "congestion=swift")
    done = weft("compare", *words, *swept, "-o", "out", "-q", "--no-report")
    assert done.returncode == 0, done.stderr
    result = package.compare(
        fabric,
        {"pattern": "all-to-all", "size": "16KB"},
        ["ecmp", "spray"],
        sweep={"workload.size": ["16KB", "32KB"]},
        transport={"congestion": "swift"},
    )
    columns = ["scheme", "size_bytes", "seed", "cct_s", "bound_s"]
    order = ["scheme", "size_bytes", "seed"]
    kept = package.load(tmp_path / "out").runs
    assert_frame_equal(result.runs.select(columns).sort(order), kept.select(columns).sort(order))
    assert str(result).startswith("all-to-all on leaf-spine:")


def test_compare_takes_every_key_of_an_experiment() -> None:
    """Not only sections; the title says what tables hold, and what is none is refused."""
    fabric = {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
    place = (fabric, {"pattern": "permutation", "size": "16KB"}, ["ecmp"])
    described = "permutation (size 16KB) on leaf-spine (leaves 2, spines 2, hosts per leaf 2)"
    assert str(package.compare(*place)).startswith(f"{described}\n")
    result = package.compare(*place, title="Mine", preset="nccl-2.28", sweep={"seeds": 2})
    assert str(result).startswith("Mine\n")
    assert result.runs["seed"].to_list() == [1, 2]
    with pytest.raises(package.ExperimentError, match="sweep: is a list, not a table"):
        package.compare(*place, sweep=["a"])


def test_a_fabric_may_be_a_path() -> None:
    """As for all files; the title says what was compared, without what is swept."""
    file = Path(__file__).parents[1] / "examples" / "leaf-spine.topo"
    sizes = {"workload.size": ["1KB", "2KB"]}
    result = package.compare(file, "permutation:size=16KB", ["ecmp"], sweep=sizes)
    assert str(result).startswith(f"permutation on {file}\n")


def test_schemes_are_a_list_or_as_on_the_command_line() -> None:
    """And none is a mistake, not the usual ones."""
    place = ("leaf-spine:leaves=2,spines=2,hosts=2", "all-to-all:size=16KB")
    listed, written = (package.compare(*place, one) for one in (["ecmp", "spray"], "ecmp, spray,"))
    assert written.runs["cct_s"].to_list() == listed.runs["cct_s"].to_list()
    with pytest.raises(package.ExperimentError, match="list at least one"):
        package.compare(*place, [])


def test_plan_equals_the_command_line(weft: Weft, tmp_path: Path) -> None:
    """From files, and from dicts; it is verified, and saved as the command does."""
    cluster = """
[fabric]
topology = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
link = "100Gbps"
"""
    (tmp_path / "cluster.toml").write_text(cluster)
    words = ("--workload", "all-reduce:size=1MB", "--scheme", "ethereal", "-o", "out")
    assert weft("plan", "cluster.toml", *words).returncode == 0
    made = package.plan(tmp_path / "cluster.toml", "all-reduce:size=1MB")
    made.save(tmp_path / "saved")
    ours, theirs = (
        json.loads((tmp_path / name / "plan.json").read_text()) for name in ("saved", "out")
    )
    assert ours["steps"] == theirs["steps"]
    assert all(one.seconds >= one.bound_s for one in made.verify())
    job = {"workload": {"collective": "all-reduce", "size": "1MB"}}
    assert package.plan(tomllib.loads(cluster), job).document["steps"] == ours["steps"]
    assert "lower bound" in str(made)
    assert repr(made) == str(made)
    with pytest.raises(package.ExperimentError, match="both as dicts, or neither"):
        package.plan(tomllib.loads(cluster), "all-reduce:size=1MB")


def test_values_are_shown_as_text(small: Path) -> None:
    """Python shows the table of a result, not its frames."""
    result = package.simulate(small, seeds=1)
    assert repr(result) == str(result)
    assert "shape: (" not in repr(result)


def test_switch_config_equals_the_command_line(weft: Weft, tmp_path: Path) -> None:
    """Of a plan in memory, of its file, and of a cluster; saved as the command does."""
    made = package.plan(EXAMPLES / "cluster.toml", EXAMPLES / "job.toml")
    made.save(tmp_path / "plan")
    words = ("switch-config", "plan/plan.json", "--format", "sonic")
    assert weft(*words, "-o", "theirs", "-q").returncode == 0
    config = package.switch_config(made, "sonic")
    config.save(tmp_path / "ours")
    theirs = {path.name: path.read_text() for path in (tmp_path / "theirs").iterdir()}
    ours = {path.name: path.read_text() for path in (tmp_path / "ours").iterdir()}
    assert ours == theirs == config.files
    assert str(config) == weft(*words, "-q").stdout == repr(config)
    assert package.switch_config(tmp_path / "plan", "sonic") == config
    assert "<summary>leaf-0.json</summary>" in config._repr_html_()
    words = ("switch-config", EXAMPLES / "cluster.toml", "--scheme", "dnlb", "--format", "linux")
    one = package.switch_config(EXAMPLES / "cluster.toml", "linux", scheme="dnlb", switch="leaf-1")
    assert sorted(one.files) == ["leaf-1.rollback", "leaf-1.sh"]
    assert one.files["leaf-1.sh"] in weft(*words, "-q").stdout


def test_mistakes_about_switches() -> None:
    """One line each."""
    made = package.plan(EXAMPLES / "cluster.toml", EXAMPLES / "job.toml")
    with pytest.raises(package.ExperimentError, match="'nxos' is unknown; use one of linux, "):
        package.switch_config(made, "nxos")
    with pytest.raises(package.ExperimentError, match="remove scheme="):
        package.switch_config(made, "sonic", scheme="dnlb")
    hashed = package.plan(EXAMPLES / "cluster.toml", EXAMPLES / "job.toml", "ecmp")
    with pytest.raises(package.ExperimentError, match="plan: segments: none"):
        package.switch_config(hashed, "sonic")


def test_mistakes_name_arguments_not_options(weft: Weft, tmp_path: Path) -> None:
    """Where the command line names what it calls them."""
    cluster, work = EXAMPLES / "cluster.toml", "all-reduce:size=64KB"
    job = tmp_path / "job.toml"
    job.write_text(
        '[workload]\ncollective = "all-reduce"\nsize = "1MB"\n[balance]\nscheme = "ecmp"'
    )
    done = weft("plan", str(cluster), "--job", str(job))
    assert "is ecmp, but --scheme ethereal; leave it out here" in done.stderr
    with pytest.raises(package.ExperimentError, match="is ecmp, but scheme=ethereal; leave"):
        package.plan(cluster, job)
    with pytest.raises(package.ExperimentError, match="not a plan; add scheme=dnlb or"):
        package.switch_config(cluster, "linux")
    with pytest.raises(package.ExperimentError, match=r"^scheme: only source ports follow"):
        package.switch_config(cluster, "linux", scheme="dnlb", enforce="addresses")
    with pytest.raises(package.ExperimentError, match=r"^software: "):
        package.plan(cluster, EXAMPLES / "job.toml").hosts_for("none")
    with pytest.raises(package.ExperimentError, match=r'^fabric: topology: "none"'):
        package.compare("none", work)


def test_trace_info_equals_the_command_line(weft: Weft) -> None:
    """With and without keys of the trace's format."""
    file = EXAMPLES / "chakra" / "gpt.0.et"
    found = package.trace_info(file)
    assert str(found) == repr(found) == weft("trace", "info", file).stdout.rstrip("\n")
    roofline = package.trace_info(file, peak_tflops=900, memory_gb_s=3350)
    words = ("--peak-tflops", "900", "--memory-gb-s", "3350", "--json")
    assert roofline.document == json.loads(weft("trace", "info", file, *words).stdout)
    groups = file.with_name("gpt.json")
    assert package.trace_info(file, process_groups=groups).document == found.document
    with pytest.raises(
        package.ExperimentError, match="process_groups: a value of type object; use"
    ):
        package.trace_info(file, process_groups=object())
    assert 0 < roofline.document["compute_s"] < found.document["compute_s"]
    with pytest.raises(package.ExperimentError, match="nothing"):
        package.trace_info("nothing.et")


def test_timelines_equal_the_command_line(weft: Weft, tmp_path: Path) -> None:
    """To the byte; without a timeline one line says what is missing."""
    fabric = "leaf-spine:leaves=2,spines=2,hosts=2,link=100Gbps,delay=500ns"
    work = "all-reduce:size=64KB"
    words = ("--fabric", fabric, "--workload", work, "--schemes", "ecmp,spray", "--timeline")
    assert weft("compare", *words, "-o", "out", "-q", "--no-report").returncode == 0
    result = package.compare(fabric, work, ["ecmp", "spray"], probe={"timeline": True})
    paths = result.save_timelines(tmp_path / "ours" / "deeper")
    theirs = {path.name: path.read_bytes() for path in (tmp_path / "out" / "timeline").iterdir()}
    assert {path.name: path.read_bytes() for path in paths} == theirs
    assert len(theirs) == 2
    with pytest.raises(package.ExperimentError, match="no run has a timeline"):
        package.compare(fabric, work, ["ecmp"]).save_timelines(tmp_path / "none")
    assert not (tmp_path / "none").exists()
