"""Attempts for real: how they end, and that the patch is whole whatever the agent did to its instance."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalpipe.agents import OUTCOME_RULES, AttemptOutcome, AttemptResult
from evalpipe.agents.adapter import ProgramOutput
from evalpipe.agents.attempt import RECORD_BYTES, WORK_LIMITS, AttemptFlag
from evalpipe.agents.watch import AttemptWatch
from evalpipe.sandbox import (
    Box,
    DiskFull,
    DockerSandbox,
    EngineFault,
    EngineUnavailable,
    FileEntry,
    ImageMissing,
    Interrupted,
    Limits,
    Outcome,
    SandboxError,
    TreeLimits,
)
from evalpipe.tasks import PATCH_BYTES
from evalpipe_tests.agents.adapters import PythonAgent, ShellAgent
from evalpipe_tests.agents.conftest import Place

pytestmark = pytest.mark.slow

MEND = "sed -i s/11/12/ clock.py; "
MENDED = b"def noon():\n    return 12\n"


def _only_mended(place: Place, result: AttemptResult) -> bool:
    work, before = place.work(result.patch), place.work(b"")
    return {path for path in work if work[path] != before.get(path)} == {b"clock.py"} and (
        work[b"clock.py"].data == MENDED and work.keys() == before.keys()
    )


def test_finished_attempt_has_its_patch_and_its_transcript(place: Place) -> None:
    result = place.attempt(ShellAgent(MEND + "echo said; echo complained >&2; cat $0/agent/prompt.md"))
    assert result.outcome is AttemptOutcome.FINISHED
    assert (result.exit_code, result.files_changed, result.flags) == (0, 1, ())
    assert b"said\n" in result.transcript
    assert b"complained\n" in result.transcript
    assert "Mend the clock … today.\n".encode() in result.transcript
    assert 0 < result.seconds < 60
    assert _only_mended(place, result)


def test_adapter_may_bring_files_and_variables(place: Place) -> None:
    result = place.attempt(PythonAgent("import os; open('answer', 'w').write(os.environ['AGENT'])"))
    assert place.work(result.patch)[b"answer"].data == b"yes"
    assert result.files_changed == 1


def test_attempt_that_changed_nothing_is_an_empty_patch(place: Place) -> None:
    result = place.attempt(ShellAgent("touch clock.py; mkdir empty"))
    assert (result.outcome, result.patch, result.files_changed) == (AttemptOutcome.EMPTY_PATCH, b"", 0)


def test_patch_of_an_attempt_that_ran_out_of_time_is_kept(place: Place) -> None:
    result = place.attempt(ShellAgent(MEND + "sleep 600"), timeout_s=3)
    assert (result.outcome, result.exit_code) == (AttemptOutcome.TIMEOUT, None)
    assert result.seconds < 30
    assert _only_mended(place, result)


def test_what_an_agent_left_running_does_not_write_while_its_work_is_read(place: Place) -> None:
    background = "(while :; do echo x >> grows; date +%N > changes; done) >/dev/null 2>&1 & sleep 0.5; "
    result = place.attempt(ShellAgent(MEND + background + "setsid sh -c 'sleep 30; touch late' & exit 0"))
    assert result.outcome is AttemptOutcome.FINISHED
    assert result.seconds < 20
    assert {b"grows", b"changes"} <= place.work(result.patch).keys()
    assert b"late" not in place.work(result.patch)


@pytest.mark.docker
def test_agent_that_ran_out_of_memory_has_failed_and_its_patch_is_kept(docker_place: Place) -> None:
    agent = PythonAgent("open('clock.py', 'w').write('mended')\nx = [b'x' * (1 << 24) for _ in range(99)]")
    result = docker_place.attempt(agent)
    assert result.outcome is AttemptOutcome.OUT_OF_MEMORY
    assert docker_place.work(result.patch)[b"clock.py"].data == b"mended"


@pytest.mark.parametrize("command", ["exit 3", "kill -9 $$", "no_such_command"])
@pytest.mark.parametrize("first", [MEND, ""], ids=["patch", "no_patch"])
def test_crash_keeps_the_patch_and_the_exit_code(place: Place, first: str, command: str) -> None:
    result = place.attempt(ShellAgent(first + command))
    assert result.outcome is AttemptOutcome.AGENT_CRASHED
    assert result.exit_code == {"exit 3": 3, "kill -9 $$": 137, "no_such_command": 127}[command]
    assert str(result.exit_code) in result.detail
    assert _only_mended(place, result) if first else result.patch == b""


GIT_DEEDS = {
    "commits": "git add -A && git -c user.name=a -c user.email=a@b commit -qm done",
    "adds": "git add -A",
    "stashes_a_copy": "git stash store $(git stash create) || true",
    "amends": "git -c user.name=a -c user.email=a@b commit -qa --amend -m other",
    "deletes_git": "rm -rf .git",
    "makes_it_anew": "rm -rf .git && git init -q && git add -A",
    "git_file": "rm -rf .git && echo 'gitdir: /tmp/elsewhere' > .git",
    "hides_by_index_flags": "git update-index --assume-unchanged clock.py && git update-index --skip-worktree clock.py",
    "hides_by_attributes": "mkdir -p .git/info && echo '* -diff filter=x' > .git/info/attributes",
    "replaces_the_commit": "git replace HEAD $(git -c user.name=a -c user.email=a@b commit-tree -m x HEAD^{tree})",
    "locks_the_index": "touch .git/index.lock .git/HEAD.lock",
    "forbids_reading": "chmod 000 clock.py docs && chmod 500 .",
}


@pytest.mark.parametrize("name", GIT_DEEDS)
def test_patch_is_whole_whatever_the_agent_does_to_git(place: Place, name: str) -> None:
    result = place.attempt(ShellAgent("set -e; " + MEND + GIT_DEEDS[name]))
    assert result.outcome is AttemptOutcome.FINISHED, result.transcript
    assert _only_mended(place, result)


def test_hostile_settings_hooks_and_drivers_run_nothing_on_the_host(process_place: Place, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    evil = f"touch {mark}"
    script = f"""
        for hook in post-checkout post-index-change pre-commit post-commit reference-transaction; do
            mkdir -p .git/hooks; printf '#!/bin/sh\\n{evil}\\n' > .git/hooks/$hook; chmod +x .git/hooks/$hook
        done
        cat >> .git/config <<'END'
