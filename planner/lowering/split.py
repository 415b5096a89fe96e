"""Splits statements at their aggregates into queries of private tables and SQL over the answers.

DP_INTERVAL_LOW(n) and the like in a SELECT around the one that aggregates.

The companion becomes a column of the SELECT that has the answer, and a reference to that column.
Companions of answers in the same SELECT are not here (`lowering.py`).

Every SELECT that aggregates private rows becomes a part (`lowering.py`) and reads from the part's
noisy relation instead. An inner SELECT that only filters and computes private rows is merged into
the SELECT around it. Everything else is left unchanged, and runs on noisy and public relations
only: the result of `Splitter.statement` contains no private table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from cube.pace import checkpoint
from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.decision import SubqueryClaim
from planner.domain import OWN_PREFIX, PRIVACY_SCHEMA, check_scalar
from planner.lowering.formulas import Total
from planner.lowering.joins import exists_among, joined_rows, public_literal, value_of, values_of
from planner.lowering.joint_counts import ask_consistency, asks_independence, lower_test
from planner.lowering.linear import is_linear
from planner.lowering.listed_groups import (
    ListedGroups,
    count_of_list,
    filter_groups,
    passed_on,
    renamed,
)
from planner.lowering.lowering import Lowering, count_of_units, name_every_key, order_by_every_item
from planner.lowering.nested_sums import inline_names, merge_sums
from planner.lowering.outer import public_types
from planner.lowering.parts import PartBuilder, PlanningContext
from planner.lowering.result_columns import (
    CLAIM_TYPES,
    claims_of_subqueries,
    empty_rows,
    has_limit_zero,
    is_probe,
    shown_columns,
)
from planner.lowering.rows import Rows, check_plain, clause_of_rows, mapped, rows_shown
from planner.lowering.summands import conjuncts
from planner.lowering.tables import Answered, Names, Relation, ShownAnswer, Tables, column_names
from planner.meaning import SqlType
from planner.sql import (
    COMPANIONS,
    MANNER,
    NO_MANNER,
    REQUESTED,
    AnswerOptions,
    Held,
    QueryTree,
    aggregates,
    aggregates_in,
    children,
    copy_of,
    has_node,
    is_companion,
    nodes_of,
    origin,
    position,
    read_companion,
    shortened,
    shown,
    text_of,
    unsupported,
)
from planner.workload import AskedFirst, GivenAnswers, RequestedTarget


def show_companions(select: exp.Select, sources: Answered, statement: exp.Query) -> None:
    """Resolve the companions in a SELECT list of answers that a subquery in FROM shows.

    Parameters
    ----------
    select : Select
    sources : Answered
        What its FROM shows.
    statement : Query
        The whole statement, in which no ``*`` may show the columns that are added.

    Raises
    ------
    UnknownName, UnsupportedSql
        If there is no such answer, or a column more would be seen.
    """
    for item in select.expressions:
        node = item.unalias()
        if not is_companion(node):
            continue
        companion = read_companion(node)
        known = sources.answers.get(companion.answer)
        if known is None:
            raise UnknownName(
                f"{companion.answer} is not an answer with an interval in FROM.",
                hint="Ask for the interval in the SELECT that aggregates.",
                position=position(node),
            )
        if known.select.args.get("distinct") or _shows_a_star(statement):
            raise unsupported(
                companion,
                "asks for the interval of an answer in FROM, next to a * or in a SELECT DISTINCT",
                "Ask for the interval in the SELECT that aggregates, or name the columns.",
            )
        own_name = companion.name.lower()
        name = f"{OWN_PREFIX}{own_name}_{len(known.select.expressions)}"
        column = known.part.column(COMPANIONS[companion.name], known.answer, companion.confidence)
        known.select.append("expressions", exp.alias_(column, name, quoted=True, copy=False))
        shown = exp.column(exp.to_identifier(name, quoted=True))
        is_named = isinstance(item, exp.Alias)
        node.replace(shown if is_named else exp.alias_(shown, own_name, copy=False))


def _shows_a_star(statement: exp.Query) -> bool:
    """Whether any SELECT list of the statement has a * in it, that of COUNT(*) aside."""
    return any(
        isinstance(item, exp.Star) or isinstance(item.this, exp.Star)
        for select in statement.find_all(exp.Select)
        for item in select.expressions
        if not isinstance(item, exp.Count)
    )


N_PARTS_MAX = 64  # SELECTs of one statement that aggregate private rows

LISTED = (
    "The groups of {} are all that the public levels allow, whether or not a record is in them. "
    "Ask for COUNT(*) of each group to see how many records it has, or for COUNT(DISTINCT x) to "
    "see about how many levels occur."
)
COUNTED = (
    "{} counts the groups that are shown. These are all that the public levels allow, with or "
    "without records, except those that HAVING, WHERE or LIMIT removes by noisy answers. The "
    "count has no interval. To see about how many levels occur, ask for COUNT(DISTINCT x) of "
    "the table's rows."
)
_NOT_OF_ROWS = ("limit", "offset", "qualify", "windows", "laterals", "locks", "into")


@dataclass(slots=True)
class _Scope:
    """The context of one query: the names of WITH, and the target in force."""

    names: Names
    requested: RequestedTarget


class Splitter:
    """Cuts one statement."""

    def __init__(
        self, world: PlanningContext, requested: RequestedTarget, given: GivenAnswers = ()
    ) -> None:
        self._world = world
        self._given = dict(given)
        self._with_text = ""
        self._requested = requested
        self.parts: list[PartBuilder] = []
        self.claims: list[SubqueryClaim] = []
        self.notes: list[str] = []  # for the receipt
        self.tables = Tables(world, requested.as_of)
        self._held: list[tuple[exp.Expr, _Scope]] = []
        self._counted: set[str] = set()  # names of WITH that counts of their rows stand for

    def statement(self, query: QueryTree) -> tuple[exp.Query, Mapping[str, ShownAnswer]]:
        """The same statement over noisy and public relations, and the answers it shows.

        Raises
        ------
        Refused
            If it asks for anything other than aggregates of private rows.
        """
        tree = self._tree = query.tree
        if query.has_subqueries and tree.args.get("with_") is not None:
            self._with_text = text_of(tree.args["with_"])
        self._has_subqueries = query.has_subqueries
        named = nodes_of(tree, exp.CTE) if query.has_subqueries else ()
        hidden = {cte.alias.casefold() for cte in named}
        try:
            relation = self._query(tree, _Scope({}, self._requested))
        except (UnknownName, UnsupportedSql) as refusal:
            trees = (tree, *(node for node, _ in self._held))
            also = self.tables.in_the_way(trees, hidden, refusal.position)
            if isinstance(refusal, UnknownName) and self._is_of_outer_query(trees, refusal):
                refusal.hint = (
                    "It is a column of a table in another FROM. A subquery cannot use the rows of "
                    "the query around it: ask for the answer by group, and join the answers."
                )
            if also:
                refusal.hint = " ".join(filter(None, (refusal.hint, "Also:", f"{also}.")))
            raise
        if isinstance(relation, Answered):
            self._leave_out_unread(tree)
            return tree, relation.answers
        if isinstance(tree, exp.Select) and is_probe(tree):
            return empty_rows(tree, relation), {}
        for _, meaning in relation.every_column():
            check_scalar(meaning)  # an unknown aggregate looks like a value of one row
        raise rows_shown(tree, relation)

    def _leave_out_unread(self, tree: exp.Query) -> None:
        """Leave out names of WITH whose rows are counted, and that nothing else reads."""
        for cte in reversed(nodes_of(tree, exp.CTE)) if self._counted else []:
            name, clause = cte.alias.casefold(), cte.parent
            is_read = any(one.name.casefold() == name for one in tree.find_all(exp.Table))
            if name not in self._counted or is_read or clause is None:
                continue
            inside = {one.name for one in cte.find_all(exp.Table)}
            self.parts = [part for part in self.parts if part.name not in inside]
            self._counted |= {name.casefold() for name in inside}
            cte.pop()
            if not clause.expressions:
                clause.pop()

    def types(self, table: exp.Table) -> Mapping[str, SqlType]:
        """The types of the columns of a relation that the outer SQL reads."""
        if any(one.name == table.name for one in self.claims):
            return CLAIM_TYPES
        part = next((one for one in self.parts if one.name == table.name), None)
        return public_types(self._world.public)(table) if part is None else part.types

    def _is_of_outer_query(self, trees: Sequence[exp.Expr], refusal: UnknownName) -> bool:
        """Whether the column that a refusal is about is one of another FROM of the statement."""
        names = {
            one.name.casefold()
            for tree in trees
            for one in tree.find_all(exp.Column)
            if refusal.position is not None and position(one) == refusal.position
        }
        return bool(names & self.tables.columns_of(trees)) and len(trees) > 1

    def _query(self, query: exp.Expr, scope: _Scope) -> Relation:
        checkpoint()
        while isinstance(query, exp.Subquery):
            scope = self._with(query, scope)
            query = query.this
        if not isinstance(query, exp.Select | exp.SetOperation):
            raise unsupported(query, "is not a SELECT", "Use SELECT.")
        own = query.meta.get(REQUESTED)
        if own is not None:
            scope = _Scope(scope.names, own.over(scope.requested))
        if isinstance(query, exp.Select):
            inline_names(query)
        scope = self._with(query, scope)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, scope)
        return self._select(query, scope)

    def _with(self, query: exp.Expr, scope: _Scope) -> _Scope:
        """The names that WITH adds; entries that are merged into their readers are removed."""
        clause = query.args.get("with_")
        if clause is None:
            return scope
        if clause.args.get("recursive"):
            raise UnsupportedSql(
                "WITH RECURSIVE is not supported.",
                hint="Write out its steps as separate queries.",
                position=position(clause),
            )
        names, kept = dict(scope.names), []
        for cte in clause.expressions:
            _check_name(cte)
            relation = self._query(cte.this, _Scope(names, scope.requested))
            columns = column_names(cte.args["alias"])
            if isinstance(relation, Rows):
                relation = relation.renamed(cte.alias, columns)
            else:
                kept.append(cte)
                if relation.listed is not None:
                    listed = renamed(relation.listed, cte.alias, columns)
                    relation = replace(relation, listed=listed)
            names[cte.alias.casefold()] = relation
        clause.set("expressions", kept)
        if not kept:
            query.set("with_", None)
        return _Scope(names, scope.requested)

    def _set_operation(self, query: exp.SetOperation, scope: _Scope) -> Answered:
        has_groups = False
        for side in (query.left, query.right):
            relation = self._query(side, scope)
            if isinstance(relation, Rows):
                raise unsupported(
                    side, "combines private rows", "Aggregate in each SELECT of the union."
                )
            has_groups |= relation.has_groups
        self._hold_subqueries(query, scope)
        self._put_back(query)
        return Answered(has_groups=has_groups)

    def _select(self, select: exp.Select, scope: _Scope) -> Relation:
        if self._has_subqueries:
            merge_sums(select, lambda inner: self.tables.schema_in(inner, scope.names))
        name_every_key(select)
        order_by_every_item(select)
        self._filter_groups(select, scope)
        n_parts = len(self.parts)
        sources = self._sources(select, scope)
        listed = sources.listed if isinstance(sources, Answered) else None
        if listed is not None and aggregates_in(select) and count_of_list(select, listed):
            if isinstance(select.args["from_"].this, exp.Subquery):
                del self.parts[n_parts:]
            else:
                self._counted.add(select.args["from_"].this.name.casefold())
            sources, listed = listed.rows, None
        self._hold_subqueries(select, scope)
        is_test = not isinstance(sources, Answered) and asks_independence(select)
        manner: AnswerOptions = select.meta.get(MANNER, NO_MANNER)
        if not is_test:
            manner.refuse_test()
        if isinstance(sources, Answered):
            manner.refuse_consistency()
            show_companions(select, sources, self._tree)
            self._put_back(select)
            self.claims += claims_of_subqueries(select, self.parts, len(self.claims))
            has_groups = sources.has_groups and self._note_counts(select)
            return Answered(
                listed=None if listed is None else passed_on(select, listed),
                has_groups=has_groups,
            )
        is_grouped = select.args.get("group") or select.args.get("distinct")
        if not (is_test or is_grouped or aggregates_in(select)):
            manner.refuse_consistency()
            return self._inner_rows(select, sources)
        if len(self.parts) >= N_PARTS_MAX:
            raise TooLarge(
                f"More than {N_PARTS_MAX} SELECTs of the statement aggregate private rows.",
                hint="Split the statement.",
            )
        part = PartBuilder(
            f"{OWN_PREFIX}part_{len(self.parts)}", sources, self._world, scope.requested
        )
        part.noisy_extremes = manner.noisy_extremes
        self.parts.append(part)
        self._write_out_values(select)
        answers: dict[str, int] = {}
        if is_test:
            manner.refuse_consistency()
            lower_test(select, part)
        else:
            lowering = Lowering(part, self._total_of)
            keys = "" if aggregates_in(select) else _written_keys(select)
            answers = lowering.select(select)
            ask_consistency(part, answers.values(), manner)
            listed = lowering.listed
            if keys and not part.aggregates:
                part.notes[LISTED.format(keys)] = None
        self._put_back(select)
        shown_answers = {name: ShownAnswer(part, at, select) for name, at in answers.items()}
        return Answered(shown_answers, listed, has_groups=bool(part.keys))

    def _filter_groups(self, select: exp.Select, scope: _Scope) -> None:
        """Filter the groups of private rows, not the rows, by groups that were answered."""
        reads_rows = self._has_subqueries and self.tables.schema_in(select, scope.names) is not None
        if reads_rows and aggregates_in(select):
            chosen = filter_groups(select, lambda query: self.tables.is_public(query, scope.names))
            self.notes += [
                f"Another answer of this statement chose which groups {one} shows. All groups "
                "were measured, at the same cost."
                for one in chosen
            ]

    def _write_out_values(self, select: exp.Select) -> None:
        """Replace subqueries over public tables, where private rows use them, by their values."""
        for clause in ("where", "expressions", "group") if self._held else ():
            value = select.args.get(clause)
            for tree in value if isinstance(value, list) else [value]:
                for held in [] if tree is None else nodes_of(tree, Held):
                    if not (_chooses_rows(held, clause) and self._put_answer(held)):
                        self._write_out(held)

    def _put_answer(self, held: Held) -> bool:
        """Put the answer of a subquery in its place; False if it is none of answers.

        Raises
        ------
        AskedFirst
            If its answer is not known yet.
        """
        query, scope = self._held[int(held.this.name)]
        inner, above = query.unnest(), held.parent
        if not self._is_of_answers(inner, scope) or isinstance(above, exp.Exists):
            return False
        text = text_of(inner)
        if any(table.name.casefold() in scope.names for table in nodes_of(inner, exp.Table)):
            text = f"{self._with_text} {text}"
        listing = above if isinstance(above, exp.In) and above.args.get("query") is held else None
        if listing is not None and isinstance(listing.this.unnest(), exp.Tuple):
            raise unsupported(
                query,
                "gives several columns of answers, which cannot choose private rows",
                "GROUP BY these columns and choose among the groups, with HAVING (a, b) IN "
                "(SELECT ..) or by a join with the subquery.",
            )
        if text not in self._given:
            own = inner.meta.get(REQUESTED)
            refusal = unsupported(
                query,
                "is a subquery in a place that needs a value of one record",
                "Run the subquery first and write its answer here, or join a public table.",
            )
            raise AskedFirst(
                refusal,
                sql=text,
                requested=scope.requested if own is None else own.over(scope.requested),
                is_list=listing is not None,
            )
        values = [public_literal(value) for value in self._given[text]]
        self.tables.allowance.put_in(exp.Tuple(expressions=values), query)
        if listing is not None:
            listing.set("expressions", values)
            listing.set("query", None)
            if not values:
                listing.replace(exp.false())
            return True
        held.replace(values[0] if values else exp.null())
        return True

    def _is_of_answers(self, inner: exp.Expr, scope: _Scope) -> bool:
        """Whether a subquery aggregates private rows."""
        if not isinstance(inner, exp.Query) or self.tables.is_public(inner, scope.names):
            return False
        tables = nodes_of(inner, exp.Table)
        if any(table.db.casefold() == PRIVACY_SCHEMA for table in tables):
            return False
        if not isinstance(inner, exp.Select):
            return True
        is_aggregated = aggregates_in(inner) or inner.args.get("group")
        return bool(is_aggregated) or self.tables.schema_in(inner, scope.names) is None

    def _write_out(self, held: Held) -> None:
        query, scope = self._held[int(held.this.name)]
        inner, above = query.unnest(), held.parent
        listing = above if isinstance(above, exp.In) and above.args.get("query") is held else None
        if not isinstance(inner, exp.Query):
            return
        if listing is None and not self.tables.is_public(inner, scope.names):
            return  # answers, which are computed with
        if not isinstance(self._query(query, scope), Answered):
            return
        if listing is not None:
            values = exp.Tuple(expressions=values_of(inner, self._world, query))
            self.tables.allowance.put_in(values, query)
            listing.set("expressions", values.expressions)
            listing.set("query", None)
        elif isinstance(above, exp.Exists):
            found = exists_among(inner, self._world, query)
            self.tables.allowance.put_in(found, query)
            above.replace(found)
        else:
            held.replace(value_of(inner, self._world, query))

    def _inner_rows(self, select: exp.Select, rows: Rows) -> Rows:
        """The rows as a SELECT without aggregates shows them to the SELECT around it."""
        self._write_out_values(select)
        window = select.find(exp.Window)
        if window is not None:
            raise unsupported(
                window,
                "is a window function over private rows",
                "Use GROUP BY first, and the window function over the answers.",
            )
        for clause in _NOT_OF_ROWS:
            if select.args.get(clause) and not (clause == "limit" and is_probe(select)):
                raise clause_of_rows(clause, select, rows)
        conditions = list(rows.conditions)
        if has_limit_zero(select):
            conditions.append(exp.false())
        if select.args.get("where") is not None:
            conditions += conjuncts(rows.resolved(select.args["where"].this))
        columns: dict[str, exp.Expr] = {}
        for item in select.expressions:
            for name, meaning in shown_columns(item, rows):
                if name in columns:
                    raise UnsupportedSql(
                        f"Two columns of an inner SELECT are named {name}.",
                        hint="Give one of them another name with AS.",
                        position=position(item),
                    )
                columns[name] = meaning
        return rows.showing(columns, tuple(conditions))

    def _sources(self, select: exp.Select, scope: _Scope) -> Relation:
        """The private rows in FROM; if there are none, the answers that its entries show."""
        origin = select.args.get("from_")
        if origin is None:
            return Answered()
        joins: list[exp.Join] = select.args.get("joins") or []
        entries: list[tuple[exp.Join | None, exp.Expr]] = [
            (None, origin.this),
            *((join, join.this) for join in joins),
        ]
        relations = [self._relation(entry, scope) for _, entry in entries]
        private = [relation for relation in relations if isinstance(relation, Rows)]
        if not private:
            shown_answers: dict[str, ShownAnswer] = {}
            several: set[str] = set()
            has_groups = any(isinstance(one, Answered) and one.has_groups for one in relations)
            for relation in relations:
                if isinstance(relation, Answered):
                    several |= shown_answers.keys() & relation.answers.keys()
                    shown_answers |= relation.answers
            for name in several:  # the name is ambiguous
                del shown_answers[name]
            return Answered(shown_answers, self._listed(entries, relations), has_groups)
        if len(private) > 1:
            second = [at for at, one in enumerate(relations) if isinstance(one, Rows)][1]
            raise unsupported(
                entries[second][1],
                "shows private rows and is joined with other private rows",
                "Aggregate each in a subquery, and join the answers. Or the owner can declare a "
                "private view that joins the rows of each person, with the person as unit, and "
                "rows_per_unit_max where a person has several rows.",
            )
        place = next(at for at, one in enumerate(relations) if isinstance(one, Rows))
        return joined_rows(private[0], place, entries, self._world, select)

    def _listed(
        self, entries: Sequence[tuple[object, exp.Expr]], relations: Sequence[Relation]
    ) -> ListedGroups | None:
        """What the only entry of FROM lists, under its name there."""
        (_, entry), first = entries[0], relations[0]
        if len(relations) > 1 or not isinstance(first, Answered) or first.listed is None:
            return None
        name = entry.alias_or_name or "subquery"
        return renamed(first.listed, name, column_names(entry.args.get("alias")))

    def _note_counts(self, select: exp.Select) -> bool:
        """Note what counts of groups count; whether the rows of the SELECT are groups still."""
        for item in (*select.expressions, select.args.get("having")):
            for one in [] if item is None else nodes_of(item, exp.Count):
                if one.find_ancestor(exp.Select) is select:
                    self.notes.append(COUNTED.format(shown(one)))
        return bool(select.args.get("group")) or not aggregates_in(select)

    def _relation(self, entry: exp.Expr, scope: _Scope) -> Relation:
        if isinstance(entry, exp.Subquery):
            relation = self._query(entry, scope)
            if isinstance(relation, Rows):
                columns = column_names(entry.args.get("alias"))
                return relation.renamed(entry.alias or "subquery", columns)
            return relation
        if isinstance(entry, exp.Values):
            return Answered()
        if not isinstance(entry, exp.Table):
            raise unsupported(
                entry,
                "is neither a table nor a subquery",
                "Join a subquery that has its own groups.",
            )
        check_plain(entry)
        return self.tables.find(entry, scope.names)

    def _hold_subqueries(self, query: exp.Query, scope: _Scope) -> None:
        """Replace the subqueries in a query's own expressions by placeholders."""
        if not self._has_subqueries:
            return
        inside = ("from_", "joins", "with_", "this", "expression")
        clauses = [value for clause, value in query.args.items() if clause not in inside]
        clauses += [join.args.get("on") for join in query.args.get("joins") or []]
        for value in clauses:
            for node in list(_subqueries(value)):
                held = Held(this=exp.Literal.number(len(self._held)))
                held.meta.update(origin(node))
                self._held.append((node, scope))
                node.replace(held)

    def _put_back(self, query: exp.Query) -> None:
        """Read the held subqueries, and put them back in their places.

        One of them may have several places, by a name that stands for it; it is read once.
        """
        placed: set[str] = set()
        for held in nodes_of(query, Held) if self._held else []:
            node, scope = self._held[int(held.this.name)]
            if held.this.name in placed:
                self.tables.allowance.put_in(node, held)
                held.replace(copy_of(node))
                continue
            if isinstance(self._query(node, scope), Rows):
                raise unsupported(
                    node, "is a subquery that shows private rows", "Aggregate in the subquery."
                )
            held.replace(node)
            placed.add(held.this.name)

    def _total_of(self, held: Held, rows: Rows) -> Total | None:
        """A held subquery as a total, if it is one linear answer of the same private table."""
        query, scope = self._held[int(held.this.name)]
        self.tables.allowance.put_in(query, held)
        select = query.this if isinstance(query, exp.Subquery) else query
        origin = select.find(exp.From)
        clauses = {clause for clause, value in select.args.items() if value}
        if (
            not isinstance(select, exp.Select)
            or not clauses <= {"expressions", "from_", "where"}
            or origin is None
            or not isinstance(origin.this, exp.Table)
            or len(select.expressions) != 1
            or not is_linear(select.expressions[0].unalias())
        ):
            return None
        own = self.tables.find(copy_of(origin.this), scope.names)
        if not isinstance(own, Rows) or own.table != rows.table:
            return None
        where = select.args.get("where")
        conditions = list(own.conditions)
        if where is not None:
            conditions += conjuncts(own.resolved(copy_of(where.this)))
        item = copy_of(select.expressions[0].unalias())
        item = mapped(item, lambda node: count_of_units(node, own))
        return own.resolved(item), tuple(conditions)


