"""The request for a synthetic table, the progress of making it, and the result.

Values only: make.py makes one, and nothing here knows a gate or a client.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final, TypeAlias

import pyarrow as pa

from cube.query import Scope
from cube.statistic import N_PARENTS_MAX, Score
from synthesis import FEDERATED, Smoothing, Structure
from synthesis.privbayes import DEFAULTS

CONFIDENCE: Final = 0.95  # of the interval of an evaluation


class Method(StrEnum):
    """How a synthetic table is made; `AUTO` stands for one of the others."""

    AUTO = "auto"
    PAIRWISE = "pairwise"
    PRIVBAYES = "privbayes"


THETA_MIN: Final = 0.1  # of the usefulness of a network's tables
THETA_MAX: Final = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Groups of a category's levels; they may be parents in a network.

    Parameters
    ----------
    name : str
        The public table, a dot, and the column that says the groups.
    column : str
        The category.
    labels : tuple of int
        The class of each level, numbered from 0 as they first appear.
    """

    name: str
    column: str
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        if list(dict.fromkeys(self.labels)) != list(range(self.n_classes)):
            raise ValueError("classes are numbered as they first appear")

    @property
    def n_classes(self) -> int:
        """The number of groups."""
        return len(set(self.labels))


class Votes(StrEnum):
    """What a holder's vote for an arc of a network weighs."""

    BY_SIZE = "by_size"  # as much as the holder has rows
    ONE_EACH = "one_each"


class Clip(StrEnum):
    """Who sets negative counts to 0."""

    COORDINATOR = "coordinator"  # once, in the sum over holders
    HOLDERS = "holders"  # each in its own counts, as published


class AskedHolders(StrEnum):
    """Which holders of a federated table have to answer."""

    ALL = "all"
    ANY = "any"  # those that can, if not all can


