"""Parquet schemas of every table that passes between two stages, declared once.

A table is a folder of Parquet files, one per partition. Times are UTC with microseconds. Paths and patches
are bytes: git does not promise that they are text.
"""

import pyarrow as pa

_TIME = pa.timestamp("us", tz="UTC")
_TEXTS = pa.list_(pa.string())


def _required(name: str, kind: pa.DataType) -> "pa.Field[pa.DataType]":
    return pa.field(name, kind, nullable=False)


CANDIDATE_COMMITS = pa.schema(
    [
        _required("candidate_id", pa.string()),
        _required("repository", pa.string()),
        _required("commit", pa.string()),
        pa.field("parent", pa.string()),
        _required("tree", pa.string()),
        _required("shape", pa.string()),
        pa.field("number", pa.int64()),
        _required("subject", pa.string()),
        _required("author", pa.string()),
        _required("author_date", _TIME),
        _required("merge_date", _TIME),
        _required("reason", pa.string()),
        _required("reason_detail", pa.string()),
        _required("source_files", pa.list_(pa.binary())),
        _required("test_files", pa.list_(pa.binary())),
        _required("files_changed", pa.int64()),
        pa.field("lines_added", pa.int64()),
        pa.field("lines_removed", pa.int64()),
        _required("category", pa.string()),
        _required("category_rule", pa.string()),
        _required(
            "issues",
            pa.list_(pa.struct([("key", pa.string()), ("found_in", pa.string()), ("strength", pa.string())])),
        ),
        _required("problem_source", pa.string()),
        _required("problem_text", pa.string()),
        pa.field("reverts", pa.string()),
        _required("coding_agent", pa.bool_()),
        # From here on optional, because older files do not have them.
        pa.field("forge", pa.string()),
        pa.field("change_id", pa.string()),
        pa.field("branch_commits", _TEXTS),
        pa.field("inline_tests", pa.list_(pa.binary())),
        pa.field("patch_id", pa.string()),
        pa.field("repeats", pa.string()),
        pa.field("reverted_by", pa.string()),
        pa.field("unused_texts", pa.list_(pa.struct([("key", pa.string()), ("fault", pa.string())]))),
        # Equal for rows that were mined by the same rules; rows of others are mined again.
        pa.field("mining_key", pa.string()),
    ]
)

TASK_IMAGES = pa.schema(
    [
        _required("repository", pa.string()),
        _required("build_key", pa.string()),
        _required("sandbox", pa.string()),
        _required("status", pa.string()),
        pa.field("image_digest", pa.string()),
        _required("base_image", pa.string()),
        _required("definition", pa.string()),
        _required("log_tail", pa.string()),
        _required("build_seconds", pa.float64()),
        _required("built_at", _TIME),
        _required("candidates", _TEXTS),
        # From here on optional, because older files do not have them.
        pa.field("base_commit", pa.string()),
        pa.field("day", pa.string()),
        pa.field("packages", _TEXTS),
    ]
)

