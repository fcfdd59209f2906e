from dataclasses import replace
from datetime import date

from evalpipe.reports import html_report, scoreboard_text, summary
from evalpipe.reports.forms import redacted, report_markdown
from evalpipe.reports.provenance import provenance
from evalpipe.reports.records import SweepResults
from evalpipe_tests.reports.sweeps import SweepBuilder, two_agents


def _dated(results: SweepResults, *cutoffs: date | None) -> SweepResults:
    days = [*cutoffs, None, None]
    agents = tuple(replace(agent, training_cutoff=day) for agent, day in zip(results.agents, days, strict=True))
    return replace(results, agents=agents)


def test_everything_stands_in_one_line() -> None:
    results = _dated(two_agents(), date(2025, 9, 3), date(2025, 2, 28))
    tasks = tuple(
        replace(task, repository="click", public=True) if number < 5 else task
        for number, task in enumerate(results.tasks)
    )
    assert provenance(replace(results, tasks=tasks)) == (
        "18 tasks, 13 from a private repository (demo) and 5 from a public repository (click); "
        "merged 2025-01-03 to 2025-12-03; "
        "4 up to the cutoff of broad (2025-02-28), 14 after it; "
        "15 up to the cutoff of steady (2025-09-03), 3 after it; "
        "validated on 2026-03-01, 2026-03-02; none provisional"
    )


def test_a_cutoff_that_nobody_states_is_told_and_a_script_has_none() -> None:
    assert "; cutoff of steady, broad not stated; " in provenance(two_agents())
    one = _dated(two_agents(), date(2025, 9, 3), None)
    assert "15 up to the cutoff of steady (2025-09-03), 3 after it; cutoff of broad not stated" in provenance(one)
    scripted = tuple(replace(agent, scripted=True) for agent in two_agents().agents)
    assert "cutoff" not in provenance(replace(two_agents(), agents=scripted))


def test_many_repositories_and_days_stay_one_line() -> None:
    results = two_agents()
    tasks = tuple(
        replace(task, repository=f"r{number:02}", validated_on=(date(2026, 3, 1 + number), date(2026, 4, 1)))
        for number, task in enumerate(results.tasks)
    )
    found = provenance(replace(results, tasks=tasks))
    assert "all from 18 private repositories (r00, r01, r02, r03, r04 and 13 more)" in found
    assert "validated on 19 days, 2026-03-01 to 2026-04-01" in found


def test_provisional_tasks_are_counted() -> None:
    results = two_agents()
    some = tuple(replace(task, provisional=number < 2) for number, task in enumerate(results.tasks))
    assert provenance(replace(results, tasks=some)).endswith("; 2 of them provisional")
    assert provenance(replace(results, provisional=True)).endswith("; all of them provisional")
    undated = tuple(replace(task, validated_on=()) for task in results.tasks)
    assert "validated on no day on record" in provenance(replace(results, tasks=undated))


def test_every_form_has_the_line_and_the_redacted_one_has_no_name() -> None:
    results = two_agents()
    line = provenance(results)
    assert line in scoreboard_text(results)
    assert line[1:] in html_report(results)
    assert line.split(";")[1] in report_markdown(results).replace("\\", "")
    assert summary(results)["provenance"] == line
    assert "demo" not in provenance(redacted(results))
    assert "18 tasks, all from a private repository (repository-1)" in scoreboard_text(redacted(results))
    assert provenance(SweepBuilder({"steady": []}).build()) == "no tasks"