DEFAULT_STRUCTURE: Final = Structure.VOTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """How the answers of holders become one network.

    Parameters
    ----------
    structure : Structure
        How parents are chosen.
    votes : Votes
        Of `Structure.VOTES`.
    clip : Clip
        For noisy tables that are summed, like the next two.
    smoothing : Smoothing
    public_rows : int, optional
        How many rows all holders have, if that is public; a noisy number by default.
    """

    structure: Structure = DEFAULT_STRUCTURE
    votes: Votes = Votes.BY_SIZE
    clip: Clip = Clip.COORDINATOR
    smoothing: Smoothing = FEDERATED.smoothing
    public_rows: int | None = None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Joining":
        """The value of its fields as JSON values."""
        return cls(
            structure=Structure(values["structure"]),
            votes=Votes(values["votes"]),
            clip=Clip(values["clip"]),
            smoothing=Smoothing(values["smoothing"]),
            public_rows=values["public_rows"],
        )

    @property
    def options(self) -> tuple[str, ...]:
        """The options of an SQL statement that say it, but for the usual ones."""
        usual, said = Joining(structure=self.structure), [f"structure => '{self.structure}'"]
        said += [
            f"{name} => '{getattr(self, name)}'"
            for name in ("votes", "clip", "smoothing")
            if getattr(self, name) != getattr(usual, name)
        ]
        if self.public_rows is not None:
            said.append(f"public_rows => {self.public_rows}")
        return tuple(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisRequest:
    """A request for a synthetic table.

    Parameters
    ----------
    epsilon : Fraction
        The most by which it may increase the table's cost; 0 for a table from history alone.
    columns : tuple of str
        The columns, in the order of the result; empty for every column.
    n_rows : int, optional
        None for as many as the private table has, by the history's estimate.
    seed : int, optional
        The seed of the drawing of rows, which is not privacy noise; None for a random seed.
    delta : Fraction, optional
        If given, the table is measured with Gaussian noise; it must be the delta that the private
        table offers.
    score : Score
        For the method privbayes, like the next five: the score by which parents are chosen.
    degree : int
        The most parents of a column.
    hierarchies : bool
        Whether columns with ordered levels may be parents at coarser levels.
    theta : float
        The least usefulness of a table: the average count of a cell over its average noise.
    structure_share : Fraction
        The share of the budget that the choice of parents may take.
    groups : tuple of Grouping
        Of categories, which may be parents by their groups; the finest groups first.
    joining : Joining, optional
        Of a network of a federated table; None of other tables.
    any_holders : bool
        Whether a federated table's rows are those of the holders that can answer, if not all can.
    target : tuple of str
        The columns that are to be learned from the others; they come first in what is bought.
    workload : tuple of sorted scopes
        The columns of each query that the rows are to answer well, once a query.
    evaluate : Fraction
        What may be spent beside `epsilon` on an honest score of the table; 0 for none.
    """

    table: str
    epsilon: Fraction
    method: Method = Method.AUTO
    columns: tuple[str, ...] = ()
    n_rows: int | None = None
    seed: int | None = None
    delta: Fraction | None = None
    score: Score = DEFAULTS.score
    degree: int = DEFAULTS.degree
    hierarchies: bool = False
    theta: float = DEFAULTS.theta
    structure_share: Fraction = DEFAULTS.network_share
    groups: tuple[Grouping, ...] = ()
    joining: Joining | None = None
    any_holders: bool = False
    target: tuple[str, ...] = ()
    workload: tuple[Scope, ...] = ()
    evaluate: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if min(self.epsilon, self.evaluate) < 0:
            raise ValueError("an epsilon below zero")
        if self.n_rows is not None and self.n_rows < 1:
            raise ValueError("a table of fewer than one row")
        if self.delta is not None and not 0 < self.delta < 1:
            raise ValueError("a delta is a probability")
        if not 0 <= self.degree <= N_PARENTS_MAX:
            raise ValueError(f"a column has 0 to {N_PARENTS_MAX} parents")
        if not (THETA_MIN <= self.theta <= THETA_MAX and 0 < self.structure_share < 1):
            raise ValueError("a theta or a share of the budget that is out of range")
        if any(len(set(named)) != len(named) for named in (self.columns, self.target)):
            raise ValueError("a column named twice")
        if self.columns and not set(self.target) <= set(self.columns):
            raise ValueError("a target that is no column of the table")
        if any(list(scope) != sorted(set(scope)) for scope in self.workload):
            raise ValueError("the columns of a query are sorted and distinct")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of making a table.

    Parameters
    ----------
    name : str
        The current step, in a few words.
    done : float
        The share done, from 0 to 1.
    epsilon_spent : Fraction
        What was spent so far.
    """

    name: str
    done: float
    epsilon_spent: Fraction


Watch: TypeAlias = Callable[[Progress], None]  # may raise to stop; what was charged stays charged


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step of a preview: its name, the most it may cost, and how many tables it concerns."""

    name: str
    epsilon: Fraction
    n_tables: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """How far a synthetic table's rows are from the private ones, as was bought for it.

    Parameters
    ----------
    estimate : float
        Of the mean total variation distance of two columns' joint law, from 0 to 1.
    half_width : float
        Of its interval at `CONFIDENCE`: for the noise, and for the pairs that were left out.
    n_pairs : int
        How many pairs of columns were compared, drawn at random.
    n_pairs_all : int
        How many there are.
    epsilon_spent : Fraction
        What it added to the private table's cost.
    is_bound : bool
        Whether it is the most that the distance is: of several holders, no more can be told.
    """

    estimate: float
    half_width: float
    n_pairs: int
    n_pairs_all: int
    epsilon_spent: Fraction
    is_bound: bool = False

    def __str__(self) -> str:
        at_most = "at most " if self.is_bound else ""
        return (
            f"{at_most}{self.estimate:.4f} +- {self.half_width:.4f} "
            f"({self.n_pairs} of {self.n_pairs_all} pairs)"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MadeTable:
    """A synthetic table and its provenance.

    Parameters
    ----------
    method : Method
        The one that was used, never `AUTO`.
    epsilon_spent : Fraction
        By how much it increased the table's cost.
    unknown : tuple of str
        Columns about which nothing is known; they are drawn uniformly.
    tables : tuple of sorted scopes
        The noisy tables of the history that it is based on.
    model : mapping
        The model it was drawn from, as JSON values: public, and enough to draw rows again.
    n_charges : int
        How many charges the history had: its position in the ledger of the table.
    incomplete : str
        Why less was bought than was asked for; empty if nothing went wrong.
    levels : tuple of int, optional
        Of a federated table: the holders whose rows it was made of; None of any other.
    left_out : str
        The holders that it was made without, as its readers may know them; empty if of none.
    evaluation : Evaluation, optional
        None if none was bought.
    generation : int
        The generation of the private table.
    n_respondents : int, optional
        Of a collection: how many had answered; None of a private table.
    """

    rows: pa.Table
    method: Method
    epsilon_spent: Fraction
    unknown: tuple[str, ...]
    tables: tuple[Scope, ...]
    model: Mapping[str, Any]
    n_charges: int
    incomplete: str = ""
    generation: int = 1
    levels: tuple[int, ...] | None = None
    left_out: str = ""
    evaluation: Evaluation | None = None
    n_respondents: int | None = None