[core]
    fsmonitor = "{evil}"
    hooksPath = .git/hooks
    sshCommand = "{evil}"
    pager = "{evil}"
[diff]
    external = "{evil}"
[diff "evil"]
    textconv = "{evil}"
    command = "{evil}"
[filter "evil"]
    clean = "{evil}"
    smudge = "{evil}"
    process = "{evil}"
END
        printf '* diff=evil filter=evil\\n' > .gitattributes
        printf '[diff]\\n\\texternal = {evil}\\n' > .gitconfig
        {MEND}
    """
    result = process_place.attempt(ShellAgent(script))
    assert result.outcome is AttemptOutcome.FINISHED, result.transcript
    assert not mark.exists()
    work = process_place.work(result.patch)
    assert work[b"clock.py"].data == MENDED
    assert work[b".gitattributes"].data == b"* diff=evil filter=evil\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"truncate -s {WORK_LIMITS.file_bytes + 1} huge", "huge"),
        ("cd ..; rm -rf repo; ln -s /etc repo", "repo"),
        ("mkdir 'git~1'; touch 'git~1/x'", "git~1"),
    ],
    ids=["too_large", "not_a_folder", "unsafe_name"],
)
def test_work_that_cannot_be_read_is_flagged_and_no_fault_of_the_engine(place: Place, script: str, said: str) -> None:
    result = place.attempt(ShellAgent(MEND + script))
    assert result.outcome is AttemptOutcome.FINISHED
    assert (result.patch, result.files_changed) == (None, 0)
    assert result.flags == ("work_not_readable",)
    assert said in result.detail


def test_a_patch_that_no_grading_takes_is_not_kept(process_place: Place) -> None:
    result = process_place.attempt(ShellAgent(MEND + f"head -c {PATCH_BYTES} /dev/urandom > big"))
    assert result.outcome is AttemptOutcome.FINISHED
    assert (result.patch, result.files_changed, result.flags) == (None, 0, ("patch_too_large",))
    assert f"the limit is {PATCH_BYTES}" in result.detail


def test_deleting_the_whole_instance_is_a_patch_that_deletes_all(process_place: Place) -> None:
    result = process_place.attempt(ShellAgent("cd ..; rm -rf repo"))
    assert result.outcome is AttemptOutcome.FINISHED
    assert process_place.work(result.patch) == {}


class FailingSandbox:
    """A sandbox whose engine fails when a box is opened, or when its tree is read."""

    name = "docker"

    def __init__(self, error: SandboxError, *, late: bool) -> None:
        self.error, self.late = error, late

    @contextmanager
    def open(
        self, environment: str, limits: Limits, labels: Mapping[str, str], *, share: Path | None = None
    ) -> Iterator[Box]:
        if not self.late:
            raise self.error
        yield FailingBox(self.error)  # type: ignore[misc]

    def label(self, environment: str, name: str) -> None:
        return None


class FailingBox:
    root = "/work"

    def __init__(self, error: SandboxError) -> None:
        self.error = error

    def put(self, files: Iterator[FileEntry]) -> None:
        list(files)

    def run(self, command: object, *, env: object, cwd: str, watch: object) -> object:
        return Outcome(0, False, False, 1.0, b"", b"", False, False)

    def read_file(self, path: str, max_bytes: int) -> None:
        return None

    def read_tree(self, path: str, limits: TreeLimits) -> Iterator[FileEntry]:
        yield FileEntry(b"clock.py", 0o100644, b"half")
        raise self.error


@pytest.mark.parametrize("late", [False, True], ids=["at_start", "while_reading"])
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ImageMissing("no image"), AttemptOutcome.IMAGE_MISSING),
        (EngineUnavailable("no engine"), AttemptOutcome.ENGINE_ERROR),
        (EngineFault("refused"), AttemptOutcome.ENGINE_ERROR),
        (DiskFull("full"), AttemptOutcome.DISK_FULL),
        (Interrupted("killed"), AttemptOutcome.INTERRUPTED),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, AttemptOutcome) else "",
)
def test_fault_of_the_engine_is_an_outcome_that_does_not_count(
    process_place: Place, error: SandboxError, outcome: AttemptOutcome, late: bool
) -> None:
    process_place.sandbox = FailingSandbox(error, late=late)  # type: ignore[assignment]
    result = process_place.attempt(ShellAgent("true"))
    assert (result.outcome, result.detail, result.patch) == (outcome, str(error), None)
    assert not OUTCOME_RULES[outcome].counts
    assert OUTCOME_RULES[outcome].run_again


def test_missing_image_is_found_for_real(process_place: Place) -> None:
    process_place.image = "/no/such/environment"
    assert process_place.attempt(ShellAgent("true")).outcome is AttemptOutcome.IMAGE_MISSING


def test_instance_looks_clean_to_the_agent(place: Place) -> None:
    result = place.attempt(ShellAgent("git status --porcelain && git log --oneline --all | wc -l; env | sort"))
    lines = result.transcript.splitlines()
    assert lines[0].strip() == b"1"
    names = {line.partition(b"=")[0] for line in lines[1:]}
    assert names <= {b"PATH", b"HOME", b"TMPDIR", b"LANG", b"PWD", b"OLDPWD", b"SHLVL", b"_"}


INSTALLED = b"""
USER root
RUN mkdir -p /opt/evalpipe/installed/docs /opt/evalpipe/installed/made \\
    && echo 1 > /opt/evalpipe/installed/made/_version.py && echo other > /opt/evalpipe/installed/docs/index.md \\
    && ln -s /usr /opt/evalpipe/installed/node_modules && echo 'echo y > prepared.txt' > /opt/evalpipe/prepare
