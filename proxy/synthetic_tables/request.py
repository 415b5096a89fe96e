"""What is asked for when a synthetic table is made, what is told on the way, and what comes of it.

Values only: making.py makes one, and nothing here knows a gate or a client.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa

from cube.query import Scope
from cube.statistic import N_PARENTS_MAX, Score
from synthesis.privbayes.learning import DEFAULTS


class Method(StrEnum):
    """How a synthetic table is made."""

    PAIRWISE = "pairwise"
    PRIVBAYES = "privbayes"


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisRequest:
    """A synthetic table that somebody asks for.

    Parameters
    ----------
    table : str
        The private table.
    epsilon : Fraction
        The most that it may add to the table's cost; 0 for a table from history alone.
    method : Method
    columns : tuple of str
        In the order of the result; empty for every column.
    n_rows : int, optional
        None for as many as there are, by what the history says of it.
    seed : int, optional
        Of the rows' own randomness, which protects nothing; None for any.
    delta : Fraction, optional
        With it, the table is measured with Gaussian noise; the one that the private table offers.
    score : Score
        Of the method privbayes, like the next two: what parents are chosen by.
    degree : int
        The most parents of a column.
    hierarchies : bool
        Whether columns whose levels lie in an order may be parents at coarser levels.
    """

    table: str
    epsilon: Fraction
    method: Method = Method.PAIRWISE
    columns: tuple[str, ...] = ()
    n_rows: int | None = None
    seed: int | None = None
    delta: Fraction | None = None
    score: Score = DEFAULTS.score
    degree: int = DEFAULTS.degree
    hierarchies: bool = False

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            raise ValueError("an epsilon below zero")
        if self.n_rows is not None and self.n_rows < 1:
            raise ValueError("a table of fewer than one row")
        if self.delta is not None and not 0 < self.delta < 1:
            raise ValueError("a delta is a probability")
        if not 0 <= self.degree <= N_PARENTS_MAX:
            raise ValueError(f"a column has 0 to {N_PARENTS_MAX} parents")
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("a column named twice")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it has come.

    Parameters
    ----------
    name : str
        What is done now, in a few words.
    done : float
        Of the whole, 0 to 1.
    epsilon_spent : Fraction
        So far.
    """

    name: str
    done: float
    epsilon_spent: Fraction


Watch: TypeAlias = Callable[[Progress], None]  # may raise to stop; what was charged stays charged


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step of a preview: what for, the most it may cost, and how many tables it is about."""

    name: str
    epsilon: Fraction
    n_tables: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MadeTable:
    """A synthetic table and where it comes from.

    Parameters
    ----------
    rows : pyarrow.Table
    method : Method
    epsilon_spent : Fraction
        What it added to the table's cost.
    unknown : tuple of str
        Columns that nothing is known of: drawn uniformly.
    tables : tuple of sorted scopes
        The noisy tables of the history that it rests on.
    model : mapping
        What it was drawn from, as JSON values: public, and enough to draw again.
    n_charges : int
        How many charges the history had: its place in the ledger of the table.
    incomplete : str
        Why less was bought than was asked for; empty if nothing went wrong.
    """

    rows: pa.Table
    method: Method
    epsilon_spent: Fraction
    unknown: tuple[str, ...]
    tables: tuple[Scope, ...]
    model: Mapping[str, Any]
    n_charges: int
    incomplete: str = ""
