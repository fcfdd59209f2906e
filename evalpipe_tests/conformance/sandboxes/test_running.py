"""What every sandbox owes its callers when a command runs: its end, its streams, its surroundings."""

import pytest

from evalpipe.sandbox import DIRECTORY, REGULAR, FileEntry, ImageMissing
from evalpipe_tests.conformance.sandboxes.places import LIMITS, Place, python


def test_exit_code_and_streams_are_told_apart(place: Place) -> None:
    outcome = place.run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (3, b"out\n", b"err\n")
    assert not any((outcome.timed_out, outcome.out_of_memory, outcome.stdout_truncated, outcome.stderr_truncated))
    assert 0 < outcome.duration_s < 30


def test_a_signal_shows_as_128_and_its_number(place: Place) -> None:
    assert place.run("sh", "-c", "kill -SEGV $$").exit_code == 128 + 11


@pytest.mark.parametrize(("command", "exit_code"), [("no-such-program", 127), ("./data", 126)])
def test_a_command_that_cannot_be_run_is_the_programs_failure(place: Place, command: str, exit_code: int) -> None:
    outcome = place.run(command, files=[FileEntry(b"data", REGULAR, b"x")])
    assert outcome.exit_code == exit_code
    assert outcome.stderr


def test_standard_input_is_empty(place: Place) -> None:
    assert place.run("cat").exit_code == 0


def test_a_box_runs_once_and_is_read_only_afterwards(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        with pytest.raises(RuntimeError):
            box.read_file("x", 1)
        box.run(["true"], env={}, cwd=".")
        with pytest.raises(RuntimeError):
            box.run(["true"], env={}, cwd=".")
        with pytest.raises(RuntimeError):
            box.put([])


def test_a_box_that_never_runs_leaves_nothing(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"x", REGULAR)])
    assert place.leftovers() == 0


def test_an_environment_that_is_gone_is_named(place: Place) -> None:
    missing = "sha256:" + "0" * 64 if place.sandbox.name == "docker" else "/nowhere/venv"
    with pytest.raises(ImageMissing, match=missing.removeprefix("sha256:")), place.sandbox.open(missing, LIMITS, {}):
        pass


def test_no_variable_of_the_host_is_visible(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALPIPE_TEST_SECRET", "hunter2")
    outcome = place.run("env", "-0", env={"GIVEN": "1"})
    names = {entry.partition("=")[0] for entry in outcome.stdout.decode().split("\0") if entry}
    assert {"GIVEN", "HOME", "PATH"} <= names
    assert names <= {"GIVEN", "HOME", "PATH", "TMPDIR", "LANG"}


def test_given_variables_arrive_as_they_are(place: Place) -> None:
    value = "a=b 'c' \"d\"\n$HOME ü"
    outcome = place.run(*python("import os, sys; sys.stdout.buffer.write(os.environb[b'V'])"), env={"V": value})
    assert outcome.stdout == value.encode()


def test_home_and_tmp_can_be_written(place: Place) -> None:
    outcome = place.run("sh", "-c", "touch $HOME/x && mktemp >/dev/null && echo done")
    assert outcome.stdout == b"done\n", outcome.stderr


@pytest.mark.parametrize("absolute", [False, True])
def test_the_working_directory_is_below_the_root(place: Place, absolute: bool) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"sub/dir", DIRECTORY)])
        outcome = box.run(["pwd"], env={}, cwd=f"{box.root}/sub/dir" if absolute else "sub/dir")
        assert outcome.stdout.decode().strip() == f"{box.root}/sub/dir"


def test_a_working_directory_that_was_not_put_is_refused(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box, pytest.raises(ValueError, match="nowhere"):
        box.run(["pwd"], env={}, cwd="nowhere")


def test_facts_describe_the_machine(place: Place) -> None:
    facts = place.sandbox.describe()
    assert facts.name == place.sandbox.name
    assert facts.cpus >= 1
    assert facts.memory_bytes > 2**28
    assert "capabilities" in facts.isolation