USER 1000
"""


@pytest.mark.docker
def test_what_an_image_lays_is_there_for_the_agent_and_is_nobodys_work(docker_place: Place, base_image: str) -> None:
    sandbox = docker_place.sandbox
    assert isinstance(sandbox, DockerSandbox)
    sandbox.client.images.get(base_image).tag("evalpipe-test/laid", "base")
    context = io.BytesIO(b"FROM evalpipe-test/laid:base\n" + INSTALLED)
    docker_place.image = str(sandbox.client.images.build(fileobj=context, rm=True)[0].id)
    script = (
        MEND
        + "cat made/_version.py docs/index.md prepared.txt; ls -d node_modules; "
        + "echo 2 > made/_version.py; echo n > made/new.py"
    )
    result = docker_place.attempt(ShellAgent(script))
    assert result.transcript.split() == [b"1", b"#", b"Clock", b"y", b"node_modules"]
    before, after = docker_place.work(b""), docker_place.work(result.patch)
    assert {path for path in after if after[path] != before.get(path)} == {b"clock.py", b"made/new.py"}
    assert before.keys() <= after.keys()


def test_what_a_program_says_is_told_in_the_form_of_transcripts(process_place: Place) -> None:
    said = '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"I look."}}'
    agent = ShellAgent(MEND + f"echo '{said}'; echo complained >&2", ProgramOutput("codex", "0.1"))
    result = process_place.attempt(agent)
    assert result.trajectory is not None
    assert result.trajectory["agent"] == {"name": "codex", "version": "0.1"}
    told = [(step["source"], step["message"]) for step in result.trajectory["steps"]]
    assert told == [("user", "Mend the clock … today.\n"), ("agent", "I look.")]


def test_the_record_that_a_program_keeps_of_itself_comes_before_what_it_prints(process_place: Place) -> None:
    output = ProgramOutput("command", "1", "agent/record")
    result = process_place.attempt(ShellAgent("echo printed; echo kept > $0/agent/record", output))
    assert result.trajectory is not None
    assert result.trajectory["steps"][-1]["message"] == "kept\n"
    assert result.transcript == b"printed\nkept\n"
    result = process_place.attempt(ShellAgent("echo printed", output))
    assert result.trajectory is not None
    assert result.trajectory["steps"][-1]["message"] == "printed\n"
    result = process_place.attempt(ShellAgent(f"truncate -s {RECORD_BYTES + 1} $0/agent/record", output))
    assert result.flags == (AttemptFlag.TRANSCRIPT_CUT,)


@pytest.mark.parametrize(
    ("first", "outcome"), [("", AttemptOutcome.PERMISSION_DENIED), (MEND, AttemptOutcome.FINISHED)]
)
def test_refused_tools_are_flagged_and_explain_an_empty_patch(
    process_place: Place, first: str, outcome: AttemptOutcome
) -> None:
    said = '{"type":"result","is_error":true,"result":"?","permission_denials":[{"tool_name":"Bash"}]}'
    result = process_place.attempt(ShellAgent(f"{first}echo '{said}'", ProgramOutput("claude-code", "2")))
    assert result.outcome is outcome
    assert result.flags == (AttemptFlag.TOOLS_REFUSED,)


def test_a_program_that_hangs_after_its_last_event_has_ended_and_one_that_hangs_before_has_not(place: Place) -> None:
    said = MEND + """echo '{"type":"result","is_error":false}'; sleep 600"""
    watch = AttemptWatch(60, 60, program="claude-code", grace_s=1)
    result = place.attempt(ShellAgent(said, ProgramOutput("claude-code", "2")), watch=watch)
    assert (result.outcome, result.exit_code) == (AttemptOutcome.FINISHED, None)
    assert result.flags == (AttemptFlag.STOPPED_AT_ITS_END,)
    assert _only_mended(place, result)
    assert result.seconds < 30
    silent = AttemptWatch(60, 1, program="claude-code", grace_s=1)
    result = place.attempt(ShellAgent(MEND + "sleep 600"), watch=silent)
    assert (result.outcome, result.flags) == (AttemptOutcome.TIMEOUT, ())


def test_what_a_program_leaves_behind_is_nobodys_work_unless_it_was_there_before(process_place: Place) -> None:
    script = MEND + "mkdir .tool; touch .tool/cache .tool.log docs/.tool; echo more >> docs/index.md"
    result = process_place.attempt(ShellAgent(script, leaves=(b".tool", b"docs/index")))
    after, before = process_place.work(result.patch), process_place.work(b"")
    changed = {path for path in after if after[path] != before.get(path)}
    assert changed == {b"clock.py", b"docs/.tool", b"docs/index.md"}


def test_second_attempt_sees_nothing_of_the_first(place: Place) -> None:
    place.attempt(ShellAgent("echo canary > $HOME/left; echo canary > ../left"))
    result = place.attempt(ShellAgent("cat $HOME/left ../left; ls .. $HOME"))
    assert b"canary" not in result.transcript


def test_attempt_takes_about_as_long_as_its_agent(process_place: Place) -> None:
    started = time.monotonic()
    process_place.attempt(ShellAgent("true"))
    assert time.monotonic() - started < 5
