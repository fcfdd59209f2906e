"""Asset checks: what must hold for a sweep's numbers to mean something, where the UI shows it.

Blocking where what comes next in the same run would be wrong; stages refuse in code as well, since a check blocks only
within its own run. The calibration has its check in its own asset.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg

from evalpipe.agents import HistoryKind
from evalpipe.config import AgentConfig, SweepConfig
from evalpipe.pipeline.history_assets import Bench
from evalpipe.pipeline.jobs import dagster_name
from evalpipe.pipeline.task_set_assets import TaskSetAssets

if TYPE_CHECKING:  # see history_assets: what computes is imported where it is used
    from evalpipe.stages.health import Health

_RESULT_CHECKS = {
    "sandboxes_probed": ("category_report", True, "Every image was probed before the first attempt in it."),
    "few_invalid_attempts": ("category_report", False, "Infrastructure cost no agent more than a few attempts."),
    "tasks_tell_agents_apart": ("category_report", False, "Not too many tasks are solved by all agents or by none."),
    "manifests_agree": ("agent_comparison", True, "All agents ran on the same tasks under the same conditions."),
}
"""Name of each check of results: the asset that it is of, whether it blocks, and what it says."""


def set_checks(of_set: TaskSetAssets, sweeps: Mapping[str, SweepConfig]) -> list[dg.AssetChecksDefinition]:
    """The checks of a frozen set: its files, its instances, its age, and its size for each sweep that asks of it."""
    asset = of_set.frozen.key
    task_set = of_set.task_set
    over = [sweep for sweep in sweeps.values() if sweep.task_set == task_set.record.name]
    kinds = sorted({HistoryKind(sweep.history) for sweep in over} or {HistoryKind.ANCESTORS})

    @dg.asset_check(asset=asset, name="files_as_frozen", blocking=True)
    def as_frozen(bench: Bench) -> dg.AssetCheckResult:
        """Every file has its hash, and every patch is what git says."""
        from evalpipe.stages import health

        return _result(health.files_as_frozen(bench, task_set.record.name))

    @dg.asset_check(asset=asset, name="instances_give_nothing_away", blocking=True)
    def proven(bench: Bench) -> dg.AssetCheckResult:
        """No repository that an agent gets holds anything of its task's answer."""
        from evalpipe.stages import health

        return _result(health.instances_proven(bench, task_set, kinds))

    @dg.asset_check(asset=asset, name="validation_is_recent")
    def recent(bench: Bench) -> dg.AssetCheckResult:
        """No task was validated too long ago."""
        from evalpipe.stages import health

        return _result(health.validation_is_recent(bench, task_set))

    return [as_frozen, proven, recent, *(_size_check(of_set, sweep) for sweep in over)]


def result_checks(sweep: SweepConfig, agents: Mapping[str, AgentConfig]) -> dg.AssetChecksDefinition:
    """The checks of a sweep's results, in one look at them."""
    specs = [
        dg.AssetCheckSpec(name, asset=[sweep.name, asset], blocking=blocking, description=text)
        for name, (asset, blocking, text) in _RESULT_CHECKS.items()
    ]

    @dg.multi_asset_check(specs=specs, name=f"{dagster_name(sweep.name)}__result_checks")
    def checks(bench: Bench) -> Iterator[dg.AssetCheckResult]:
        from evalpipe.reports.samples import collect_samples
        from evalpipe.stages import health
        from evalpipe.stages.reporting import gather_results

        results = gather_results(bench, sweep, dict(agents))
        samples = collect_samples(results)
        found = {
            "sandboxes_probed": health.sandboxes_probed(results),
            "few_invalid_attempts": health.few_invalid_attempts(results, samples),
            "tasks_tell_agents_apart": health.tasks_tell_agents_apart(results, samples),
            "manifests_agree": health.manifests_agree(results),
        }
        for name, one in found.items():
            yield _result(one, name=name, asset=[sweep.name, _RESULT_CHECKS[name][0]])

    return checks


def _size_check(of_set: TaskSetAssets, sweep: SweepConfig) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=of_set.frozen.key, name=f"enough_tasks_for_{dagster_name(sweep.name)}")
    def enough() -> dg.AssetCheckResult:
        """Tasks and samples can show the smallest difference that the sweep's decision turns on."""
        from evalpipe.stages import health

        return _result(health.enough_tasks(sweep, of_set.task_set))

    return enough


def _result(health: "Health", **of: Any) -> dg.AssetCheckResult:
    target = {"check_name": of["name"], "asset_key": of["asset"]} if of else {}
    return dg.AssetCheckResult(
        passed=health.passed,
        severity=dg.AssetCheckSeverity.ERROR if health.severe else dg.AssetCheckSeverity.WARN,
        description=health.text,
        metadata={name: dg.MetadataValue.float(float(value)) for name, value in health.numbers.items()},
        **target,
    )