VALIDATION_RUNS = pa.schema(
    [
        _required("candidate_id", pa.string()),
        _required("repository", pa.string()),
        _required("validation_pass", pa.string()),
        _required("side", pa.string()),
        _required("run_status", pa.string()),
        # summary (the run itself), test, duplicate (an id that more than one test had), uncollected (a file).
        _required("kind", pa.string()),
        pa.field("test_id", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("seconds", pa.float64()),
        _required("message", pa.string()),
        _required("image_digest", pa.string()),
        _required("started_at", _TIME),
        _required("run_seconds", pa.float64()),
        _required("content_key", pa.string()),
        # From here on optional, because older files do not have them. The last three are those of a summary.
        pa.field("pass_class", pa.string()),
        pa.field("suite_run", pa.string()),
        pa.field("suite", pa.string()),
        pa.field("suite_files", pa.list_(pa.binary())),
        pa.field("conditions", _TEXTS),
        pa.field("not_changed", _TEXTS),
    ]
)

VALIDATED_TASKS = pa.schema(
    [
        _required("candidate_id", pa.string()),
        _required("repository", pa.string()),
        _required("validation_class", pa.string()),
        _required("evidence", pa.string()),
        _required("fail_to_pass", _TEXTS),
        _required("pass_to_pass", _TEXTS),
        _required("quarantined", _TEXTS),
        _required("provisional", pa.bool_()),
        _required("validated_on", _TEXTS),
        _required("image_digest", pa.string()),
        _required("after_seconds", pa.float64()),
        # From here on optional, because older files do not have them. `missing_names`: what the tests of a
        # compile_only candidate miss before the change; `suite_files`: null for the whole suite.
        pa.field("missing_names", _TEXTS),
        pa.field("need_network", _TEXTS),
        pa.field("quarantine_causes", pa.list_(pa.struct([("test_id", pa.string()), ("cause", pa.string())]))),
        pa.field("suite_files", pa.list_(pa.binary())),
    ]
)

_TEST_EVIDENCE = pa.struct(
    [
        ("test_id", pa.string()),
        ("expected_in", pa.string()),
        ("outcome", pa.string()),
        ("message", pa.string()),
    ]
)

_GRADING = [
    _required("verdict", pa.string()),
    _required("resolved", pa.bool_()),
    _required("integrity", pa.string()),
    _required("integrity_reasons", _TEXTS),
    _required("fail_to_pass_passed", pa.int64()),
    _required("fail_to_pass_total", pa.int64()),
    _required("pass_to_pass_passed", pa.int64()),
    _required("pass_to_pass_total", pa.int64()),
    _required("unmet_tests", pa.list_(_TEST_EVIDENCE)),
    _required("detail", pa.string()),
    _required("ignored_paths", pa.list_(pa.binary())),
    _required("grading_seconds", pa.float64()),
    _required("graded_at", _TIME),
    # Optional, because older files do not have them, and few teams ask.
    pa.field("style_clean", pa.bool_()),
    pa.field("style_output", pa.string()),
]

CALIBRATION = pa.schema(
    [
        _required("task_set", pa.string()),
        _required("revision", pa.string()),
        _required("task_id", pa.string()),
        _required("patch", pa.string()),
        _required("repetition", pa.int64()),
        *_GRADING,
        # Optional, because older files do not have it: what the grading stands for, as of a verdict.
        pa.field("verdict_key", pa.string()),
    ]
)

PROBES = pa.schema(
    [
        _required("sweep", pa.string()),
        _required("agent", pa.string()),
        _required("configuration", pa.string()),
        _required("image_digest", pa.string()),
        _required("tasks", _TEXTS),
        _required("findings", _TEXTS),
        _required("probed_at", _TIME),
        _required("probe_seconds", pa.float64()),
    ]
)

AGENT_RUNS = pa.schema(
    [
        _required("sweep", pa.string()),
        _required("agent", pa.string()),
        _required("configuration", pa.string()),
        _required("task_id", pa.string()),
        _required("sample", pa.string()),
        _required("prompt_mode", pa.string()),
        _required("attempt", pa.int64()),
        _required("attempt_id", pa.string()),
        _required("outcome", pa.string()),
        _required("outcome_detail", pa.string()),
        _required("started_at", _TIME),
        pa.field("ended_at", _TIME),
        pa.field("attempt_seconds", pa.float64()),
        pa.field("exit_code", pa.int64()),
        pa.field("patch_sha256", pa.string()),
        _required("patch_bytes", pa.int64()),
        _required("files_changed", pa.int64()),
        pa.field("transcript_sha256", pa.string()),
        pa.field("model_calls", pa.int64()),
        pa.field("input_tokens", pa.int64()),
        pa.field("cached_input_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cost_usd", pa.float64()),
        _required("image_digest", pa.string()),
        _required("run_id", pa.string()),
        _required("flags", _TEXTS),
        # Optional, because older files do not have them.
        pa.field("cache_write_tokens", pa.int64()),
        pa.field("reasoning_tokens", pa.int64()),
        pa.field("rate_limit_wait_s", pa.float64()),
        pa.field("usage_warnings", _TEXTS),
        # The transcript in the form ATIF 1.7 (JSON); `transcript_sha256` is what the program wrote.
        pa.field("trajectory_sha256", pa.string()),
        # What the program says it used; all else is as the gateway counted it.
        pa.field("reported_input_tokens", pa.int64()),
        pa.field("reported_output_tokens", pa.int64()),
        pa.field("reported_cost_usd", pa.float64()),
    ]
)

AGENT_IMAGES = pa.schema(
    [
        _required("adapter", pa.string()),
        _required("package", pa.string()),
        _required("version", pa.string()),
        _required("task_image", pa.string()),
        _required("image_digest", pa.string()),
        _required("program_sha256", pa.string()),
        _required("packages", _TEXTS),
        _required("build_seconds", pa.float64()),
        _required("built_at", _TIME),
    ]
)

VERDICTS = pa.schema([_required("verdict_key", pa.string()), *_GRADING])

GRADED_RESULTS = pa.schema(
    [
        _required("sweep", pa.string()),
        _required("agent", pa.string()),
        _required("configuration", pa.string()),
        _required("task_id", pa.string()),
        _required("sample", pa.string()),
        _required("prompt_mode", pa.string()),
        _required("attempt", pa.int64()),
        _required("attempt_id", pa.string()),
        _required("outcome", pa.string()),
        # Whether the attempt counts in pass@1: infrastructure faults do not (design, table of outcomes).
        _required("counts", pa.bool_()),
        pa.field("verdict_key", pa.string()),
        pa.field("patch_sha256", pa.string()),
        pa.field("attempt_seconds", pa.float64()),
        pa.field("model_calls", pa.int64()),
        pa.field("input_tokens", pa.int64()),
        pa.field("cached_input_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cost_usd", pa.float64()),
        *_GRADING,
        # Optional, because older files do not have it.
        pa.field("transcript_sha256", pa.string()),
    ]
)

_INTERVAL = pa.list_(pa.float64())

CATEGORY_REPORT = pa.schema(
    [
        _required("sweep", pa.string()),
        _required("category", pa.string()),
        _required("agent", pa.string()),
        _required("mode", pa.string()),
        _required("tasks", pa.int64()),
        _required("tasks_in_set", pa.int64()),
        _required("passes", pa.int64()),
        _required("samples", pa.int64()),
        # Null below five tasks, where passes and samples are all that can be said.
        pa.field("pass_at_1", pa.float64()),
        pa.field("interval", _INTERVAL),
        pa.field("weight", pa.float64()),
        pa.field("variance_share", pa.float64()),
    ]
)

AGENT_COMPARISON = pa.schema(
    [
        _required("sweep", pa.string()),
        _required("first", pa.string()),
        _required("second", pa.string()),
        _required("mode", pa.string()),
        _required("tasks", pa.int64()),
        pa.field("difference", pa.float64()),
        pa.field("interval", _INTERVAL),
        pa.field("p_value", pa.float64()),
        pa.field("adjusted_p_value", pa.float64()),
        pa.field("method", pa.string()),
        pa.field("first_better", pa.int64()),
        pa.field("second_better", pa.int64()),
        pa.field("ties", pa.int64()),
        pa.field("detectable_difference", pa.float64()),
        pa.field("better", pa.string()),
        pa.field("rests_on", pa.list_(pa.string())),
        _required("verdict", pa.string()),
    ]
)

SCHEMAS: dict[str, pa.Schema] = {
    "candidate_commits": CANDIDATE_COMMITS,
    "task_images": TASK_IMAGES,
    "validation_runs": VALIDATION_RUNS,
    # The runs of a pass that is not whole yet, one file each.
    "suite_runs": VALIDATION_RUNS,
    "validated_tasks": VALIDATED_TASKS,
    "calibration": CALIBRATION,
    "probes": PROBES,
    "agent_images": AGENT_IMAGES,
    "agent_runs": AGENT_RUNS,
    "verdicts": VERDICTS,
    "graded_results": GRADED_RESULTS,
    "category_report": CATEGORY_REPORT,
    "agent_comparison": AGENT_COMPARISON,
}
