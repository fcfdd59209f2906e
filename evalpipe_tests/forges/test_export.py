"""An export can be stopped anywhere, goes on, reads little the next time, and always makes the same file."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evalpipe.forges import Exported, ForgeUnreachable, OutputTaken, RateLimited
from evalpipe_tests.forges.conftest import Caller
from evalpipe_tests.forges.server import FakeItem, Fault, Request, Response
from evalpipe_tests.forges.test_github import lines

# Each takes a fraction of a second, and all of them together too long for `make check`.
pytestmark = pytest.mark.slow


class Killed(BaseException):
    """As a kill: nothing catches it."""


@pytest.fixture(params=["github", "gitlab"])
def caller(request: pytest.FixtureRequest) -> Caller:
    found: Caller = request.getfixturevalue(request.param)
    return found


def many(count: int = 320) -> list[FakeItem]:
    numbers = random.Random(3)
    return [
        FakeItem(n, pull=n % 3 == 0, updated=numbers.choice([n, n, 400]), closed=n % 2 == 0, edited=1)
        for n in range(1, count + 1)
    ]


def after(count: int, effect: Callable[[Request], Response | None]) -> Fault:
    seen = 0

    def fault(request: Request) -> Response | None:
        nonlocal seen
        seen += 1
        return effect(request) if seen > count else None

    return fault


def whole(caller: Caller, tmp_path: Path) -> bytes:
    """The file as one undisturbed export makes it."""
    caller.forge.fault = None
    clean = Caller(caller.forge, tmp_path / "clean" / "shop.jsonl")
    clean.export()
    return clean.output.read_bytes()


def killed_after(caller: Caller, requests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from evalpipe.forges.patience import Patience

    left = requests
    ask = Patience.ask

    def counted(patience: Patience, *arguments: object) -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return ask(patience, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Patience, "ask", counted)
        try:
            caller.export()
        except Killed:
            return


@pytest.mark.slow
def test_killed_at_any_request_the_next_call_goes_on(
    caller: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.forge.items = many()
    expected = whole(caller, tmp_path)
    needed = len(caller.forge.requests)
    for requests in (1, 2, *[needed * 3 // 10] * 3):
        killed_after(caller, requests, monkeypatch)
        assert not caller.output.exists()
    caller.forge.requests.clear()
    done = caller.export()
    assert caller.output.read_bytes() == expected
    assert done.changed < len(caller.forge.items)
    assert len(caller.forge.requests) < needed
    assert caller.said == []


def test_a_rerun_without_changes_asks_for_lists_alone(caller: Caller) -> None:
    caller.forge.items = many()
    caller.export()
    before, state = caller.output.read_bytes(), caller.state.read_bytes()
    stamp = caller.output.stat().st_mtime_ns
    caller.forge.requests.clear()
    assert caller.export().changed == 0
    assert len(caller.forge.requests) <= 7
    assert not [path for path in caller.forge.paths() if path.endswith(("graphql", "notes", "closed_by"))]
    assert (caller.output.read_bytes(), caller.state.read_bytes()) == (before, state)
    assert caller.output.stat().st_mtime_ns == stamp


def test_a_rerun_reads_what_is_new_and_what_changed(caller: Caller, tmp_path: Path) -> None:
    caller.forge.items = many()
    caller.export()
    caller.forge.items[4].title, caller.forge.items[4].updated = "Other", 500
    caller.forge.items.append(FakeItem(1000, created=510, updated=510))
    caller.forge.requests.clear()
    assert caller.export().changed == 2
    assert len(caller.forge.requests) < 15
    assert caller.output.read_bytes() == whole(caller, tmp_path)


def test_a_project_without_items_makes_an_empty_file(caller: Caller) -> None:
    done = caller.export()
    assert (done.issues, done.pull_requests) == (0, 0)
    assert caller.output.read_bytes() == b""
    assert caller.export().changed == 0


@pytest.mark.slow
def test_a_torn_journal_line_is_read_again(caller: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caller.forge.items = many()
    killed_after(caller, 6 if caller.forge.path == "team/shop" else 90, monkeypatch)
    content = caller.state.read_bytes()
    caller.state.write_bytes(content[:-20])
    caller.export()
    assert caller.output.read_bytes() == whole(caller, tmp_path)
    assert caller.said == []


def test_a_kill_between_the_file_and_its_journal_loses_nothing(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    caller.forge.items = many(30)
    killed_after(caller, 2, monkeypatch)
    journal = caller.state.read_bytes()
    caller.export()
    finished = caller.output.read_bytes()
    digest = json.loads(caller.state.read_bytes())["output"]
    # The file is written, and the journal still has its steps.
    caller.state.write_bytes(journal + json.dumps({"output": digest}).encode() + b"\n")
    caller.export()
    assert caller.output.read_bytes() == finished
    assert caller.said == []


@pytest.mark.parametrize("harm", ["not JSON\n", '{"format": 0}\n', "[]\n", "", '{"format": 1, "identity": {}}\n'])
def test_a_broken_journal_means_reading_everything_anew(caller: Caller, harm: str) -> None:
    caller.forge.items = many(30)
    caller.export()
    before = caller.output.read_bytes()
    caller.state.write_text(harm)
    caller.export()
    assert caller.output.read_bytes() == before
    assert any("everything is read anew" in text for text in caller.said)


def test_a_file_changed_by_hand_is_read_anew(caller: Caller) -> None:
    caller.forge.items = many(30)
    caller.export()
    before = caller.output.read_bytes()
    caller.output.write_bytes(before.replace(b"A title", b"My title"))
    caller.export()
    assert caller.output.read_bytes() == before
    assert "is not as the last export left it" in caller.said[-1]
    caller.output.unlink()
    caller.export()
    assert caller.output.read_bytes() == before


def test_another_project_is_read_anew(caller: Caller) -> None:
    caller.forge.items = many(30)
    caller.export()
    caller.token = None
    caller.export()
    assert any("another project, or with other rights" in text for text in caller.said)


def test_a_file_that_no_export_wrote_is_left_alone(caller: Caller) -> None:
    caller.output.parent.mkdir()
    caller.output.write_text("written by hand\n")
    with pytest.raises(OutputTaken, match="move it away, or name another file"):
        caller.export()
    assert caller.output.read_text() == "written by hand\n"
    assert not caller.state.exists()


def test_a_rate_limit_in_the_middle_stops_and_the_next_call_goes_on(caller: Caller, tmp_path: Path) -> None:
    caller.forge.items = many()
    expected = whole(caller, tmp_path)
    needed = len(caller.forge.requests)
    # By the server's clock, which is that of this machine.
    reset = str(int(time.time()) + 1800)
    names = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
    if caller.forge.path != "team/shop":
        names = {"RateLimit-Remaining": "0", "RateLimit-Reset": reset}
    caller.forge.fault = after(needed // 2, lambda _: Response(429, {"message": "API rate limit exceeded"}, names))
    with pytest.raises(
        RateLimited, match=r"until 2026-06-01 12:(30|29) UTC \(in 30 min\); what was read is kept"
    ) as caught:
        caller.export()
    assert caught.value.back_at.hour == 12
    assert caller.slept == []
    assert not caller.output.exists()
    caller.forge.fault = None
    done = caller.export()
    assert done.changed < 320
    assert caller.output.read_bytes() == expected


def test_a_server_that_dies_for_a_while_is_waited_for(caller: Caller, tmp_path: Path) -> None:
    caller.forge.items = many(60)
    answers = [
        Response(502, b"<html>Bad gateway</html>"),
        Response(0),
        Response(503, None),
        Response(500, ["no", "object"]),
    ]
    caller.forge.fault = after(3, lambda _: answers.pop() if answers else None)
    caller.export()
    assert caller.slept[:3] == [1.0, 2.0, 4.0]
    assert caller.output.read_bytes() == whole(caller, tmp_path)


def test_a_server_that_stays_down_ends_the_export_with_what_there_is(caller: Caller) -> None:
    caller.forge.items = many(60)
    caller.forge.fault = after(3, lambda _: Response(503, {"message": "down"}))
    with pytest.raises(ForgeUnreachable, match=r"error 503 again and again; what was read is kept"):
        caller.export()
    assert caller.slept == [1.0, 2.0, 4.0, 8.0]
    assert caller.state.exists()


def test_the_same_texts_make_the_same_file_in_any_order(caller: Caller, tmp_path: Path) -> None:
    caller.forge.items = many(50)
    expected = whole(caller, tmp_path)
    random.Random(1).shuffle(caller.forge.items)
    done: Exported = caller.export()
    assert caller.output.read_bytes() == expected
    keys = [(line["number"], line["kind"]) for line in lines(caller)]
    assert keys == sorted(keys)
    assert done.issues + done.pull_requests == 50
