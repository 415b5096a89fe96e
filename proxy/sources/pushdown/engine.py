"""What an engine is to a table that stays in it: a place that statements are sent to.

Texts of engines may quote a row, and are dropped where they are caught: what goes on is a kind of
failure.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from proxy.sources.axis_sql import SourceColumn
from proxy.sources.pushdown.dialect import Dialect


class Failure(StrEnum):
    """Why an engine gave no answer."""

    UNREACHABLE = "cannot be reached, or does not let this server in"
    LATE = "took longer than the timeout that is declared for it"
    REFUSED = "does not let this server read the table, or has no such table"
    BROKEN = "failed"
    NO_TABLE = "has no such table, or has one that cannot be counted where it is"
    NOT_INSTALLED = "needs a client that is not installed"


class EngineError(Exception):
    """An engine gave no answer. It does not carry the engine's own message."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.value)
        self.failure = failure

    @property
    def may_pass(self) -> bool:
        """Whether the same may work in a moment."""
        return self.failure in {Failure.UNREACHABLE, Failure.BROKEN}


@dataclass(frozen=True, slots=True)
class Identity:
    """Which table this is, as its engine knows it without reading rows.

    Parameters
    ----------
    marks : tuple of str
        Whatever changes if the table becomes another one, or its columns do.
    newest : int, optional
        The oldest transaction that was not over when this was looked up; its number and all later
        ones are of rows that were not there. None if the engine has no numbers of transactions.
    following : int, optional
        The first number that no transaction had that was over then. None, too, if the table may be
        written as a whole between what this look asks.
    moment : str, optional
        Two looks of one moment see the same rows of every table, since nothing was written between
        them. None if something was being written, or the engine cannot say.
    """

    marks: tuple[str, ...]
    newest: int | None = None
    following: int | None = None
    moment: str | None = None

    def is_of_the_moment(self, other: "Identity") -> bool:
        """Whether nothing can have changed between two looks."""
        return self.moment is not None and self.moment == other.moment


class Reading(Protocol):
    """One look at a table, all of whose statements see the same rows."""

    @property
    def identity(self) -> Identity:
        """Which table it is."""
        ...

    @property
    def table(self) -> exp.Expr:
        """What follows FROM."""
        ...

    @property
    def columns(self) -> Mapping[str, SourceColumn]:
        """The table's columns by their names in lower case."""
        ...

    def rows(self, query: exp.Expr) -> pa.Table:
        """What a statement gives; EngineError."""
        ...

    def age_of(self, transaction: int) -> int:
        """How many transactions began since one; EngineError."""
        ...


class Engine(Protocol):
    """Where a table is."""

    @property
    def dialect(self) -> Dialect:
        """Its own words."""
        ...

    @property
    def label(self) -> str:
        """The name for the table in messages."""
        ...

    def reading(self) -> AbstractContextManager[Reading]:
        """Begin a look at the table; EngineError."""
        ...
