"""The port of tables that answer by themselves, without a gate and a history: free, as they can.

A collection of randomised answers and a stream are tables in SQL, and nothing of a private table:
no budget is spent on them here, nothing is measured, and no answer can be bought more precisely.
What respondents or users lose is decided where the table's data comes from, and its receipts say
how much. The engine asks linear queries of them, and the rest of a statement is as of any table.

Nothing here knows how a kind of table answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from accountant.ledger import Payer
from cube.query import QueryBlock
from cube.target import AccuracyTarget
from inference import Posterior
from inference.independence import Floats, TableLaw
from planner.workload import Fallback, IndependenceQuestion, Wanted
from proxy.api import TableInfo

# What a request that names no accuracy asks for: any interval is as narrow.
AS_IT_IS: Final = AccuracyTarget(half_width=2.0**40, confidence=0.95)


@dataclass(frozen=True, slots=True, eq=False)
class OwnAnswer:
    """The answer to one block.

    Parameters
    ----------
    rows : sequence of Posterior
        One for each row of the block, each with the law of its error. Only half-widths and a
        standard deviation of the law are used: how errors are correlated is not asked.
    source : str
        Where it comes from, in a word, for DP_SOURCE and receipts.
    intervals : tuple of str
        How each interval was found, in words, where the table has several ways.
    """

    rows: Sequence[Posterior]
    source: str
    intervals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class OwnAnswers:
    """The answers to some blocks, in their order, and sentences on how they were made."""

    blocks: tuple[OwnAnswer, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class OwnCells:
    """The cells of a table that a test of independence is about.

    Parameters
    ----------
    counts : ndarray of float64
        Noisy; in the shape of the question.
    law : TableLaw
        How such tables come about.
    note : str
        On what was tested.
    """

    counts: Floats
    law: TableLaw
    note: str


class SelfAnswering(Protocol):
    """A table that answers by itself. Thread-safe."""

    @property
    def info(self) -> TableInfo:
        """Its public schema, its kind and what it is; the default target is `AS_IT_IS`."""
        ...

    @property
    def edition(self) -> str:
        """A name of its schema: another one if that has changed."""
        ...

    @property
    def position(self) -> tuple[int, str]:
        """Where its data stands: while it is the same, so are its answers."""
        ...

    def foreseen(self, wanted: Sequence[Wanted], fallback: Fallback) -> list[float | None]:
        """The widest half-width that each block would have, at its target's confidence.

        Nothing is released, and nothing changes. None where it cannot be told in advance.

        Raises
        ------
        Refused
            If `answer` would refuse.
        """
        ...

    def answer(self, wanted: Sequence[Wanted], payer: Payer, fallback: Fallback) -> OwnAnswers:
        """The rows of some blocks, whatever half-widths are wanted.

        Parameters
        ----------
        wanted : sequence of Wanted
            All that a statement asks of the table.
        payer : Payer
            Who asks; nothing is charged to them.
        fallback : Fallback
            What the statement falls back on where the table has no answer.

        Raises
        ------
        Refused
            With what can be asked instead.
        """
        ...

    def cells(self, block: QueryBlock, question: IndependenceQuestion) -> OwnCells:
        """The cells of a table whose independence is asked, which a block counts.

        Raises
        ------
        Refused
            If it is not known how such tables come about, or simulating them is too much.
        """
        ...
