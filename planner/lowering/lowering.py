"""Turns a SELECT over private rows into parts, and a SELECT over the answers of the parts.

Counts of the privacy unit, by its key: as counts of rows, or of units where they have several.

    COUNT(customer)                                        every row has one: COUNT(*)
    COUNT(DISTINCT customer)                               COUNT(*), or a count of units
    COUNT(DISTINCT CASE WHEN p THEN customer END)          the same FILTER (WHERE p)
    COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer))   of those with rows left out

The key itself is in no other place: it has no levels, and its values are private.

    SELECT sex, AVG(age) AS a FROM adult WHERE .. GROUP BY sex HAVING COUNT(*) > 9 ORDER BY a
    SELECT key_0 AS sex, answer_1 AS a FROM part WHERE estimate_2 > 9 ORDER BY a

Group keys become columns of public values. An item of the SELECT list that is linear, or a formula
of linear ones, becomes an answer with an interval. Everything else around aggregates stays SQL.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.belief import N_REPORTED_MAX
from planner.decision import Comparison
from planner.level_summary import LevelSummary
from planner.lowering.formulas import FormulaReader, Total, as_plain_aggregates
from planner.lowering.level_summaries import Calendar, as_level, quantiles_of
from planner.lowering.linear import is_linear
from planner.lowering.listed_groups import ListedGroups, grouping_sets, listed_groups
from planner.lowering.parts import N_COLUMNS_MAX, PartBuilder
from planner.lowering.rows import Rows, mapped
from planner.lowering.summands import conjuncts
from planner.sql import (
    COMPANIONS,
    IS_MADE,
    WAS_CUT,
    BestColumn,
    Claim,
    CompanionColumn,
    Held,
    aggregates,
    aggregates_in,
    column_name,
    comparison_of,
    has_node,
    is_best,
    is_companion,
    is_of_window,
    is_output,
    is_probability,
    is_unit_count,
    listed,
    number_literal,
    output_name,
    output_reference,
    position,
    read_best,
    read_companion,
    read_probability,
    shown,
    suggestion,
    text_of,
    unit_count,
    unsupported,
    with_named,
    without_quotient,
)
from planner.workload import Answer, ColumnKind

# The share of so many draws (10,000) is within .01 of the probability in 95 % of uses.
CLAIM_DRAWS: Final = 0.998
N_CLAIMED_MAX: Final = 2**18  # rows times probabilities: a few seconds by the slowest law
CERTAIN: Final = "dp_certain"  # a column that OPTIONS(certainty => true) adds


def name_every_key(select: exp.Select) -> None:
    """Replace GROUP BY ALL by what it stands for: the columns without an aggregate in them."""
    group = select.args.get("group")
    if group is None or not group.args.get("all"):
        return
    keys = [
        item.unalias().copy()
        for item in select.expressions
        if not aggregates(item)
        and item.find(exp.Column)
        and not (is_companion(item.unalias()) or is_best(item.unalias()))
    ]
    select.set("group", exp.Group(expressions=keys) if keys else None)


def order_by_every_item(select: exp.Select) -> None:
    """Replace ORDER BY ALL by what it stands for: the items of the list, from the left."""
    order = select.args.get("order")
    if order is None or len(order.expressions) != 1 or select.is_star:
        return
    (entry,) = order.expressions
    if not _is_word_all(entry.this):
        return
    ordered = []
    for place in range(1, len(select.expressions) + 1):
        one = entry.copy()
        one.set("this", exp.Literal.number(place))
        ordered.append(one)
    order.set("expressions", ordered)


def _is_word_all(node: exp.Expr) -> bool:
    """Whether it is the word ALL, which is no name of a column unless it is quoted."""
    if not isinstance(node, exp.Column) or node.table:
        return False
    return node.name.upper() == "ALL" and not node.this.quoted


def count_of_units(node: exp.Expr, rows: Rows) -> exp.Expr:
    """A count of the unit's key, over axes; another node as it is.

    Where no unit has several rows, none has rows left out either.
    """
    counted = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(counted, exp.Count | exp.ApproxDistinct):
        return node
    inner, is_distinct = counted.this, isinstance(counted, exp.ApproxDistinct)
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        inner, is_distinct = inner.expressions[0], True
    conditions: list[exp.Expr] = []
    if is_distinct and isinstance(inner, exp.Case):
        inner, conditions = _under_conditions(inner)
    if not rows.is_unit(inner):
        return node
    if isinstance(node, exp.Filter):
        conditions = [*conditions, *conjuncts(node.expression.this)]
    own = [one for one in conditions if not _is_about_cuts(one, rows)]
    only_cut = len(own) < len(conditions)
    found: exp.Expr
    if is_distinct and rows.schema.rows_per_unit_max > 1:
        found = unit_count(str(rows.schema.unit), counted, only_cut=only_cut)
    else:
        found = exp.Count(this=exp.Star(), big_int=True)
        found.meta.update(counted.meta)
        own = conditions  # WAS_CUT among them is refused, as everywhere else
    if own:
        where = exp.and_(*(rows.resolved(one.copy()) for one in own))
        found = exp.Filter(this=found, expression=exp.Where(this=where))
    return found


def _under_conditions(case: exp.Case) -> tuple[exp.Expr, list[exp.Expr]]:
    """The value of CASE WHEN p THEN value END, and its conditions; of others, itself."""
    ifs, default = case.args["ifs"], case.args.get("default")
    if len(ifs) != 1 or case.this is not None or not isinstance(default, exp.Null | None):
        return case, []
    return ifs[0].args["true"], list(conjuncts(ifs[0].this))


def _is_about_cuts(condition: exp.Expr, rows: Rows) -> bool:
    """Whether a condition is WAS_CUT of the unit's key."""
    condition = condition.unnest()
    return (
        isinstance(condition, exp.Anonymous)
        and condition.name.upper() == WAS_CUT
        and len(condition.expressions) == 1
        and rows.is_unit(condition.expressions[0])
    )


