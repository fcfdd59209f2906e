"""What the command line says while it works, where there is no terminal."""

import pytest

from evalpipe import console


def test_a_log_has_four_lines_with_what_is_done_and_the_time_left_at_that_pace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("evalpipe.console.time.monotonic", lambda: now[0])
    with console.progress("runs", 8) as advance:
        for done in range(1, 9):
            advance(0, note="2 running")
            now[0] = 60.0 * done if done < 7 else 365.0 + done
            advance(note=f"{done} finished")
    assert capsys.readouterr().err.splitlines() == [
        "runs: 2 of 8 (2 finished), 6 min left",
        "runs: 4 of 8 (4 finished), 4 min left",
        "runs: 6 of 8 (6 finished), 2 min left",
        "runs: 8 of 8 (8 finished)",
    ]


def test_seconds_are_told_from_ten_on(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("evalpipe.console.time.monotonic", lambda: now[0])
    with console.progress("runs", 4) as advance:
        for _ in range(4):
            now[0] += 9.0
            advance()
    assert capsys.readouterr().err.splitlines() == [
        "runs: 1 of 4, 27 s left",
        "runs: 2 of 4, 18 s left",
        "runs: 3 of 4",
        "runs: 4 of 4",
    ]
