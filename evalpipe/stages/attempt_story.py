"""The story of an attempt, for a person: what ran, what it called, how it ended, what it left, how that was graded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalpipe.gateway import Call, read_calls
from evalpipe.gateway.recording import CALLS
from evalpipe.lake import Row
from evalpipe.stages.attempt_tally import dollars
from evalpipe.stages.bench import Workbench
from evalpipe.stages.model_access import recorded_calls

_REPORTED = ("input", "output")
_CALLS_SHOWN, _TRANSCRIPT_SHOWN, _PATCH_SHOWN = 40, 2_000, 8_000


class AttemptUnknown(Exception):
    """No attempt of the lake has this id."""


@dataclass(frozen=True, slots=True)
class AttemptStory:
    """An attempt's row, its calls (none for an agent without a model), its grade, and the bytes that it left."""

    attempt: Row
    calls: Sequence[Call]
    grade: Row | None
    patch: bytes
    transcript: bytes


def place_of(row: Row) -> tuple[str, str, str, str, str]:
    """Where the rows of an attempt's sample lie in the lake."""
    return row["sweep"], row["agent"], row["configuration"], row["task_id"], row["sample"]


def list_attempts(bench: Workbench, sweep: str, agent: str | None = None) -> list[Row]:
    """Every attempt of a sweep, by agent, task, sample and number."""
    prefix = (sweep,) if agent is None else (sweep, agent)
    rows = bench.lake.read("agent_runs", *prefix).to_pylist()
    return sorted(rows, key=lambda row: (*place_of(row), row["attempt"]))


def find_attempt(bench: Workbench, attempt_id: str) -> Row:
    """The attempt of an id. Raises AttemptUnknown."""
    for sweep in bench.lake.folders("agent_runs"):
        if attempt_id.startswith(f"{sweep}."):
            for row in list_attempts(bench, sweep):
                if row["attempt_id"] == attempt_id:
                    return row
    raise AttemptUnknown(f"there is no attempt {attempt_id}: `evalpipe attempts list SWEEP` names them all")


def attempt_story(bench: Workbench, attempt_id: str) -> AttemptStory:
    """All that is kept of an attempt. Raises AttemptUnknown, LakeError."""
    row = find_attempt(bench, attempt_id)
    journal = recorded_calls(bench, place_of(row), row["attempt"]) / CALLS
    grades = [one for one in bench.lake.rows("graded_results", *place_of(row)) if one["attempt_id"] == attempt_id]
    blobs = bench.lake.blobs
    return AttemptStory(
        attempt=row,
        calls=read_calls(journal).calls if journal.exists() else (),
        grade=grades[0] if grades else None,
        patch=blobs.get(row["patch_sha256"]) if row["patch_sha256"] else b"",
        transcript=blobs.get(row["transcript_sha256"]) if row["transcript_sha256"] else b"",
    )


def story_text(story: AttemptStory) -> str:
    """The story as a page of text. What agents wrote is shown without its control characters."""
    return "\n".join([*_what_ran(story), *_calls(story.calls), *_what_was_left(story), *_grade(story.grade)])


def _what_ran(story: AttemptStory) -> Iterator[str]:
    row = story.attempt
    yield f"attempt {row['attempt_id']}"
    yield f"  {row['agent']} at {row['task_id']}, {row['sample']}, attempt {row['attempt']}; run {row['run_id']}"
    yield f"  image {row['image_digest']}"
    ended = f"{row['ended_at']:%H:%M:%S}" if row["ended_at"] else "not seen"
    yield f"  began {row['started_at']:%Y-%m-%d %H:%M:%S} UTC, ended {ended}" + (
        f", {row['attempt_seconds']:.0f} s" if row["attempt_seconds"] is not None else ""
    )
    yield f"outcome: {row['outcome']}" + (f": {row['outcome_detail']}" if row["outcome_detail"] else "")
    if row["exit_code"] is not None:
        yield f"  exit code {row['exit_code']}"
    if row["flags"]:
        yield f"  flags: {', '.join(row['flags'])}"
    if row["model_calls"] is not None:
        cost = "not known" if row["cost_usd"] is None else dollars(row["cost_usd"])
        yield (
            f"  {row['model_calls']} model calls; input {row['input_tokens']:,} tokens "
            f"({row['cached_input_tokens']:,} cached), output {row['output_tokens']:,}; cost {cost}"
        )
    yield from _reported(row)
    if row["rate_limit_wait_s"]:
        yield f"  waited {row['rate_limit_wait_s']:.0f} s for rate limits"
    yield from (f"  {warning}" for warning in row["usage_warnings"] or ())


def _reported(row: Row) -> Iterator[str]:
    tokens = [f"{name} {row[f'reported_{name}_tokens']:,}" for name in _REPORTED if row[f"reported_{name}_tokens"]]
    cost = [] if row["reported_cost_usd"] is None else [f"cost {dollars(row['reported_cost_usd'])}"]
    if tokens or cost:
        yield f"  by the program's own count: {', '.join([*tokens, *cost])}"


def _calls(calls: Sequence[Call]) -> Iterator[str]:
    if not calls:
        return
    yield "calls"
    first = calls[0].started
    shown = calls if len(calls) <= _CALLS_SHOWN else [*calls[: _CALLS_SHOWN // 2], *calls[-_CALLS_SHOWN // 2 :]]
    for call in shown:
        took = f"{call.ended - call.started:6.1f} s" if call.ended is not None else "   open"
        tokens = f" {call.usage.input:,} in, {call.usage.output:,} out" if call.usage else ""
        said = f" {_plain(call.detail.encode())}" if call.detail else ""
        yield f"  {call.number:3} at {call.started - first:7.1f} s {took} {call.result}{tokens}{said}"
    if len(shown) < len(calls):
        yield f"  … {len(calls) - len(shown)} calls in the middle are not shown"


def _what_was_left(story: AttemptStory) -> Iterator[str]:
    row = story.attempt
    yield f"patch: {row['patch_bytes']} bytes, {row['files_changed']} files"
    if story.patch:
        yield _plain(story.patch[:_PATCH_SHOWN]) + ("\n…" if len(story.patch) > _PATCH_SHOWN else "")
    if story.transcript:
        yield f"transcript: {len(story.transcript)} bytes, blob {row['transcript_sha256']}; its end:"
        yield _plain(story.transcript[-_TRANSCRIPT_SHOWN:])


def _grade(grade: Row | None) -> Iterator[str]:
    if grade is None:
        yield "grade: none yet"
        return
    yield (
        f"grade: {grade['verdict']}; fail-to-pass {grade['fail_to_pass_passed']}/{grade['fail_to_pass_total']}, "
        f"pass-to-pass {grade['pass_to_pass_passed']}/{grade['pass_to_pass_total']}; integrity {grade['integrity']}"
    )
    if grade["detail"]:
        yield f"  {_plain(grade['detail'].encode())}"
    for unmet in grade["unmet_tests"] or ():
        yield f"  {unmet['expected_in']} {unmet['test_id']}: {unmet['outcome']}"
    yield from (f"  {_plain(reason.encode())}" for reason in grade["integrity_reasons"] or ())
    if grade["style_clean"] is not None:
        yield "style: clean" if grade["style_clean"] else f"style: not clean\n{_plain(grade['style_output'].encode())}"


def _plain(data: bytes) -> str:
    """Text that cannot move a terminal's cursor or change its colours."""
    text = data.decode(errors="replace")
    return "".join(letter if letter == "\n" or letter == "\t" or letter.isprintable() else "·" for letter in text)
