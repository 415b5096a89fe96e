"""The record that is kept with a synthetic table, and the view that lists them.

All of it is public to those who may know of the private table: names, costs and choices, which the
ledger holds as well. The record is JSON in a file; an invalid record is refused when it is read.

The relation ``data_privacy.synthetic_tables``: one row for every synthetic table.

The caller of this module selects the records: those whose private table the reader may know of.
"""

import datetime as dt
import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

import pyarrow as pa

from accountant.ledger import utc_now
from cube.statistic import Score
from planner.domain import SyntheticName
from proxy.api import arrow_type
from proxy.sources.public import sql_type_of
from proxy.synthetic_tables.request import (
    Evaluation,
    Joining,
    MadeTable,
    Method,
    SynthesisRequest,
)
from synthesis import Structure
from synthesis.privbayes import DEFAULTS

ID_BYTES: Final = 8
HOLDERS_ANY: Final = "holders => 'any', "
FORMAT: Final = 1  # of the JSON; a reader of another format ignores the table

Key: TypeAlias = tuple[str, str]  # the private table, and the name in lower case


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRecord:
    """One synthetic table.

    Parameters
    ----------
    id : str
        Identifies these rows; a table that replaces another of the same name has a new id.
    name : str
        Unique among the tables of the same source.
    table : str
        The private table or the collection it was made from, within which its name is unique.
    epsilon : Fraction
        The most by which making it could increase the private table's cost.
    epsilon_spent : Fraction
        By how much it increased that cost.
    seed : int
        Reproduces the rows, value for value, as long as the model is kept.
    n_bytes : int
        The size of its rows in memory. The store counts both as it writes them.
    columns : tuple of (str, str)
        Names and SQL types, in order.
    unknown : tuple of str
        Columns about which nothing was known; they are drawn uniformly.
    tables : tuple of tuple of str
        The columns of every noisy table that it is based on.
    n_charges : int
        How many charges the private table's history had: its position in the ledger.
    incomplete : str
        Why less was bought than requested; empty if nothing went wrong.
    made_by : str
        The analyst.
    made_at : str
        UTC, as the ledger writes it.
    delta : Fraction, optional
        The delta of its Gaussian noise; None if it was measured with Laplace noise.
    score : Score
        For the method privbayes, like the next five: the score by which parents were chosen.
    degree : int
        The most parents that a column could have.
    hierarchies : bool
        Whether columns could be parents at coarser levels.
    theta : float
        The least usefulness of a table.
    structure_share : Fraction
        The share of the budget for the choice of parents.
    groups : tuple of str
        The columns of public tables whose groups categories could be parents by.
    joining : Joining, optional
        How the answers of the holders of a federated table became one network.
    any_holders : bool
        Whether some of the holders of a federated table would do.
    left_out : str
        The holders that it was made without; empty if of none.
    target : tuple of str
        The columns that were to be learned from the others.
    workload : tuple of tuple of str
        The columns of each query that the rows were to answer well.
    evaluate : Fraction
        What an evaluation could cost beside `epsilon`; `epsilon_spent` has what it did cost.
    evaluation : Evaluation, optional
        None if there is none of these rows.
    generation : int
        Of the private table, of whose data it was made.
    n_respondents : int, optional
        Of the collection: how many had answered when it was made; None of a private table.
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
    theta: float = DEFAULTS.theta
    structure_share: Fraction = DEFAULTS.network_share
    groups: tuple[str, ...] = ()
    joining: Joining | None = None
    any_holders: bool = False
    left_out: str = ""
    target: tuple[str, ...] = ()
    workload: tuple[tuple[str, ...], ...] = ()
    evaluate: Fraction = Fraction(0)
    evaluation: Evaluation | None = None
    generation: int = 1
    n_respondents: int | None = None

    @classmethod
    def of(
        cls, name: str, request: SynthesisRequest, made: MadeTable, made_by: str
    ) -> "SyntheticRecord":
        """The record of a table that was just made; its rows and bytes are not counted yet."""
        return cls(
            id=new_id(),
            name=name,
            table=request.table,
            method=made.method,
            epsilon=request.epsilon,
            epsilon_spent=made.epsilon_spent,
            seed=int(made.model["seed"]),
            n_rows=0,
            n_bytes=0,
            columns=tuple((field.name, str(sql_type_of(field.type))) for field in made.rows.schema),
            unknown=made.unknown,
            tables=made.tables,
            n_charges=made.n_charges,
            incomplete=made.incomplete,
            generation=made.generation,
            made_by=made_by,
            made_at=utc_now(),
            delta=request.delta if request.epsilon else None,
            score=request.score,
            degree=request.degree,
            hierarchies=request.hierarchies,
            theta=request.theta,
            structure_share=request.structure_share,
            groups=tuple(one.name for one in request.groups),
            joining=request.joining,
            any_holders=request.any_holders,
            left_out=made.left_out,
            target=request.target,
            workload=request.workload,
            evaluate=request.evaluate,
            evaluation=made.evaluation,
            n_respondents=made.n_respondents,
        )

    @property
    def full_name(self) -> SyntheticName:
        """The name that is unique among all synthetic tables."""
        return SyntheticName(self.table, self.name)

    @property
    def key(self) -> Key:
        """A key; only one table with a given key can exist at a time."""
        return self.table, self.name.lower()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in self.columns])

    @property
    def options(self) -> str:
        """The options of the SQL statement that makes such a table."""
        delta = "" if self.delta is None else f"delta => {float(self.delta):g}, "
        network = ""
        if self.method is Method.PRIVBAYES:
            has_score = self.joining is None or self.joining.structure is not Structure.STATISTICS
            score = f"score => '{self.score}', " if has_score else ""
            network = (
                f"{score}degree => {self.degree}, "
                f"hierarchies => {str(self.hierarchies).lower()}, {self._network}"
            )
        return (
            f"epsilon => {float(self.epsilon):.6g}, {delta}method => '{self.method}', {network}"
            f"{HOLDERS_ANY if self.any_holders else ''}{self._purpose}"
            f"rows => {self.n_rows}, seed => {self.seed}"
        )

    @property
    def _network(self) -> str:
        """The options of a network that are not the usual ones."""
        said = [] if self.joining is None else list(self.joining.options)
        if self.theta != DEFAULTS.theta:
            said.append(f"theta => {self.theta:.6g}")
        if self.structure_share != DEFAULTS.network_share:
            said.append(f"structure_share => {float(self.structure_share):.6g}")
        if self.groups:
            columns = (map(_quoted, one.rsplit(".", 1)) for one in self.groups)
            said.append(f"groups => ({', '.join(map('.'.join, columns))})")
        return "".join(f"{one}, " for one in said)

    @property
    def _purpose(self) -> str:
        """The options that say what rows are for; of a workload, queries of the same columns."""
        said = []
        if self.target:
            said.append(f"target => {_listed(self.target)}")
        if self.workload:
            count = f"SELECT COUNT(*) FROM {_quoted(self.table)} GROUP BY "  # noqa: S608 - a text that is shown
            queries = "; ".join(count + ", ".join(map(_quoted, one)) for one in self.workload)
            said.append("workload => '" + queries.replace("'", "''") + "'")
        if self.evaluate:
            said.append(f"evaluate => {float(self.evaluate):.6g}")
        return "".join(f"{one}, " for one in said)

    @property
    def evaluated(self) -> str:
        """What its evaluation found; empty if there is none."""
        return "" if self.evaluation is None else str(self.evaluation)

    @property
    def model(self) -> str:
        """A text that says which counts the model was fitted to."""
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
        if self.n_respondents is not None:
            said.append(f"randomized answers of {self.n_respondents} respondents")
        return "; ".join(said)

    def to_json(self) -> str:
        """The record as text."""
        values = asdict(self)
        values |= {"epsilon": str(self.epsilon), "epsilon_spent": str(self.epsilon_spent)}
        values["delta"] = None if self.delta is None else str(self.delta)
        values["evaluate"] = str(self.evaluate)
        values["structure_share"] = str(self.structure_share)
        if self.evaluation is not None:
            values["evaluation"]["epsilon_spent"] = str(self.evaluation.epsilon_spent)
        return json.dumps({"format": FORMAT, **values}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "SyntheticRecord":
        """The record written in a text.

        Raises
        ------
        ValueError
            If it is not a record, or of another format.
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
                    "target": tuple(values.get("target", ())),
                    "workload": tuple(tuple(scope) for scope in values.get("workload", ())),
                    "evaluate": Fraction(values.get("evaluate", 0)),
                    "structure_share": Fraction(
                        values.get("structure_share", DEFAULTS.network_share)
                    ),
                    "groups": tuple(values.get("groups", ())),
                    "joining": _joining(values.get("joining")),
                    "evaluation": _evaluation(values.get("evaluation")),
                }
            )
            record.schema  # noqa: B018 - raises for unknown types
        except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
            raise ValueError("not a record of a synthetic table") from error
        return record


