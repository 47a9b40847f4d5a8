"""A database whose statements run on SQLite and Postgres: the port, and the mapping of its errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

Values = Sequence[Any] | Mapping[str, Any]  # for each `?` of a statement, or for each `:name`
Statement = tuple[str, Values]


class Outcome(NamedTuple):
    """The rows that a statement returned, and the number that it changed."""

    rows: list[tuple[Any, ...]]
    changed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseErrors:
    """The exceptions that a database raises, each made from a sentence that says what to do.

    `unreachable` is for a remote database that does not answer, where another try may help.
    """

    failed: Callable[[str], Exception]
    unreachable: Callable[[str], Exception]


class Database(ABC):
    """Statements that run all together or not at all; every method raises the errors of `DatabaseErrors`.

    `is_remote` says that others may reach it when this process does not, and `clock` is its time in
    seconds since the epoch, in SQL.
    """

    is_remote: ClassVar[bool]
    clock: ClassVar[str]

    @abstractmethod
    async def run_all(
        self, statements: Sequence[Statement], *, lock: str = "", only_if: Statement | None = None
    ) -> Outcome | None:
        """Run statements in one transaction, and return the result of the last.

        Calls that name the same lock, in all processes, run one after the other. If `only_if`,
        which runs first, returns no row, nothing is done, and None is returned.
        """

    async def rows(self, sql: str, values: Values = (), *, lock: str = "") -> list[tuple[Any, ...]]:
        """Run a query, or a change that returns rows."""
        outcome = await self.run_all([(sql, values)], lock=lock)
        return outcome.rows if outcome else []

    async def row(self, sql: str, values: Values = (), *, lock: str = "") -> tuple[Any, ...] | None:
        """Run a query and return its first row."""
        return next(iter(await self.rows(sql, values, lock=lock)), None)

    async def write(self, sql: str, values: Values = ()) -> int:
        """Change rows and return their number."""
        outcome = await self.run_all([(sql, values)])
        return outcome.changed if outcome else 0

    @abstractmethod
    async def check(self) -> None:
        """Raise if writes would be lost without an error."""

    @abstractmethod
    async def shrink(self) -> None:
        """Return free space to the disk."""
