import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from evalpipe.reports import html_report, summary
from evalpipe.reports.forms import redacted
from evalpipe.reports.records import LeftOutCandidate, Prices, SweepResults
from evalpipe_tests.reports.sweeps import (
    BROAD,
    STEADY,
    SweepBuilder,
    agent,
    graded_row,
    manifest,
    two_agents,
)

HOSTILE = "</style></pre><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>\x00\u202e"


class _Page(HTMLParser):
    """Collects tags, attributes and visible text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" not in self._inside:
            self.text += data


def hostile_sweep() -> SweepResults:
    name = HOSTILE
    unmet = [{"test_id": HOSTILE, "expected_in": HOSTILE, "outcome": HOSTILE, "message": HOSTILE}]
    extra = graded_row(
        name, "demo-000", "original-1", resolved=False, attempt=0, unmet_tests=unmet, detail=HOSTILE,
        outcome=HOSTILE, verdict=HOSTILE, integrity=HOSTILE, integrity_reasons=[HOSTILE],
    )  # fmt: skip
    invalid = {**extra, "counts": False, "sample": "original-2"}
    builder = SweepBuilder({name: STEADY, "broad": BROAD}, agents=[agent(name), agent("broad")])
    results = replace(builder, rows=[extra, invalid]).build()
    tasks = tuple(replace(task, title=HOSTILE, category=HOSTILE, repository=HOSTILE) for task in results.tasks)
    return replace(
        results,
        decision=HOSTILE,
        sweep=HOSTILE,
        task_set=HOSTILE,
        revision=HOSTILE,
        selection_rule=HOSTILE,
        tasks=tasks,
        weights={HOSTILE: 1.0},
        prices=Prices(HOSTILE, 0.5, HOSTILE),
        left_out=(LeftOutCandidate(HOSTILE, HOSTILE, HOSTILE, HOSTILE),),
        mining=((HOSTILE, 3),),
        validation=((HOSTILE, 3),),
        manifests={**results.manifests, (name, "original"): manifest(HOSTILE, network=HOSTILE)},
    )


def test_hostile_text_stays_text() -> None:
    page = _Page(html_report(hostile_sweep()))
    assert not {"script", "img", "iframe", "object", "link", "base", "form"} & set(page.tags)
    assert page.tags.count("style") == 1
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text
    assert "\x00" not in page.text
    assert "\u202e" not in page.text


@pytest.mark.parametrize("results", [two_agents(), hostile_sweep()], ids=["plain", "hostile"])
def test_nothing_is_fetched(results: SweepResults) -> None:
    document = html_report(results)
    page = _Page(document)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert ("content", policy) in page.attributes
    links = [value for name, value in page.attributes if name in ("href", "src", "xlink:href", "action")]
    assert links
    assert all(value.startswith("#") for value in links)
    assert all(value.startswith("url(#") for name, value in page.attributes if name == "clip-path")
    css = document[document.index("<style>") : document.index("</style>")]
    assert "url(" not in css
    assert "@import" not in css


def test_every_link_leads_somewhere_and_ids_are_unique() -> None:
    page = _Page(html_report(two_agents()))
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = {value[1:] for name, value in page.attributes if name == "href"}
    assert links <= set(ids)


def test_the_first_screen_has_question_answer_and_scoreboard() -> None:
    text = _Page(html_report(two_agents())).text
    places = [
        text.index(part)
        for part in (
            "Which agent do we licence",
            "broad solves more of these tasks than steady",
            "0.46 to 0.81",
            "Rates with their intervals",
            "Comparisons fixed before the run",
            "From history to tasks",
            "Every task",
        )
    ]
    assert places == sorted(places)


def test_the_rule_by_which_tasks_were_selected_is_told() -> None:
    results = SweepBuilder({"steady": STEADY}).build()
    assert "its rule: sample of 20, seed 7" in _Page(html_report(results)).text
    assert summary(results)["task_set"]["selection_rule"] == "sample of 20, seed 7"


def test_a_sweep_without_results_says_so_and_shows_no_rate_of_a_contender() -> None:
    row = graded_row("reference", "demo-003", "original-2", resolved=False, attempt=0)
    document = html_report(SweepBuilder({"steady": STEADY, "broad": BROAD}, rows=[row]).build())
    text = _Page(document).text
    assert "This sweep has no results: the control reference (original prompts) must solve every task" in text
    assert "Comparisons fixed before the run" not in text
    assert "0.51" not in text
    assert "Only the controls are shown" in text


def test_provisional_marks_stand_at_every_task_and_rate() -> None:
    results = two_agents()
    tasks = tuple(replace(task, provisional=True) for task in results.tasks)
    text = _Page(html_report(replace(results, provisional=True, tasks=tasks))).text
    assert text.count("provisional: both validation passes ran on one day") >= len(tasks)
    assert "pass@1 (provisional)" in text
    assert "demo-003 (provisional)" in text


def test_scripted_agents_are_called_scripted() -> None:
    results = SweepBuilder(
        {"steady": STEADY, "broad": BROAD}, agents=[agent("steady", scripted=True), agent("broad")]
    ).build()
    text = _Page(html_report(results)).text
    assert "steady (scripted)" in text
    assert "broad (scripted)" not in text


def test_invalid_attempts_are_listed_with_their_reason() -> None:
    row = graded_row("steady", "demo-001", "original-1", resolved=False, counts=False, outcome="disk_full")
    text = _Page(html_report(SweepBuilder({"steady": STEADY}, rows=[row]).build())).text
    assert "disk full" in text


def test_evidence_is_bounded() -> None:
    unmet = [
        {"test_id": f"t::{number}", "expected_in": "fail_to_pass", "outcome": "failed", "message": "m" * 50_000}
        for number in range(50)
    ]
    row = graded_row("steady", "demo-000", "original-1", resolved=False, attempt=0, unmet_tests=unmet)
    plain = html_report(SweepBuilder({"steady": STEADY}).build())
    document = html_report(SweepBuilder({"steady": STEADY}, rows=[row]).build())
    assert len(document) < len(plain) + 20_000
    assert "42 more unmet tests" in document


def test_the_same_results_give_the_same_file() -> None:
    assert html_report(two_agents()) == html_report(two_agents())


def test_an_empty_sweep_still_makes_a_page() -> None:
    page = _Page(html_report(SweepBuilder({"steady": []}).build()))
    assert "has no tasks" in page.text
    assert re.search(r"Nothing is graded yet", page.text)


def test_candidates_that_are_no_task_are_listed_with_their_reason_and_not_by_name_outside() -> None:
    left_out = tuple(LeftOutCandidate(f"demo-x{number}", "demo", "no_signal", "<b>same</b>") for number in range(310))
    results = replace(two_agents(), left_out=left_out)
    text = _Page(html_report(results)).text
    assert "Candidates that are not in this set310" in text
    assert "demo-x299" in text
    assert "and 10 more in validated_tasks" in text
    hidden = html_report(redacted(results))
    assert "candidate-001" in hidden
    assert "demo-x" not in hidden
    assert "same" not in hidden
