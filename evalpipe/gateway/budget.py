"""The budget of a sweep: the worst case of an attempt is reserved before it starts, and settled when it has ended."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

_MICRO = Decimal(1_000_000)
_TABLE = """
create table if not exists reservations (
    attempt_id text primary key,
    reserved integer not null,  -- millionths of a US dollar
    spent integer               -- the same; null until the attempt is settled
)
"""


class SweepBudget:
    """What a sweep may cost, in US dollars, kept in a file: every process of the sweep shares it, now and later.

    A reservation that was never settled, because evalpipe was killed, counts as its worst case until it is.
    """

    def __init__(self, path: Path, limit_usd: Decimal) -> None:
        """Raises OSError or sqlite3.Error when `path` cannot hold the budget."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._limit = path, _micro(limit_usd)
        with self._writing() as database:
            database.execute(_TABLE)

    def reserve(self, attempt_id: str, worst_case_usd: Decimal) -> bool:
        """Set money aside for an attempt; False when the budget has not that much. An attempt is reserved once."""
        with self._writing() as database:
            known = database.execute("select 1 from reservations where attempt_id = ?", (attempt_id,)).fetchone()
            if known is not None:
                return True
            worst = _micro(worst_case_usd)
            if _committed(database) + worst > self._limit:
                return False
            database.execute("insert into reservations values (?, ?, null)", (attempt_id, worst))
            return True

    def settle(self, attempt_id: str, spent_usd: Decimal | None) -> None:
        """Put what an attempt cost in the place of its worst case; None, where this is not known, leaves that.

        Raises KeyError when nothing was reserved for the attempt.
        """
        with self._writing() as database:
            spent = None if spent_usd is None else _micro(spent_usd)
            changed = database.execute(
                "update reservations set spent = coalesce(?, reserved) where attempt_id = ?", (spent, attempt_id)
            )
            if changed.rowcount == 0:
                raise KeyError(attempt_id)

    def include(self, spent_usd: Mapping[str, Decimal]) -> None:
        """Count what attempts cost that were not reserved here: on another machine, or before the file was lost."""
        rows = [(attempt_id, _micro(spent), _micro(spent)) for attempt_id, spent in spent_usd.items()]
        with self._writing() as database:
            database.executemany("insert or ignore into reservations values (?, ?, ?)", rows)

    def unsettled(self) -> list[str]:
        """Attempts whose money is still set aside, in the order of their names."""
        with self._writing() as database:
            rows = database.execute("select attempt_id from reservations where spent is null order by attempt_id")
            return [row[0] for row in rows]

    def left_usd(self) -> Decimal:
        """What may still be reserved; negative when attempts cost more than their worst case."""
        with self._writing() as database:
            return (self._limit - _committed(database)) / _MICRO

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=60, isolation_level=None)) as database:
            database.execute("begin immediate")
            yield database
            database.execute("commit")


def _committed(database: sqlite3.Connection) -> int:
    total: int = database.execute("select coalesce(sum(coalesce(spent, reserved)), 0) from reservations").fetchone()[0]
    return total


def _micro(usd: Decimal) -> int:
    return int((usd * _MICRO).to_integral_value(ROUND_CEILING))