def _chooses_rows(held: Held, clause: str) -> bool:
    """Whether a subquery is part of an expression over rows, and not of one over answers."""
    above = held.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if isinstance(above, exp.AggFunc | exp.Group):
        return False  # the same for every row
    if clause != "expressions" or held.find_ancestor(exp.AggFunc, exp.Filter) is not None:
        return True
    item: exp.Expr = held
    while item.parent is not None and not isinstance(item.parent, exp.Select):
        item = item.parent
    return has_node(item, exp.Column) and not aggregates(item)


def _written_keys(select: exp.Select) -> str:
    """What a SELECT without an aggregate lists, as it is written."""
    group = select.args.get("group")
    items = [shown(item.unalias()) for item in select.expressions]
    keys = [] if group is None else [shown(key) for key in group.expressions]
    has_places = any(key.isdecimal() for key in keys)
    return shortened(", ".join(items if has_places or not keys else keys))


def _check_name(cte: exp.CTE) -> None:
    """A name of WITH must not hide a noisy relation."""
    if cte.alias.casefold().startswith(OWN_PREFIX):
        raise unsupported(cte.args["alias"], "is a name that Tacit reserves", "Use another name.")


def _subqueries(value: object) -> Iterator[exp.Expr]:
    """The outermost queries inside some expressions."""
    if isinstance(value, list):
        for one in value:
            yield from _subqueries(one)
    elif isinstance(value, exp.Query):
        yield value
    elif isinstance(value, exp.Expr):
        for child in children(value):
            yield from _subqueries(child)
