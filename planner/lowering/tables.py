"""Resolves a table's name in FROM: private rows, a name of WITH, a public table, a view.

Letter case counts only between double quotes. A name of WITH hides a table, as in PostgreSQL.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from cube.refusals import TextPosition, UnknownName
from cube.schema import Schema
from planner.domain import (
    OWN_PREFIX,
    PRIVACY_SCHEMA,
    REMAINING,
    UNITS,
    Allowance,
    SyntheticName,
    WrittenName,
    privacy_view,
    public_table,
    remaining_of,
    synthetic_table,
    units_table,
)
from planner.lowering.as_of import as_of, generation_as_of
from planner.lowering.listed_groups import ListedGroups
from planner.lowering.parts import PartBuilder, PlanningContext
from planner.lowering.rows import Rows
from planner.sql import (
    AS_WRITTEN,
    IS_PUBLIC,
    aggregates_in,
    listed,
    origin,
    position,
    shown,
    suggestion,
    unsupported,
)

_NO_TABLE: Final = "There is no table"
N_REASONS_MAX: Final = 6  # of one refusal, beside the first


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer that a SELECT shows; an interval's columns are added to that SELECT."""

    part: PartBuilder
    answer: int
    select: exp.Select


@dataclass(frozen=True, slots=True)
class Answered:
    """A relation without private rows.

    Parameters
    ----------
    answers : mapping
        The answers it shows, by output name.
    listed : ListedGroups, optional
        What it lists, if it is a list of groups and nothing else.
    has_groups : bool
        Whether its rows are, or are made of, groups of private rows.
    """

    answers: Mapping[str, ShownAnswer] = field(default_factory=dict)
    listed: ListedGroups | None = None
    has_groups: bool = False


Relation = Rows | Answered
Names = Mapping[str, Relation]


