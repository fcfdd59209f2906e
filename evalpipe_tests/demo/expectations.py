"""data/demo/expected.json and expected_agents.json as records: what the pipeline must make of the demo repository."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

DEMO = Path(__file__).parents[2] / "data" / "demo"


@dataclass(frozen=True, slots=True)
class ExpectedChange:
    """One change: ``commits`` has several ids for a rebase-merge, and ``commit`` is the last of them."""

    commit: str
    commits: tuple[str, ...]
    subject: str
    number: int | None
    kept: bool
    reason: str
    shape: str
    task_class: str | None
    category: str | None
    fail_to_pass: frozenset[str]


def expected_tip() -> str:
    """The id of the demo repository's mainline tip."""
    return str(json.loads((DEMO / "expected.json").read_bytes())["tip"])


def expected_changes() -> list[ExpectedChange]:
    """Every mainline change, oldest first."""
    return [
        ExpectedChange(
            commit=row["commit"],
            commits=tuple(row.get("commits", [row["commit"]])),
            subject=row["subject"],
            number=row["number"],
            kept=row["kept"],
            reason=row["reason"],
            shape=row["shape"],
            task_class=row.get("class"),
            category=row.get("category"),
            fail_to_pass=frozenset(row.get("fail_to_pass", ())),
        )
        for row in json.loads((DEMO / "expected.json").read_bytes())["changes"]
    ]


def expected_resolved() -> dict[str, dict[int, list[bool]]]:
    """Agent -> number of the task -> whether samples 1 to 4 are resolved."""
    data = json.loads((DEMO / "expected_agents.json").read_bytes())
    return {agent: {int(number): row for number, row in tasks.items()} for agent, tasks in data.items()}


def agent_patches(agent: str) -> dict[int, list[Path | None]]:
    """Number of the task -> the patches that the scripted agent replays in turn."""
    folder = DEMO / "agents"
    data = json.loads((folder / f"{agent}.json").read_bytes())["patches"]
    return {int(number): [None if name is None else folder / name for name in names] for number, names in data.items()}