def new_id() -> str:
    """An id that no other table has."""
    return secrets.token_hex(ID_BYTES)


def _joining(values: dict[str, Any] | None) -> Joining | None:
    return None if values is None else Joining.from_json(values)


def _evaluation(values: dict[str, Any] | None) -> Evaluation | None:
    if values is None:
        return None
    return Evaluation(**values | {"epsilon_spent": Fraction(values["epsilon_spent"])})


def _listed(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(_quoted, names))})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


SYNTHETIC_VIEW: Final = "synthetic_tables"
_COLUMNS: Final = {
    "table_name": pa.string(),
    "source": pa.string(),
    "method": pa.string(),
    "n_rows": pa.int64(),
    "epsilon": pa.float64(),
    "epsilon_spent": pa.float64(),
    "options": pa.string(),
    "model": pa.string(),
    "unknown": pa.string(),
    "incomplete": pa.string(),
    "made_at": pa.timestamp("ms", tz="UTC"),
    "made_by": pa.string(),
    "n_charges": pa.int64(),
    "evaluated": pa.string(),
}
SYNTHETIC_SCHEMA: Final = pa.schema(
    [pa.field(name, kind, nullable=False) for name, kind in _COLUMNS.items()]
)


def synthetic_view(records: Iterable[SyntheticRecord]) -> pa.Table:
    """The relation for some records; `n_charges` is how many charges the source's history had."""
    rows = [
        {
            "table_name": record.name,
            "source": record.table,
            "method": str(record.method),
            "n_rows": record.n_rows,
            "epsilon": float(record.epsilon),
            "epsilon_spent": float(record.epsilon_spent),
            "options": record.options,
            "model": record.model,
            "unknown": ", ".join(record.unknown),
            "incomplete": record.incomplete,
            "made_at": dt.datetime.fromisoformat(record.made_at),
            "made_by": record.made_by,
            "n_charges": record.n_charges,
            "evaluated": record.evaluated,
        }
        for record in records
    ]
    return pa.Table.from_pylist(rows, schema=SYNTHETIC_SCHEMA)