Expressions = Sequence[exp.Expr]


class Lowering:
    """Rewrites one SELECT.

    Parameters
    ----------
    part : PartBuilder
    total_of : callable
        Returns a held subquery as a total, if it is one linear answer of the same rows' table.
    """

    def __init__(self, part: PartBuilder, total_of: Callable[[Held, Rows], Total | None]) -> None:
        self._part = part
        self._n_claims = self._n_reported = 0
        self._is_in_having = False
        self._keys: dict[exp.Expr, int] = {}  # their positions
        self._calendars: dict[int, Calendar] = {}  # of answers that are numbers of days or moments
        self._total_of = total_of
        self._formulas = self._reader(every_group=True)
        self.listed: ListedGroups | None = None  # what the SELECT lists, if it does nothing else

    def _reader(self, *, every_group: bool) -> FormulaReader:
        part, total_of = self._part, self._total_of
        return FormulaReader(part, lambda held: total_of(held, part.rows), every_group=every_group)

    def select(self, select: exp.Select) -> dict[str, int]:
        """Rewrite `select` in place; the positions of its answers by output name."""
        part, rows = self._part, self._part.rows
        self._formulas = self._reader(every_group=not select.args.get("having"))
        items: list[exp.Expr] = select.expressions
        if len(items) > N_COLUMNS_MAX:
            raise _too_many_columns()
        names = [self._name(item) for item in items]
        as_plain_aggregates(select)
        self._resolve(select, names)
        where = select.args.get("where")
        own = () if where is None else tuple(conjuncts(where.this))
        inner = (condition for one in rows.conditions for condition in conjuncts(one))
        part.conditions = (*inner, *own)
        is_distinct = select.args.get("distinct")
        self._group(select)
        items = [item.unalias() for item in select.expressions]
        self.listed = listed_groups(
            select,
            rows.showing({}, part.conditions),
            names,
            items if is_distinct else list(self._keys),
            part.n_rows,
        )
        answers = self._items(select, names)
        self._clauses(select)
        if part.requested.certainty and part.comparisons and _may_have_column(select, names):
            select.append("expressions", self._certainty())
        for clause in ("group", "joins"):
            select.set(clause, None)
        relation = exp.Table(this=exp.to_identifier(part.name, quoted=True))
        select.set("from_", exp.From(this=relation))
        return answers

    def key_column(self, node: exp.Expr) -> exp.Column | None:
        """The relation's column for a group key; None if `node` is not one."""
        node = node.unnest()
        place = self._keys.get(node)
        return None if place is None else self._part.column(ColumnKind.KEY, place)

    def _name(self, item: exp.Expr) -> str:
        if isinstance(item, exp.Column):
            return self._part.rows.column_name(item) or column_name(item)
        return column_name(item)

    def _resolve(self, select: exp.Select, names: list[str]) -> None:
        """Replace every column by its meaning on the public levels."""
        rows = self._part.rows
        aliased = {
            name: item.this
            for item, name in zip(select.expressions, names, strict=True)
            if isinstance(item, exp.Alias)
        }

        def by_alias(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and not node.table and not rows.has(node):
                named = aliased.get(output_name(node.this))
                return node if named is None else exp.paren(rows.written_out(named, node))
            return node

        def by_alias_within(node: exp.Expr) -> exp.Expr:
            return mapped(node, by_alias)

        group = select.args.get("group")
        if group is not None:
            expand_ordinals(group, select.expressions, by_alias, rows)
        for clause in ("expressions", "order"):
            _change(select, clause, lambda node: with_named(node, by_alias_within))
        for clause in ("expressions", "where", "group", "having", "qualify", "windows", "distinct"):
            if clause in ("having", "qualify"):
                _change(select, clause, by_alias)
            _change(select, clause, self._read)
        self._resolve_order(select, names)

    def _read(self, node: exp.Expr) -> exp.Expr:
        """The meaning of a column, of a companion function, or of COUNT of the unit's key."""
        if isinstance(node, exp.Column):
            return self._part.rows.resolved_node(node)
        if not isinstance(node, exp.Count | exp.ApproxDistinct | exp.Filter | exp.Anonymous):
            return node
        if is_probability(node):
            resolved = [mapped(one, self._read) for one in node.expressions]
            node.set("expressions", resolved)
            return read_probability(node)
        if is_best(node):
            read = [
                one if isinstance(one, exp.Kwarg) else mapped(one, self._read)
                for one in node.expressions
            ]
            node.set("expressions", read)
            return read_best(node)
        counted = count_of_units(node, self._part.rows)
        return read_companion(counted) if is_companion(counted) else counted

    def _resolve_order(self, select: exp.Select, names: list[str]) -> None:
        """A bare name in ORDER BY is an output column first, as in PostgreSQL."""
        order = select.args.get("order")
        for ordered in [] if order is None else order.expressions:
            named = ordered.this.unnest()
            if isinstance(named, exp.Column) and not named.table:
                wanted = output_name(named.this)
                if wanted in names:
                    ordered.set("this", output_reference(wanted))
                    continue
            mapped(ordered, self._read)

    def _group(self, select: exp.Select) -> None:
        group = select.args.get("group")
        distinct = select.args.get("distinct")
        if group is None and distinct is not None and not aggregates_in(select):
            if distinct.args.get("on") is not None:
                raise unsupported(
                    distinct, "would return one private row of each group", "Use GROUP BY."
                )
            sets = [[item.unalias().unnest() for item in select.expressions]]
            select.set("distinct", None)
        else:
            sets = [[]] if group is None else grouping_sets(group)
        for key in (key for chosen in sets for key in chosen):
            if key not in self._keys:
                check_key(key)
                self._keys[key] = len(self._keys)
        if len(self._keys) > N_COLUMNS_MAX:
            raise _too_many_columns()
        if self._keys or len(sets) > 1:
            places = [list(dict.fromkeys(self._keys[key] for key in chosen)) for chosen in sets]
            self._part.group(list(self._keys), places)

    def _items(self, select: exp.Select, names: list[str]) -> dict[str, int]:
        """Rewrite the SELECT list; companions last, since they name answers."""
        answers: dict[str, int] = {}
        several: set[str] = set()
        rewritten: list[exp.Expr | None] = []
        for item, name in zip(select.expressions, names, strict=True):
            node = item.unalias()
            if isinstance(node, CompanionColumn | BestColumn):
                rewritten.append(None)
                continue
            column, answer = self._item(node, name)
            rewritten.append(column)
            if answer is not None:
                several.update({name} & answers.keys())
                answers[name] = answer
        for place, item in enumerate(select.expressions):
            node = item.unalias()
            if isinstance(node, BestColumn):
                rewritten[place] = self._best(node)
            elif rewritten[place] is None:
                rewritten[place] = self._companion(node, answers, several)
        select.set(
            "expressions",
            [
                exp.alias_(column, name, quoted=True, copy=False)
                for column, name in zip(rewritten, names, strict=True)
                if column is not None
            ],
        )
        return answers

    def _item(self, node: exp.Expr, name: str) -> tuple[exp.Expr, int | None]:
        """An item over the noisy relation, and its answer if it has an interval."""
        key = self.key_column(node)
        if key is not None:
            return key, None
        if isinstance(node, Claim):
            return self._claim(node), None
        several = quantiles_of(node)
        if several is not None:
            return self._list(several, name), None
        found = self._formulas.answer(node, name)
        if found is None:
            return self._computed(node), None
        answer = self._part.answer(found)
        self._part.rename(answer, name)
        calendar = self._formulas.calendar(node)
        if calendar is not None:
            self._calendars[answer] = calendar
        return self._shown(ColumnKind.ANSWER, answer), answer

    def _list(self, quantiles: Sequence[exp.Expr], name: str) -> exp.Expr:
        """Several quantiles of one column, as a list."""
        columns = [
            self._item(one, f"{name}[{place}]")[0] for place, one in enumerate(quantiles, start=1)
        ]
        self._part.notes[
            f"{name} is a list of quantiles, and has no interval. Each quantile has an interval "
            "when it is a column of its own, at no further cost."
        ] = None
        made = exp.Array(expressions=columns)
        made.meta[IS_MADE] = True
        return made

    def _shown(self, kind: ColumnKind, answer: int, confidence: float | None = None) -> exp.Expr:
        """A column of an answer; a day or a moment, if it is the number of one."""
        if kind is ColumnKind.ANSWER:
            column = self._part.shown_column(answer)
        else:
            column = self._part.column(kind, answer, confidence)
        calendar = self._calendars.get(answer)
        is_number = kind in (ColumnKind.ANSWER, ColumnKind.LOW, ColumnKind.HIGH)
        return as_level(column, calendar) if calendar is not None and is_number else column

    def _companion(
        self, companion: CompanionColumn, answers: dict[str, int], several: set[str]
    ) -> exp.Expr:
        wanted = companion.answer
        if wanted in several:
            raise UnsupportedSql(
                f"{shown(companion)} is ambiguous: several answers are named {wanted}.",
                hint="Give each answer its own name with AS.",
                position=position(companion),
            )
        if wanted not in answers:
            raise UnknownName(
                f"{wanted} is not an answer with an interval in this SELECT.",
                hint=suggestion(wanted, answers)
                or "The answers here are "
                f"{listed(answers) or 'none: COUNT, SUM and formulas of them'}.",
                position=position(companion),
            )
        kind = COMPANIONS[companion.name]
        if companion.confidence is not None and self._part.is_formula(answers[wanted]):
            self._part.check_draws(shown(companion), companion.confidence, answers[wanted])
        return self._shown(kind, answers[wanted], companion.confidence)

    def _clauses(self, select: exp.Select) -> None:
        """Rewrite the clauses that filter and order groups to filter and order answers."""
        having = select.args.get("having")
        self._is_in_having = True
        where = None if having is None else exp.Where(this=self._computed(having.this))
        self._is_in_having = False
        select.set("having", None)
        select.set("where", where)
        for clause in ("order", "qualify", "windows", "distinct"):
            tree = select.args.get(clause)
            for node in tree if isinstance(tree, list) else [tree]:
                if node is not None:
                    self._rewrite_children(node)

    def _computed(self, node: exp.Expr) -> exp.Expr:
        """An expression over the noisy relation, without an interval."""
        if isinstance(node, Held) or is_output(node):
            return node
        key = self.key_column(node)
        if key is not None:
            return key
        claimed = self._claim(node) if isinstance(node, Claim) else self._compared(node)
        if claimed is not None:
            return claimed
        formula = None if is_of_window(node) else self._formulas.inline(node)
        if formula is not None:
            self._note_read(formula)
            return formula
        if isinstance(node, exp.Grouping):
            return self._grouping(node)
        if isinstance(node, exp.Column):
            raise unsupported(
                node, "is neither aggregated nor a group key", "Put it into GROUP BY, or into SUM."
            )
        if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup) and not is_of_window(node):
            raise self._formulas.refusal(node)
        self._rewrite_children(node)
        return node

    def _compared(self, node: exp.Expr) -> exp.Expr | None:
        """A comparison of a linear answer with constants; None if it is no such."""
        found = comparison_of(node)
        if found is None or not (is_linear(found.this) or is_unit_count(found.this)):
            return None
        text = shown(node)
        column = self._formulas.inline(found.this)
        if not isinstance(column, exp.Column):
            return None
        place = self._part.shows(column).index
        self._part.compares(Comparison(place, *found.ends, text, self._is_in_having))
        for name, value in node.args.items():
            if isinstance(value, exp.Expr) and value.unnest() == found.this:
                node.set(name, column.copy())
        return node

    def _note_read(self, formula: exp.Expr) -> None:
        for column in formula.find_all(exp.Column):
            shows = self._part.shows(column)
            if shows.kind is ColumnKind.ESTIMATE:
                self._part.reads(shows.index)

    def _claim(self, claim: Claim) -> exp.Expr:
        """The probability that an answer lies in a range.

        Of one linear answer it is exact; of a formula, the share of draws of its law.
        """
        about, part = claim.this.unnest(), self._part
        decide = part.requested.decide
        if decide is not None and not (is_linear(about) or is_unit_count(about)):
            return self._decided(claim)
        found = self._formulas.answer(about, "")
        if found is None or isinstance(found.formula, LevelSummary):
            raise unsupported(
                claim,
                "is about a value whose law is not known",
                "Compare counts, sums, averages, ratios, quantiles and differences of them.",
            )
        answer = part.claimed(replace(found, name=found.sql))
        if decide is not None:
            part.decide(found.uses[0], claim.finite_ends, decide, str(claim.args["text"]))
        self._check_n_claims(claim)
        draws = None
        if part.is_formula(answer):
            draws = CLAIM_DRAWS
            part.check_draws(shown(claim), draws, answer)
        return part.column(ColumnKind.PROBABILITY, answer, draws, claim.ends)

    def _decided(self, claim: Claim) -> exp.Expr:
        """A claim about an average or a quotient by a count, by claims about linear answers."""
        claims = without_quotient(claim)
        if not claims or not all(is_linear(one.this) for one in claims):
            raise unsupported(
                claim,
                "cannot be decided step by step",
                "Compare counts, sums, averages, or quotients of these by a count; or name a "
                "half_width in place of decide.",
            )
        above = [self._claim(one) for one in claims]
        if math.isinf(claim.ends[0]):
            return exp.paren(exp.Sub(this=exp.Literal.number(1), expression=above[0]))
        if len(above) == 1:
            return above[0]
        both = exp.Sub(this=above[0], expression=above[1])  # of two laws: below 0 by rounding
        none = exp.Literal.number("0.0")
        return exp.Greatest(this=both, expressions=[none], ignore_nulls=False)

    def _check_n_claims(self, claim: Claim | None = None) -> None:
        self._n_claims += 1
        n_rows = self._part.n_rows
        if self._n_claims * n_rows > N_CLAIMED_MAX:
            raise TooLarge(
                f"{self._n_claims} probabilities in {n_rows} groups are more than {N_CLAIMED_MAX}.",
                hint="Ask for fewer of them at once, or for fewer groups.",
                position=None if claim is None else position(claim),
            )

    def _certainty(self) -> exp.Expr:
        """How probably all comparisons of a row are right, at the least, as a column."""
        wrong: exp.Expr | None = None
        for one in self._part.comparisons:
            self._check_n_claims()
            answer = self._part.inner(Answer(one.text, one.text, (one.aggregate,)))
            span = one.low, one.high
            estimate = self._part.column(ColumnKind.ESTIMATE, one.aggregate)
            holds = [
                kind(this=estimate.copy(), expression=number_literal(end))
                for kind, end in ((exp.GTE, one.low), (exp.LTE, one.high))
                if math.isfinite(end)
            ]
            inside = self._part.column(ColumnKind.PROBABILITY, answer, None, span)
            outside = exp.Sub(this=exp.Literal.number(1), expression=inside)
            of_this: exp.Expr = exp.Case(
                ifs=[exp.If(this=exp.and_(*holds, copy=False), true=outside)], default=inside.copy()
            )
            wrong = of_this if wrong is None else exp.Add(this=wrong, expression=of_this)
        none = exp.Literal.number("0.0")
        if wrong is None:
            raise ValueError("nothing is compared")
        right = exp.Sub(this=exp.Literal.number("1.0"), expression=exp.paren(wrong, copy=False))
        least = exp.Greatest(this=right, expressions=[none], ignore_nulls=False)
        return exp.alias_(least, CERTAIN, quoted=True, copy=False)

    def _best(self, best: BestColumn) -> exp.Expr:
        """The best reports of a count in each group."""
        about, part = best.this.unnest(), self._part
        found = self._formulas.answer(about, text_of(about))
        answer = None if found is None or found.formula is not None else part.claimed(found)
        if answer is None or not part.is_count(answer):
            raise unsupported(
                best, "is not about a count", "Write it of COUNT(*), with FILTER or WHERE."
            )
        self._n_reported += best.belief.work
        if self._n_reported * part.n_rows > N_REPORTED_MAX:
            raise TooLarge(
                f"{shown(best)} in {part.n_rows} groups would weigh more than {N_REPORTED_MAX} "
                "counts.",
                hint="Name fewer counts in the prior, or ask for fewer groups.",
                position=position(best),
            )
        return part.column(ColumnKind.REPORT, answer, belief=best.belief)

    def _rewrite_children(self, node: exp.Expr) -> None:
        for name, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(name, self._computed(value))
            elif isinstance(value, list):
                node.set(name, [self._computed(v) if isinstance(v, exp.Expr) else v for v in value])

    def _grouping(self, node: exp.Grouping) -> exp.Expr:
        """GROUPING(a, b): a bit for each key that the row is summed over, the last one lowest."""
        total: exp.Expr | None = None
        for argument in node.expressions:
            place = self._keys.get(argument.unnest())
            if place is None:
                raise unsupported(argument, "is not a group key", "Use GROUPING with a group key.")
            bit: exp.Expr = self._part.column(ColumnKind.GROUPING, place)
            if total is not None:
                doubled = exp.Mul(
                    this=exp.paren(total, copy=False), expression=exp.Literal.number(2)
                )
                bit = exp.Add(this=doubled, expression=bit)
            total = bit
        if total is None:
            raise ValueError("GROUPING needs at least one argument")
        return exp.paren(total, copy=False)