class Tables:
    """Finds tables for one statement.

    Parameters
    ----------
    world : PlanningContext
        The private and public tables, and the views.
    moment : str, optional
        What tables that grow are read as of, where they do not say it themselves.
    """

    def __init__(self, world: PlanningContext, moment: str | None = None) -> None:
        self._world = world
        self._moment = moment
        self.allowance = (
            Allowance()
        )  # every private table of a statement is found through this object
        self.public: dict[str, None] = {}  # the public relations read, in order

    def find(self, table: exp.Table, names: Names) -> Relation:
        """The relation of a table's name; a public relation gets its name in the outer SQL.

        Raises
        ------
        UnknownName, UnsupportedSql
        """
        found = self._found(table, names)
        if table.args.get("version") is not None:
            raise unsupported(
                table,
                "cannot be read as of an earlier time",
                "Leave out AS OF.",
            )
        return found

    def _found(self, table: exp.Table, names: Names) -> Relation:
        argument = _remaining_argument(table)
        if argument is not None:
            return self._remaining(table, argument)
        if not isinstance(table.this, exp.Identifier):
            raise unsupported(table, "is not a table name", "Write the name of a table.")
        if table.db.casefold() == PRIVACY_SCHEMA:
            return self._privacy_view(table)
        if not table.db and table.name.casefold() in names:
            found = names[table.name.casefold()]
            return found.renamed(table.alias_or_name) if isinstance(found, Rows) else found
        known = self._meaning(table)
        if isinstance(known, str) and known in self._world.schemas:
            columns = column_names(table.args.get("alias"))
            generations = self._world.generations.get(known)
            if generations is not None:
                known = generation_as_of(table, generations, self._moment)
            rows = replace(self._world.rows[known], allowance=self.allowance)
            ending = as_of(table, rows.schema, self._moment)
            if ending is not None:
                rows = rows.where((ending,))
            return rows.renamed(table.alias_or_name, columns)
        relation = public_table(known) if isinstance(known, str) else synthetic_table(known)
        table.meta[IS_PUBLIC] = relation
        return self._read_public(table, relation, table.name)

    def in_the_way(
        self, trees: Sequence[exp.Expr], hidden: Collection[str], told: TextPosition | None
    ) -> str:
        """What else about a refused statement's tables stands in the way of an answer, if anything.

        Parameters
        ----------
        trees : sequence of Expr
            The statement, and the subqueries that were taken out of it.
        hidden : collection of str
            The names of WITH, in lower case.
        told : TextPosition, optional
            Where it was refused.
        """
        reasons: dict[str, TextPosition | None] = {}
        for select in (one for tree in trees for one in tree.find_all(exp.Select)):
            origin, joins = select.args.get("from_"), select.args.get("joins") or []
            private: list[exp.Table] = []
            for table in [] if origin is None else [origin.this, *(join.this for join in joins)]:
                is_named = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
                if not is_named or IS_PUBLIC in table.meta or table.name.casefold() in hidden:
                    continue
                if table.name.startswith(OWN_PREFIX):
                    continue  # answers, which were read before
                try:
                    known = self._meaning(table)
                except UnknownName as refusal:
                    reasons.setdefault(refusal.message.removesuffix("."), refusal.position)
                    continue
                private += [table] if known in self._world.schemas else []
            if len(private) > 1:
                names = " and ".join(shown(table) for table in private)
                reasons.setdefault(
                    f"{names} are private and cannot be joined", position(private[1])
                )
        if not any(reason.startswith(_NO_TABLE) for reason in reasons):
            reasons |= self._unknown_columns(trees, told)
        others = [
            f"{reason[:1].lower()}{reason[1:]}" + ("" if place is None else f" ({place})")
            for reason, place in reasons.items()
            if place is None or place != told
        ]
        return "; ".join(others[:N_REASONS_MAX])

    def columns_of(self, trees: Sequence[exp.Expr]) -> set[str]:
        """The columns, in lower case, that the declared tables of a statement have, and names."""
        known: set[str] = set()
        for tree in trees:
            for table in tree.find_all(exp.Table):
                public = self._world.public.get(str(table.meta.get(IS_PUBLIC)))
                if public is not None:
                    known.update(public.columns)
                elif isinstance(table.this, exp.Identifier):
                    with suppress(UnknownName):
                        schema = self._world.schemas.get(str(self._meaning(table)))
                        known.update(() if schema is None else (axis.name for axis in schema.axes))
                        known.update(() if schema is None else (str(schema.unit),))
            known.update(alias.alias for alias in tree.find_all(exp.Alias))
            for alias in tree.find_all(exp.TableAlias):
                known.update(column_names(alias))
        return {name.casefold() for name in known}

    def _unknown_columns(
        self, trees: Sequence[exp.Expr], told: TextPosition | None
    ) -> dict[str, TextPosition | None]:
        """Columns that no table of a statement has, each where it stands first."""
        known = self.columns_of(trees)
        if any(tree.find(exp.CTE, exp.Values) for tree in trees):
            return {}
        columns = [one for tree in trees for one in tree.find_all(exp.Column)]
        known |= {one.name.casefold() for one in columns if position(one) == told}
        return {
            f"there is no column {shown(one)}": position(one)
            for one in reversed(columns)
            if isinstance(one.this, exp.Identifier)
            and position(one) is not None
            and one.name.casefold() not in known
        }

    def schema_in(self, select: exp.Select, names: Names) -> Schema | None:
        """The public schema of the private rows that a SELECT reads, if it reads any."""
        origin, joins = select.args.get("from_"), select.args.get("joins") or []
        for entry in [] if origin is None else [origin.this, *(join.this for join in joins)]:
            found = self._schema_of(entry, names)
            if found is not None:
                return found
        return None

    def is_public(self, query: exp.Query, names: Names) -> bool:
        """Whether a query reads public and synthetic tables alone, by their own names."""
        return all(
            isinstance(table.this, exp.Identifier)
            and (table.db or table.name.casefold() not in names)
            and table.db.casefold() != PRIVACY_SCHEMA
            and self._meaning(table) not in self._world.schemas
            for table in query.find_all(exp.Table)
        )

    def _schema_of(self, entry: exp.Expr, names: Names) -> Schema | None:
        inner = entry.unnest()
        if isinstance(inner, exp.Select):
            shows_rows = not (aggregates_in(inner) or inner.args.get("group"))
            return self.schema_in(inner, names) if shows_rows else None
        if not isinstance(entry, exp.Table) or not isinstance(entry.this, exp.Identifier):
            return None
        if not entry.db and entry.name.casefold() in names:
            known = names[entry.name.casefold()]
            return known.schema if isinstance(known, Rows) else None
        if entry.db.casefold() == PRIVACY_SCHEMA:
            return None
        meant = self._meaning(entry)
        return self._world.schemas.get(meant) if isinstance(meant, str) else None

    def _meaning(self, table: exp.Table) -> str | SyntheticName:
        """The private, public or synthetic table that a name refers to."""
        qualifier = _word(table.args["db"]) if table.db else None
        try:
            found = self._world.names.meaning(_word(table.this), qualifier)
        except UnknownName as refusal:
            place = position(table.this)
            raise UnknownName(refusal.message, hint=refusal.hint, position=place) from None
        if found is not None:
            return found
        if qualifier is None or qualifier.is_schema:
            every = self._world.names.shown()
            raise UnknownName(
                f"{_NO_TABLE} {shown(table.this)}.",
                hint=suggestion(table.name, every) or f"The tables are {listed(every)}.",
                position=position(table.this),
            )
        source = qualifier.among(self._world.schemas)
        if source is None:
            raise UnknownName(
                f"There is no schema {table.db}.",
                hint="The schemas are main and public.",
                position=position(table),
            )
        own = [one.name for one in self._world.names.synthetic if one.source == source]
        own += [UNITS] if units_table(source) in self._world.schemas else []
        raise UnknownName(
            f"{source} has no synthetic table {shown(table.this)}.",
            hint=suggestion(table.name, own)
            or (
                f"Its synthetic tables are {listed(own)}."
                if own
                else "It has no synthetic tables yet."
            ),
            position=position(table.this),
        )

    def _privacy_view(self, table: exp.Table) -> Answered:
        views, name = self._world.privacy_views, table.name.casefold()
        if name not in views:
            raise UnknownName(
                f"There is no view {shown(table)}.",
                hint=suggestion(name, views) or f"The views are {listed(sorted(views))}.",
                position=position(table),
            )
        return self._read_public(table, privacy_view(name), name)

    def _remaining(self, table: exp.Table, argument: str) -> Answered:
        known = WrittenName(argument).among(self._world.schemas)
        if known is None:
            raise UnknownName(
                f"There is no private table {argument}.",
                hint=f"The private tables are {listed(sorted(self._world.schemas))}.",
                position=position(table),
            )
        return self._read_public(table, remaining_of(known), REMAINING)

    def _read_public(self, table: exp.Table, relation: str, name: str) -> Answered:
        """Put the relation's outer SQL name in FROM, with its written name as alias."""
        as_written = shown(table)
        if table.args.get("alias") is None:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
        table.meta.update({AS_WRITTEN: as_written, **origin(table)})
        table.set("this", exp.to_identifier(relation, quoted=True))
        table.set("db", None)
        self.public[relation] = None
        return Answered()


def column_names(alias: exp.Expr | None) -> list[str]:
    """The column names that an alias gives, such as t(a, b)."""
    return [] if alias is None else [column.name for column in alias.args.get("columns") or []]


def _word(identifier: exp.Identifier) -> WrittenName:
    """An identifier as a name to look for."""
    return WrittenName(identifier.name, bool(identifier.args.get("quoted")))


def _remaining_argument(table: exp.Table) -> str | None:
    """The table name in ``estimate_remaining_dp_aggregates('..')``, with or without a schema."""
    call = table.this
    if isinstance(call, exp.Anonymous) and call.name.upper() == "TABLE" and call.expressions:
        call = call.expressions[0]
    if isinstance(call, exp.Dot):
        if call.this.name.casefold() != PRIVACY_SCHEMA:
            return None
        call = call.expression
    if not isinstance(call, exp.Anonymous) or call.name.casefold() != REMAINING:
        return None
    if len(call.expressions) != 1 or not call.expressions[0].is_string:
        raise unsupported(
            call,
            "takes the name of one private table in quotes",
            f"Write {REMAINING}('patients').",
        )
    return str(call.expressions[0].name)
