"""Runs many partitions in one Dagster run: a thread pool, and one event for each partition that is done.

A run for each partition costs 3 to 5 CPU-seconds of Dagster's own; a batch half a second or less for each. The
price is that the asset says itself what was done: exactly the partitions without an event stay missing, and a
retry asks for just these.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

import dagster as dg

from evalpipe.lake import DiskFullError
from evalpipe.sandbox import DiskFull, EngineUnavailable
from evalpipe.stages.bench import Workbench

RUN_LABEL = "run"


@dataclass(frozen=True, slots=True)
class PartitionDone:
    """What a finished partition tells Dagster; `data_version` changes when its content does."""

    data_version: str
    metadata: Mapping[str, dg.MetadataValue] = field(default_factory=dict)


class PartitionFailed(Exception):
    """A partition's work was done and kept, and is not what it should be: it stays missing, with this reason."""


def run_batch(
    context: dg.AssetExecutionContext,
    bench: Workbench,
    keys: Iterable[str],
    work: Callable[[str, dict[str, str]], PartitionDone],
    *,
    workers: int,
) -> dict[str, str]:
    """Do `work(key, labels)` for each key, at most `workers` at once, and log an event for each that is done.

    `labels` are for every box that the work opens. Returns the reason for each key that failed; the
    asset ends with `end_batch`, which makes the run fail when there is any. A dead engine or a full disk ends the
    batch: what has not begun then stays missing. On an interrupt the boxes of this run are killed at once.
    """
    labels = {RUN_LABEL: context.run_id}
    wanted = list(keys)
    failed: dict[str, str] = {}
    with (
        bench.progress(context.asset_key.to_user_string(), len(wanted)) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        running = {pool.submit(work, key, labels): key for key in wanted}
        try:
            for done in as_completed(running):
                key = running[done]
                error = None if done.cancelled() else done.exception()
                if done.cancelled():
                    failed[key] = "not begun"
                elif error is None:
                    _log_done(context, key, done.result())
                elif isinstance(error, Exception):
                    failed[key] = (
                        str(error) if isinstance(error, PartitionFailed) else f"{type(error).__name__}: {error}"
                    )
                    context.log.warning(f"{key}: {failed[key]}")
                else:
                    raise error
                if isinstance(error, EngineUnavailable | DiskFull | DiskFullError):
                    _cancel(running)
                advance()
        except BaseException:
            _cancel(running)
            bench.sandbox.kill(labels)
            raise
    return failed


def _cancel(running: Iterable[Future[PartitionDone]]) -> None:
    for future in running:
        future.cancel()


def _log_done(context: dg.AssetExecutionContext, key: str, done: PartitionDone) -> None:
    context.log_event(
        dg.AssetMaterialization(
            asset_key=context.asset_key,
            partition=key,
            metadata=done.metadata,
            tags={"dagster/data_version": done.data_version},
        )
    )


def end_batch(context: dg.AssetExecutionContext, failed: Mapping[str, str], wanted: int) -> None:
    """End a batch of `wanted` partitions. Raises dg.Failure, which names what failed and why, when anything did."""
    if not failed:
        return
    reasons = sorted({reason.splitlines()[0] if reason else "" for reason in failed.values()})
    shown = "; ".join(reasons[:3]) + ("; …" if len(reasons) > 3 else "")
    raise dg.Failure(
        f"{context.asset_key.to_user_string()}: {len(failed)} of {wanted} partitions are not done: {shown}",
        metadata={"failed": dg.MetadataValue.json(dict(failed))},
        allow_retries=False,
    )