def _may_have_column(select: exp.Select, names: Sequence[str]) -> bool:
    """Whether a column may be added to a SELECT: nothing around it depends on its columns."""
    is_inner = isinstance(select.parent, exp.Subquery | exp.CTE | exp.SetOperation)
    return not (is_inner or select.args.get("distinct") or CERTAIN in names)


def expand_ordinals(
    group: exp.Group, items: Expressions, by_alias: Callable[[exp.Expr], exp.Expr], rows: Rows
) -> None:
    """Replace ordinals and aliases in GROUP BY by the expressions they stand for.

    As in PostgreSQL, a name that is both a column and an alias means the column.
    """

    def meant(node: exp.Expr) -> exp.Expr:
        node = node.unnest()
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdecimal() and len(node.name) < len("10000") else 0
            if not 1 <= place <= len(items):
                raise unsupported(
                    node,
                    f"is not the position of one of the {len(items)} columns",
                    "Write the column's name.",
                )
            item: exp.Expr = items[place - 1].unalias()
            return rows.written_out(item, node)
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            node.set("expressions", [meant(inner) for inner in node.expressions])
            return node
        if isinstance(node, exp.Column):
            return by_alias(node).unnest()
        return node

    for clause in ("expressions", "rollup", "cube", "grouping_sets"):
        if group.args.get(clause):
            group.set(clause, [meant(node) for node in group.args[clause]])


def _change(select: exp.Select, clause: str, change: Callable[[exp.Expr], exp.Expr]) -> None:
    """Apply a change to every node of a clause."""
    value = select.args.get(clause)
    if isinstance(value, list):
        select.set(clause, [mapped(node, change) for node in value])
    elif value is not None:
        select.set(clause, mapped(value, change))


def check_key(key: exp.Expr) -> None:
    """Refuse a group key that is an answer, or that is not a value of a record."""
    if isinstance(key, CompanionColumn | BestColumn) or has_node(key, exp.AggFunc):
        raise unsupported(
            key,
            "is an answer, and an answer cannot be a group key",
            "Aggregate in a subquery, and group by its answers outside.",
        )
    if has_node(key, Held):
        raise unsupported(key, "groups by another answer", "Group by columns.")
    if has_node(key, exp.Star):
        raise UnsupportedSql(
            "SELECT DISTINCT * would show private rows.", hint="Name the columns to group by."
        )


def _too_many_columns() -> TooLarge:
    return TooLarge(
        f"The SELECT list or GROUP BY has more than {N_COLUMNS_MAX} columns.",
        hint="Split the columns over several statements.",
    )
