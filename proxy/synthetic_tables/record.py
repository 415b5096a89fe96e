"""What is kept of a synthetic table beside its rows: what it is of, how and when it was made.

All of it is public to those who may know of the private table: names, costs and choices, which the
ledger has as well. The record is JSON in a file; what does not fit is refused when it is read.
"""

import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

import pyarrow as pa

from cube.statistic import Score
from planner.domain.table_names import SyntheticName
from proxy.api.arrow_types import arrow_type
from proxy.synthetic_tables.request import Method
from synthesis.privbayes.learning import DEFAULTS

FORMAT: Final = 1  # of the JSON; a reader of another format leaves the table alone

Key: TypeAlias = tuple[str, str]  # the private table, and the name in lower case


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRecord:
    """One synthetic table.

    Parameters
    ----------
    id : str
        Of these rows; a table that replaces another of the same name has another.
    name : str
        Among the tables of the same source.
    table : str
        The private table it was made of, and that its name belongs to.
    method : Method
    epsilon : Fraction
        The most that making it might have added to the private table's cost.
    epsilon_spent : Fraction
        What it added.
    seed : int
        Its rows are drawn again from it, value for value, as long as the model is kept.
    n_rows : int
    n_bytes : int
        What its rows take in memory.
    columns : tuple of (str, str)
        Names and SQL types, in order.
    unknown : tuple of str
        Columns that nothing was known of: drawn uniformly.
    tables : tuple of tuple of str
        The columns of every noisy table that it rests on.
    n_charges : int
        How many charges the private table's history had: the place in the ledger.
    incomplete : str
        Why less was bought than was asked for; empty if nothing went wrong.
    made_by : str
        The analyst.
    made_at : str
        UTC, as the ledger writes it.
    delta : Fraction, optional
        What it was measured under, with Gaussian noise; None for noise that promises for certain.
    score : Score
        Of the method privbayes, like the next two: what parents were chosen by.
    degree : int
        The most parents that a column might have.
    hierarchies : bool
        Whether columns might be parents at coarser levels.
    """

    id: str
    name: str
    table: str
    method: Method
    epsilon: Fraction
    epsilon_spent: Fraction
    seed: int
    n_rows: int
    n_bytes: int
    columns: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...]
    n_charges: int
    incomplete: str
    made_by: str
    made_at: str
    delta: Fraction | None = None
    score: Score = DEFAULTS.score
    degree: int = DEFAULTS.degree
    hierarchies: bool = False

    @property
    def full_name(self) -> SyntheticName:
        """The name that no other synthetic table has."""
        return SyntheticName(self.table, self.name)

    @property
    def key(self) -> Key:
        """Equal for tables of which there can be one at a time."""
        return self.table, self.name.lower()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in self.columns])

    @property
    def options(self) -> str:
        """What asks for such a table, as SQL writes it."""
        delta = "" if self.delta is None else f"delta => {float(self.delta):g}, "
        network = ""
        if self.method is Method.PRIVBAYES:
            network = (
                f"score => '{self.score}', degree => {self.degree}, "
                f"hierarchies => {str(self.hierarchies).lower()}, "
            )
        return (
            f"epsilon => {float(self.epsilon):.6g}, {delta}method => '{self.method}', {network}"
            f"rows => {self.n_rows}, seed => {self.seed}"
        )

    @property
    def model(self) -> str:
        """What its rows were drawn to agree with, in words."""
        paired = {name for scope in self.tables for name in scope if len(scope) > 1}
        single = [
            name for name, _ in self.columns if name not in paired and name not in self.unknown
        ]
        joint = [" x ".join(scope) for scope in self.tables if len(scope) > 1]
        said = []
        if joint:
            said.append(f"joint counts of {', '.join(joint)}")
        if single:
            said.append(f"counts of {', '.join(single)}")
        if self.unknown:
            said.append(f"nothing of {', '.join(self.unknown)}")
        return "; ".join(said)

    def to_json(self) -> str:
        """The record as text."""
        values = asdict(self)
        values |= {"epsilon": str(self.epsilon), "epsilon_spent": str(self.epsilon_spent)}
        values["delta"] = None if self.delta is None else str(self.delta)
        return json.dumps({"format": FORMAT, **values}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "SyntheticRecord":
        """The record that a text is.

        Raises
        ------
        ValueError
            If it is none, or of another format.
        """
        try:
            values: dict[str, Any] = json.loads(text)
            if values.pop("format") != FORMAT:
                raise ValueError("a record of another format")
            record = cls(
                **values
                | {
                    "method": Method(values["method"]),
                    "epsilon": Fraction(values["epsilon"]),
                    "epsilon_spent": Fraction(values["epsilon_spent"]),
                    "delta": None if values["delta"] is None else Fraction(values["delta"]),
                    "score": Score(values["score"]),
                    "columns": tuple((name, kind) for name, kind in values["columns"]),
                    "unknown": tuple(values["unknown"]),
                    "tables": tuple(tuple(scope) for scope in values["tables"]),
                }
            )
            record.schema  # noqa: B018 - types that nobody knows are found now
        except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
            raise ValueError("no record of a synthetic table") from error
        return record
