"""Runs many partitions in one Dagster run: a thread pool, and one event for each partition that is done.

A run for each partition costs 3 to 5 CPU-seconds of Dagster's own; a batch half a second or less for each. The
price is that the asset says itself what was done: exactly the partitions without an event stay missing, and a
retry asks for just these.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.execution.plan.execute_step import (
    _build_data_version_tags,
    _get_code_version,
    _get_input_provenance_data,
)

from evalpipe.lake import DiskFullError, StoreError
from evalpipe.sandbox import DiskFull, EngineUnavailable, SandboxError
from evalpipe.stages.bench import Workbench

RUN_LABEL = "run"
_KILL_AGAIN_S = 0.1
_SHOWN_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class PartitionDone:
    """What a finished partition tells Dagster; `data_version` changes when its content does."""

    data_version: str
    metadata: Mapping[str, dg.MetadataValue] = field(default_factory=dict)


class PartitionFailed(Exception):
    """A partition's work was done and kept, and is not what it should be: it stays missing, with this reason."""


Work = Callable[[str, dict[str, str]], PartitionDone]


def run_batch(
    context: dg.AssetExecutionContext,
    bench: Workbench,
    keys: Iterable[str],
    work: Work,
    *,
    workers: int,
    note: Callable[[], str] = str,
) -> dict[str, str]:
    """Do `work(key, labels)` for each key, at most `workers` at once, and log an event for each that is done.

    `labels` are for every box that the work opens. `note` says, every few seconds, what a display shows beside the
    count. Returns the reason for each key that failed; the asset ends with `end_batch`, which makes the run fail when
    there is any. A dead engine, a full disk or a lake out of reach ends the batch: what has not begun then stays
    missing, and costs nothing. On an interrupt the boxes of this run are killed at once.
    """
    wanted = list(keys)
    batch = _Batch(bench, work, {RUN_LABEL: context.run.run_id})
    failed: dict[str, str] = {}
    provenance = _provenance(context)
    with (
        bench.progress(context.asset_key.to_user_string(), len(wanted)) as advance,
        ThreadPoolExecutor(workers) as pool,
    ):
        try:
            running = {pool.submit(batch.begin, key): key for key in wanted}
            waiting = set(running)
            while waiting:
                ended, waiting = wait(waiting, _SHOWN_EVERY_S, FIRST_COMPLETED)
                for done in ended:
                    key = running[done]
                    error = done.exception()
                    if error is None:
                        _log_done(context, key, done.result(), provenance)
                    elif isinstance(error, Exception):
                        failed[key] = _reason(error)
                        _log_failed(context, key, failed[key])
                    else:
                        raise error
                    advance(1, note())
                advance(0, note())
        except BaseException:
            batch.abandon()
            raise
    # The machine may be gone after this run, as those of CI are.
    bench.lake.folder.put_waiting()
    return failed


class _Batch:
    """What the threads of a batch share: whether another partition may begin, and how many are at work."""

    def __init__(self, bench: Workbench, work: Work, labels: dict[str, str]) -> None:
        self._bench = bench
        self._work = work
        self._labels = labels
        self._lock = Lock()
        self._ended = False
        self._at_work = 0

    def begin(self, key: str) -> PartitionDone:
        # Asked in the worker's own thread: it takes the next partition before anybody can cancel that.
        with self._lock:
            if self._ended:
                raise PartitionFailed("not begun, because the batch had to end")
            self._at_work += 1
        try:
            return self._work(key, self._labels)
        except Exception as error:
            if isinstance(error, DiskFull | DiskFullError | StoreError) or self._engine_is_gone():
                self._ended = True
            raise
        finally:
            with self._lock:
                self._at_work -= 1

    def abandon(self) -> None:
        """Let nothing begin, and kill what runs until nothing does: a worker between two boxes opens the next."""
        with self._lock:
            self._ended = True
        with self._bench.room.closed():
            while self._at_work:
                with suppress(SandboxError):  # without an engine there is nothing to kill, and the work ends by itself
                    self._bench.sandbox.kill(self._labels)
                time.sleep(_KILL_AGAIN_S)

    def _engine_is_gone(self) -> bool:
        try:
            self._bench.sandbox.describe()
        except EngineUnavailable:
            return True
        return False


def _reason(error: Exception) -> str:
    # An error of evalpipe's own modules speaks to the user; of any other the type says half of it.
    own = type(error).__module__.startswith("evalpipe.")
    return str(error) if own else f"{type(error).__name__}: {error}"


def _log_done(context: dg.AssetExecutionContext, key: str, done: PartitionDone, provenance: Mapping[str, str]) -> None:
    tags = {**provenance, DATA_VERSION_TAG: done.data_version}
    context.log_event(
        dg.AssetMaterialization(asset_key=context.asset_key, partition=key, metadata=done.metadata, tags=tags)
    )


def _provenance(context: dg.AssetExecutionContext) -> Mapping[str, str]:
    """The tags by which Dagster tells later that a partition is stale: the asset's code version, and its inputs'.

    Dagster gives them to its own events only. Without them a changed agent file made nothing stale.
    """
    step = context.get_step_execution_context()
    inputs = _get_input_provenance_data(context.asset_key, step)
    version = _get_code_version(context.asset_key, step)
    return _build_data_version_tags(dg.DataVersion(""), version, inputs, data_version_is_user_provided=True)


def _log_failed(context: dg.AssetExecutionContext, key: str, reason: str) -> None:
    # The page of a partition shows its observations, and of a failed run no more than a link.
    context.log_event(
        dg.AssetObservation(
            asset_key=context.asset_key, partition=key, metadata={"not_done_because": dg.MetadataValue.text(reason)}
        )
    )
    context.log.warning(f"{key}: {reason}")


BatchResults = Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]


def end_batch(context: dg.AssetExecutionContext, failed: Mapping[str, str], wanted: int) -> BatchResults:
    """End a batch of `wanted` partitions. Raises dg.Failure, which names what failed and why, when anything did.

    Yields nothing, and is to be yielded from: from an asset that returns None Dagster makes one more event for each
    partition, without metadata and version, and that would be the one that counts.
    """
    if failed:
        reasons = sorted({reason.splitlines()[0] if reason else "" for reason in failed.values()})
        shown = "; ".join(reasons[:3]) + ("; …" if len(reasons) > 3 else "")
        raise dg.Failure(
            f"{context.asset_key.to_user_string()}: {len(failed)} of {wanted} partitions are not done: {shown}",
            metadata={"failed": dg.MetadataValue.json(dict(failed))},
            allow_retries=False,
        )
    yield from ()
