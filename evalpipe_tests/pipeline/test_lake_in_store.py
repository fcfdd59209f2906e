"""The tiny workspace with its lake in a real S3 server, on two machines: two copies of it that share the bucket."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalpipe.lake import SCHEMAS, Lake, leases, working_copy
from evalpipe_tests.object_stores import StoreServer
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, copy_of, finish, killed_at_the_end, wait_until

pytestmark = pytest.mark.slow

URL = "s3://lake/shop"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreServer]:
    found = StoreServer(tmp_path / "s3")
    found.start()
    found.make_bucket("lake")
    yield found
    found.kill()


def _machine(walk: Walk, root: Path, server: StoreServer, *, empty: bool) -> TinyWorkspace:
    """A copy of the workspace that has its lake in the bucket; when `empty`, with nothing of it here."""
    tiny = copy_of(walk.tiny, root)
    tiny.write("data/lake.yaml", f"url: {URL}\n")
    if empty:
        shutil.rmtree(root / "data/state")
        for path in tiny.lake.iterdir():
            if path.name != "environments":  # made of this machine's programs, and named by the frozen set
                shutil.rmtree(path)
    return TinyWorkspace(tiny.root, {**tiny.variables, **server.variables})


def _outcomes(root: Path, server: StoreServer, agent: str) -> Counter[tuple[str, ...]]:
    """What the store has of an agent: the outcomes of the attempts at each sample, as a third machine reads them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.variables.items():
            patch.setenv(name, value)
        rows: list[dict[str, Any]] = Lake(root, URL).read("agent_runs", "small", agent).to_pylist()
    found: dict[tuple[str, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: row["attempt"]):
        found.setdefault((row["task_id"], row["sample"]), []).append(row["outcome"])
    return Counter(map(tuple, found.values()))


def test_a_sweep_goes_on_over_a_store_that_dies_and_a_machine_that_dies(
    begun: Walk, finished: Walk, server: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = _machine(begun, tmp_path / "here", server, empty=False)
    there = _machine(begun, tmp_path / "there", server, empty=True)
    assert f"files are in {URL} now" in here.succeed("lake", "push").out

    # The store dies while two attempts are under way: they end, are kept here, and are in the store afterwards.
    here.gate.hold_from(here.gate.begun())
    with killed_at_the_end(here.start("run", "small", "--agent", "reference")) as process:
        wait_until(lambda: _outcomes(tmp_path / "a", server, "reference")[("interrupted",)] > 0, "an attempt is noted")
        server.kill()
        here.gate.open()
        ended = finish(process)
    assert ended.code == 1
    assert f"{URL} cannot be reached" in ended.err
    assert "Traceback" not in ended.err
    server.start()
    here.succeed("status")
    kept = _outcomes(tmp_path / "b", server, "reference")
    assert kept.keys() == {("finished",)}

    # This machine dies while two attempts are under way: another one goes on, when their leases have run out.
    started = here.gate.begun()
    here.gate.hold_from(started)
    with killed_at_the_end(here.start("run", "small", "--agent", "reference", "--agent", "half")) as process:
        wait_until(lambda: here.gate.begun() > started, "an attempt begins")
        process.kill()
        process.wait()
    here.gate.open()
    monkeypatch.setattr(leases, "LEASE_S", 2.0)
    monkeypatch.setattr(working_copy, "FRESH_S", 0.0)
    there.succeed("mine")
    there.succeed("run", "small")
    outcomes = _outcomes(tmp_path / "c", server, "reference")
    assert outcomes[("finished",)] >= kept[("finished",)]
    assert outcomes.keys() <= {("finished",), ("interrupted", "finished")}
    assert outcomes.total() == 4

    # What the other machine made of it is what one machine alone makes of it, and the first one knows all of it.
    there.succeed("grade", "small")
    report = there.succeed("report", "small", "--json").json()
    assert _without_place(report) == _without_place(finished.answers["report"].json())
    assert here.succeed("status", "--json").json()["next_steps"] == []
    assert "in order" in there.succeed("lake", "verify").out
    assert "in order" in here.succeed("lake", "verify").out
    bucket = server.folder / "buckets/lake/shop"
    assert (bucket / "reports/small/report.html").read_bytes() == (
        there.lake / "reports/small/report.html"
    ).read_bytes()
    assert {path.name for path in bucket.iterdir()} <= {*SCHEMAS, "blobs", "manifests", "reports", ".leases", ".checks"}


def _without_place(report: dict[str, Any]) -> dict[str, Any]:
    """What a report says, without where it is, when it was made and how long attempts took."""
    return {name: report[name] for name in ("agents", "comparisons", "categories")}


def test_the_doctor_says_what_is_wrong_with_a_store(begun: Walk, server: StoreServer, tmp_path: Path) -> None:
    tiny = _machine(begun, tmp_path / "here", server, empty=False)

    def lake(**variables: str) -> dict[str, Any]:
        found = tiny.call("doctor", "--json", variables=variables).json()
        (one,) = [finding for finding in found if finding["name"] == "lake"]
        return dict(one)

    assert lake()["ok"]
    denied = lake(AWS_SECRET_ACCESS_KEY="wrong")
    assert (denied["ok"], denied["required"]) == (False, True)
    assert "access denied" in denied["detail"]
    assert "right to list the bucket" in denied["remedy"]
    tiny.write("data/lake.yaml", "url: s3://no-such-bucket\n")
    assert "there is no bucket no-such-bucket" in lake()["detail"]
    tiny.write("data/lake.yaml", "url: https://lake.example\n")
    assert "write it as s3://bucket/folder" in lake()["detail"]
    tiny.write("data/lake.yaml", "url: s3://lake\n")
    server.kill()
    assert "cannot be reached" in lake()["detail"]
    status = tiny.call("status")
    assert (status.code, status.out) == (1, "")
    assert "s3://lake cannot be reached" in status.err
    assert "Traceback" not in status.err
