"""Assets that report on a sweep: category_report, agent_comparison, evaluation_report."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from evalpipe.config import AgentConfig, SweepConfig
from evalpipe.pipeline.columns import columns_of
from evalpipe.pipeline.history_assets import Bench
from evalpipe.pipeline.metadata import series
from evalpipe.pipeline.sweep_assets import graded_keys, group_of

if TYPE_CHECKING:  # see history_assets: what draws is imported where it is used
    from evalpipe.reports import SweepResults

Agents = Mapping[str, AgentConfig]


def report_assets(sweep: SweepConfig, agents: Agents) -> list[dg.AssetsDefinition]:
    """The three assets over the graded results of a sweep."""
    graded = [dg.AssetDep(key, partition_mapping=dg.AllPartitionMapping()) for key in graded_keys(sweep)]
    tables = [_category_report(sweep, agents, graded), _agent_comparison(sweep, agents, graded)]
    return [*tables, _evaluation_report(sweep, agents, tables)]


def _category_report(sweep: SweepConfig, agents: Agents, graded: Sequence[dg.AssetDep]) -> dg.AssetsDefinition:
    @dg.asset(
        key=[sweep.name, "category_report"],
        group_name=group_of(sweep.name),
        owners=sweep.owners,
        kinds={"parquet"},
        deps=graded,
        metadata=columns_of("category_report"),
    )
    def category_report(bench: Bench) -> dg.MaterializeResult[Any]:
        """Pass@1 of each agent in each category, and the total weighted by the team's workload."""
        from evalpipe.reports import category_markdown, category_png, summary
        from evalpipe.stages.reporting import gather_results

        results = gather_results(bench, sweep, dict(agents))
        rows = [{"sweep": sweep.name, **row} for row in summary(results)["categories"]]
        path = bench.lake.write("category_report", rows, sweep.name)
        table = _with_picture(category_markdown(results), category_png(results), "pass@1 by category with intervals")
        numbers = {
            f"{row['category']}_{row['agent']}_{row['mode']}": float(row["pass_at_1"])
            for row in rows
            if row["pass_at_1"] is not None
        }
        metadata = {"rows": len(rows), "table": table, **series("pass_at_1", numbers)}
        return _result(results, metadata, str(path))

    return category_report


def _agent_comparison(sweep: SweepConfig, agents: Agents, graded: Sequence[dg.AssetDep]) -> dg.AssetsDefinition:
    @dg.asset(
        key=[sweep.name, "agent_comparison"],
        group_name=group_of(sweep.name),
        owners=sweep.owners,
        kinds={"parquet"},
        deps=graded,
        metadata=columns_of("agent_comparison"),
    )
    def agent_comparison(bench: Bench) -> dg.MaterializeResult[Any]:
        """The comparisons that the sweep fixed beforehand: paired differences, adjusted for their number."""
        from evalpipe.reports import comparison_png, summary
        from evalpipe.stages.reporting import gather_results

        results = gather_results(bench, sweep, dict(agents))
        rows = [{"sweep": sweep.name, **row} for row in summary(results)["comparisons"]]
        path = bench.lake.write("agent_comparison", rows, sweep.name)
        table = "\n".join(f"- {row['first']} and {row['second']} ({row['mode']}): {row['verdict']}" for row in rows)
        numbers = {
            f"{row['second']}_minus_{row['first']}_{row['mode']}": float(row["difference"])
            for row in rows
            if row["difference"] is not None
        }
        shown = _with_picture(table, comparison_png(results), "differences with intervals")
        metadata = {"rows": len(rows), "table": shown, **series("difference", numbers)}
        return _result(results, metadata, str(path))

    return agent_comparison


def _evaluation_report(
    sweep: SweepConfig, agents: Agents, tables: Sequence[dg.AssetsDefinition]
) -> dg.AssetsDefinition:
    @dg.asset(
        key=[sweep.name, "evaluation_report"],
        group_name=group_of(sweep.name),
        owners=sweep.owners,
        kinds={"html"},
        deps=tables,
    )
    def evaluation_report(bench: Bench) -> dg.MaterializeResult[Any]:
        """The report of the sweep: one HTML file that opens offline."""
        from evalpipe.reports import scoreboard_markdown, scoreboard_png, summary
        from evalpipe.stages.reporting import gather_results, write_report

        results = gather_results(bench, sweep, dict(agents))
        path = write_report(bench, bench.report_path(sweep.name).parent, results)
        agents_said = summary(results)["agents"]
        named = {f"{row['agent']}_{row['mode']}": row for row in agents_said if row["pass_at_1"] is not None}
        numbers = {
            **series("pass_at_1", {name: float(row["pass_at_1"]) for name, row in named.items()}),
            **series("invalid_samples", {name: row["samples_invalid"] for name, row in named.items()}),
        }
        board = _with_picture(scoreboard_markdown(results), scoreboard_png(results), "pass@1 with intervals")
        return _result(results, {"scoreboard": board, **numbers}, str(path))

    return evaluation_report


def _with_picture(text: str, picture: bytes | None, title: str) -> dg.MarkdownMetadataValue:
    data = f"\n\n![{title}](data:image/png;base64,{base64.b64encode(picture).decode('ascii')})" if picture else ""
    return dg.MetadataValue.md(text + data)


def _result(results: "SweepResults", metadata: dict[str, Any], path: str) -> dg.MaterializeResult[Any]:
    # Dagster follows at most 100 partitions of a dependency, so a report says itself what it was made from.
    inputs = _digest_of_inputs(results)
    return dg.MaterializeResult(
        metadata={"path": dg.MetadataValue.path(path), "inputs": inputs, **metadata},
        data_version=dg.DataVersion(inputs),
    )


def _digest_of_inputs(results: "SweepResults") -> str:
    graded = results.graded.select(["agent", "configuration", "task_id", "sample", "attempt_id", "verdict"])
    rows = sorted(tuple(row.values()) for row in graded.to_pylist())
    return hashlib.sha256(json.dumps([results.revision, rows]).encode()).hexdigest()
