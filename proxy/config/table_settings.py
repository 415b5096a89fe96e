"""The configuration's settings for one private table, checked and complete.

`per_unit` makes a second table of it, with one row for each unit; no file of it is needed. The
second is a private table like any other, about the same units and read from the same data, so both
spend from one budget: the one that the first names, or one that gets the first's name. That costs
add up is the ledger's work; that the columns are the same in all rows of a unit is checked when the
data is read (proxy/sources/bounding.py).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from accountant.gate import Funds
from cube.axis import Axis
from cube.schema import Schema
from cube.target import AccuracyTarget, SumTarget
from planner.domain import units_table
from planner.measuring import GaussianOffer, Strategy
from planner.sql import listed, suggestion
from proxy.api import CUT_SHARE
from proxy.config.budgets import is_budget_name
from proxy.config.columns import Closing
from proxy.config.location import ExtractSettings
from proxy.config.sharing import Sharing
from proxy.sources import HeldTable, Location, Problems, SparkTable, TableLocation, UnitRows


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """One private table: its public schema, its location, and its budget.

    Parameters
    ----------
    schema : Schema
        Its public schema.
    location : TableLocation
        What it is read from, or what has its units.
    funds : Funds
        The total epsilon that may be spent on it, exactly as written, and with whom it is shared.
    default : AccuracyTarget
        The target of counts in requests that name none.
    sums : mapping
        The declared targets for sums of measures, by their names.
    strategy : Strategy
        How measurements are chosen when the history is not enough.
    gaussian : GaussianOffer, optional
        The delta under which Gaussian noise may be bought, and what is expected to be spent; None
        to allow no Gaussian noise.
    sharing : Sharing
        Whether analysts may see what others have asked; `history` in the file.
    has_previews : bool
        Whether a few rows asked for are those of a synthetic table; `preview` in the file.
    closing : Closing, optional
        Of a table that grows, up to where its rows are closed.
    per_unit : tuple of str
        The columns that are the same in all rows of a unit.
    cut_share_max : float
        The most that a bound found for a statement may leave out, of its rows or its sum.
    default_cost : Fraction, optional
        The most that a statement without a target may cost.
    per_query : Fraction, optional
        The limit of each analyst's statements that the ledger begins with.
    extract : ExtractSettings
        Where its rows are kept.
    holders_public : bool
        Of a federated table, whether SQL has the axis of its holders as a column.
    """

    schema: Schema
    location: TableLocation
    funds: Funds
    default: AccuracyTarget
    sums: Mapping[str, SumTarget] = field(default_factory=dict)
    strategy: Strategy = Strategy.AUTO
    gaussian: GaussianOffer | None = None
    sharing: Sharing = Sharing.SHARED
    has_previews: bool = False
    closing: Closing | None = None
    per_unit: tuple[str, ...] = ()
    default_cost: Fraction | None = None
    cut_share_max: float = CUT_SHARE
    per_query: Fraction | None = None
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    holders_public: bool = False

    @property
    def read_from(self) -> Location:
        """Where its rows are read, of a table that is not counted where it is."""
        if isinstance(self.location, SparkTable | HeldTable):
            raise TypeError("a table in Spark, or of holders, stays there")
        return self.location

    @property
    def budget(self) -> Fraction:
        """The total epsilon that may be spent on it, by all tables that share it."""
        return self.funds.budget


def with_units(
    tables: Iterable[TableSettings], budgets: Collection[str], problems: Problems
) -> tuple[TableSettings, ...]:
    """The tables, each that says `per_unit` followed by the table of its units.

    Parameters
    ----------
    tables : iterable of TableSettings
        As the file declares them.
    budgets : collection of str
        The names of budgets that the file declares.
    problems : Problems
        Where problems are recorded; the tables are of no use then.
    """
    tables = list(tables)
    names = {table.schema.table.casefold() for table in tables}
    found: list[TableSettings] = []
    for table in tables:
        found += _expanded(table, names, budgets, problems) if table.per_unit else [table]
    return tuple(found)


def _expanded(
    table: TableSettings,
    names: set[str],
    budgets: Collection[str],
    problems: Problems,
) -> Iterator[TableSettings]:
    """A table and that of its units, both with the budget that they share."""
    name, keys = table.schema.table, ("tables", table.schema.table, "per_unit")
    if units_table(name).casefold() in names:
        problems.add(
            keys, f"makes a table {units_table(name)}, but a table of that name exists already"
        )
    schema = _schema(table, problems)
    if schema is None or isinstance(table.location, UnitRows | SparkTable | HeldTable):
        return
    funds = table.funds
    if not funds.shared:
        if name in budgets or not is_budget_name(name):
            problems.add(
                keys,
                f"lets {name} and {schema.table} share a budget, which needs a name: declare "
                '[budgets.NAME], and say budget = "NAME"',
            )
        funds = replace(funds, shared=name)
    shared = replace(table, funds=funds)
    yield shared
    yield replace(
        shared,
        schema=schema,
        location=UnitRows(of=table.location),
        sums={column: target for column, target in table.sums.items() if column in schema.by_name},
        per_unit=(),
    )


def _schema(table: TableSettings, problems: Problems) -> Schema | None:
    """The schema of the table of units; None with problems."""
    schema, keys = table.schema, ("tables", table.schema.table, "per_unit")
    if schema.unit is None:
        problems.add(keys, "needs a unit: name the column that says whom a row is about, as unit")
    elif schema.rows_per_unit_max == 1:
        problems.add(
            keys,
            "is for units with several rows; here each unit has one row, so COUNT(*) counts "
            "units already",
        )
    if schema.grows is not None:
        problems.add(
            keys,
            "is not for a table that grows, in which units come with their rows; a view with one "
            "row for each unit can be a table of its own",
        )
    axes = tuple(_axes(table, problems))
    if len(axes) < len(table.per_unit) or schema.grows is not None or schema.rows_per_unit_max == 1:
        return None
    try:
        return Schema(
            table=units_table(schema.table),
            axes=axes,
            n_records_max=schema.n_records_max,
            neighbours=schema.neighbours,
            unit=schema.unit,
        )
    except ValueError as error:
        problems.add(keys, str(error))
        return None


def _axes(table: TableSettings, problems: Problems) -> Iterator[Axis]:
    """The columns that are named, each a column of the table."""
    known, keys = table.schema.by_name, ("tables", table.schema.table, "per_unit")
    for place, name in enumerate(table.per_unit):
        if name not in known:
            hint = suggestion(name, known) or f"It has {listed(list(known))}."
            problems.add(keys, f"names {name}, which is not a column of the table. {hint}")
        elif name in table.per_unit[:place]:
            problems.add(keys, f"names {name} twice")
        else:
            yield known[name]
