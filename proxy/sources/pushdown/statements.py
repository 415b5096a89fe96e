"""The statements that an engine is sent: a survey of a whole table, and the cells of a scope.

Made of the public declaration and nothing else. Rows with a value that has no level are left out of
the cells, as they are of a table that is read from a file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sqlglot import exp

from accountant import BY_ITSELF, Grouping, LevelRuns
from cube.schema import Schema
from proxy.sources.axis_sql import LEFT_OUT, WRONG_TYPE, SourceColumn
from proxy.sources.pushdown.dialect import (
    BIG,
    N_DIGEST_PARTS,
    Dialect,
    both,
    call,
    case,
    name,
    text,
    whole,
)
from proxy.sources.pushdown.positions import Position, key_of, position, same_text

AGE: Final = "age_of_row"
WRITER: Final = "writer_of_row"
UNIT: Final = "unit_of_row"
COUNT: Final = "n_rows"
INSIDE: Final = "is_inside"
TOTAL: Final = "is_total"
SEEN: Final = "seen_of_rows"
GROUPED: Final = "grouped"
DIGEST: Final = "digest"
N_ALL: Final = "n_all"
N_RUNS_MAX: Final = 64  # that are compared one by one
N_WRITERS_MAX: Final = 64  # transactions that are told apart from others
LARGE: Final = "DECIMAL(38, 0)"  # holds the sum of a quintillion digests


@dataclass(frozen=True, slots=True)
class RowLook:
    """What every row is asked while rows are counted, if the engine says who wrote a row.

    Parameters
    ----------
    asks_nothing : bool
        Whether nothing is: the engine itself says that its rows are the same.
    writers : tuple of int
        The few transactions that wrote the rows: what is `SEEN` is the number of rows by others,
        and the engine may count in parallel. If there are none, it is the age of the youngest row.
    """

    asks_nothing: bool = False
    writers: tuple[int, ...] = ()


NO_LOOK: Final = RowLook(asks_nothing=True)


@dataclass(frozen=True)
class Statements:
    """What is asked of one table.

    Parameters
    ----------
    columns : mapping of str to SourceColumn
        The table's columns by their names in lower case; every declared one is there.
    few : frozenset of int
        The places of axes whose column is known to have few values. Cells are the same either way.
    """

    schema: Schema
    columns: Mapping[str, SourceColumn]
    dialect: Dialect
    few: frozenset[int] = frozenset()

    @cached_property
    def positions(self) -> tuple[Position, ...]:
        """The encoding of each axis; TooManyEdgesError if the engine has none."""
        return tuple(
            (one.of_few or one) if place in self.few else one
            for place, one in enumerate(self._positions)
        )

    @cached_property
    def _positions(self) -> tuple[Position, ...]:
        return tuple(
            position(axis, self.columns[axis.name.casefold()], place, self.dialect)
            for place, axis in enumerate(self.schema.axes)
        )

    def survey(self, table: exp.Expr, key: str) -> exp.Select:
        """What is found out of a whole table, as one row.

        Whether a value is of a wrong type, and whether one has no level, axis by axis; whether
        more rows are read than is declared, a row has no unit, and a unit has two rows; sums of
        keyed digests of the rows that are read; and how many rows there are, and the age of the
        youngest if the engine knows it.
        """
        every = range(len(self.positions))
        unit = self.schema.unit
        more: list[exp.Expr] = []
        if unit is not None:
            more.append(name(self.columns[unit.casefold()].sql).as_(UNIT))
        writer = self.dialect.writer_of_row()
        more += [] if writer is None else [self.dialect.age_of(writer).as_(AGE)]
        keyed = self._keyed(table, every, more)
        named = [UNIT] * (unit is not None) + [AGE] * (writer is not None)
        kept = [exp.column(one) for one in named]
        levelled = self._levelled(keyed, every, kept).subquery("levelled")
        is_inside = _inside(every)
        found = [_any(_level_is(place, WRONG_TYPE)).as_(f"wrong_{place}") for place in every]
        found += [_any(_level_is(place, LEFT_OUT)).as_(f"outside_{place}") for place in every]
        n_inside = call("count", case(((is_inside, whole(1)),)))
        n_max = whole(self.schema.n_records_max)
        found.append(exp.GT(this=n_inside, expression=n_max).as_("has_too_many"))
        if unit is not None:
            found += _of_units()
        found += [
            self._digest(key, part, is_inside).as_(f"{DIGEST}_{part}")
            for part in range(N_DIGEST_PARTS)
        ]
        found.append(call("count", exp.Star()).as_(N_ALL))
        if AGE in named:
            found.append(call("min", exp.column(AGE)).as_(AGE))
        return exp.select(*found).from_(levelled)

    def writers(self, table: exp.Expr) -> exp.Select | None:
        """The transactions that wrote the rows, up to one more than `N_WRITERS_MAX`."""
        writer = self.dialect.writer_of_row()
        if writer is None:
            return None
        some = exp.select(writer.as_(WRITER)).distinct().from_(table.copy())
        number = self.dialect.number_of(exp.column(WRITER)).as_(WRITER)
        return exp.select(number).from_(some.limit(N_WRITERS_MAX + 1).subquery("writers"))

    def how_many_values(self, table: exp.Expr) -> exp.Select | None:
        """Roughly how many values those columns have that may be grouped before or after."""
        asked = [
            found.as_(f"values_{place}")
            for place, one in enumerate(self._positions)
            if one.of_few is not None
            and (found := self.dialect.about_how_many(one.of_few.key)) is not None
        ]
        return exp.select(*asked).from_(table.copy()) if asked else None

    def counting(
        self,
        table: exp.Expr,
        grouping: Grouping,
        outside: Sequence[str],
        look: RowLook = NO_LOOK,
    ) -> exp.Expr:
        """The occupied cells of a scope: the levels as which rows are counted, and how many are.

        A level of `LEFT_OUT` is of rows that are not counted. Where rows are looked at besides, one
        more row follows, with `TOTAL` true: how many rows there are in all, and `SEEN`.

        Parameters
        ----------
        grouping : Grouping
            Which axes, and which of their levels are counted together; of very many runs of levels,
            each level is counted by itself.
        outside : sequence of str
            The axes on which some values have no level.
        look : RowLook
            What every row is asked, too.
        """
        scope = grouping.scope
        places = [axis.name for axis in self.schema.axes]
        shown = [places.index(one) for one in scope]
        hidden = [places.index(one) for one in outside if one not in scope]
        grouped = self._grouped(table, shown, hidden, look)
        relation = exp.Table(this=exp.to_identifier(GROUPED))
        kept = [exp.column(one) for one in [COUNT, *([INSIDE] if hidden else [])]]
        source = grouped.subquery(GROUPED) if look.asks_nothing else relation
        levelled = self._levelled(exp.select("*").from_(source), shown, kept).subquery("levelled")
        levels = [
            _counted_as(exp.column(f"level_{place}"), runs)
            for place, runs in zip(shown, grouping.runs, strict=True)
        ]
        n_rows = exp.cast(call("coalesce", call("sum", exp.column(COUNT)), whole(0)), BIG)
        named = [level.as_(f"cell_{place}") for place, level in zip(shown, levels, strict=True)]
        cells = exp.select(*named, n_rows.as_(COUNT)).from_(levelled)
        # Not of the levels: an engine would move that condition down, and encode row by row.
        cells = cells.where(*kept[1:]) if hidden else cells
        cells = cells.group_by(*levels) if levels else cells
        if look.asks_nothing:
            return cells
        cells = cells.select(exp.null().as_(SEEN), exp.false().as_(TOTAL))
        nothing = [exp.cast(exp.null(), "INT") for _ in shown]
        seen = exp.cast(call("sum" if look.writers else "min", exp.column(SEEN)), BIG)
        total = exp.select(*nothing, n_rows.copy(), seen, exp.true()).from_(relation)
        return exp.union(cells, total, distinct=False).with_(GROUPED, as_=grouped)

    def _grouped(
        self, table: exp.Expr, shown: Sequence[int], hidden: Sequence[int], look: RowLook
    ) -> exp.Select:
        """Rows counted by their keys, and by whether every hidden axis has a level."""
        keys: list[exp.Expr] = [key_of(place) for place in shown]
        writer = None if look.asks_nothing else self.dialect.writer_of_row()
        keyed = self._keyed(
            table, [*shown, *hidden], [] if writer is None else [writer.as_(WRITER)]
        )
        kept = [] if writer is None else [exp.column(WRITER)]
        if hidden:
            levelled = self._levelled(keyed, hidden, [*keys, *kept]).subquery("hidden")
            keyed = exp.select(*keys, _inside(hidden).as_(INSIDE), *kept).from_(levelled)
            keys.append(exp.column(INSIDE))
        found = [call("count", exp.Star()).as_(COUNT)]
        if look.writers:
            # No key: of that column PostgreSQL has no statistics, and expects too many groups.
            known = self.dialect.is_among(exp.column(WRITER), look.writers)
            found.append(call("count", case(((known, exp.null()),), whole(1))).as_(SEEN))
        elif writer is not None:
            found.append(call("min", self.dialect.age_of(exp.column(WRITER))).as_(SEEN))
        grouped = exp.select(*keys, *found).from_(keyed.subquery("keyed"))
        return grouped.group_by(*keys) if keys else grouped

    def _keyed(
        self, table: exp.Expr, places: Sequence[int], more: Sequence[exp.Expr]
    ) -> exp.Select:
        """The rows of a table with the keys of some axes, and with more that is asked of each."""
        keys = [self.positions[place].key.copy().as_(f"key_{place}") for place in places]
        # A row is a row, even if nothing of it is asked.
        return exp.select(*([*keys, *more] or [whole(1).as_("one")])).from_(table.copy())

    def _levelled(
        self, keyed: exp.Select, places: Sequence[int], kept: Sequence[exp.Expr]
    ) -> exp.Select:
        """A relation with keys, with the levels in their place."""
        levels = [self.positions[place].level.copy().as_(f"level_{place}") for place in places]
        found = exp.select(*levels, *kept).from_(keyed.subquery("keyed"))
        for place in places:
            relation = self.positions[place].levels
            if relation is not None:
                found = found.join(relation.copy(), on=same_text(place), join_type="left")
        return found

    def _digest(self, key: str, part: int, is_inside: exp.Expr) -> exp.Expr:
        """The sum of a part of the keyed digests of rows, as text."""
        by_name = sorted(
            range(len(self.schema.axes)), key=lambda place: self.schema.axes[place].name
        )
        texts = [
            one
            for place in by_name
            for one in (text("/"), exp.cast(exp.column(f"level_{place}"), "TEXT"))
        ]
        digest = self.dialect.digest_part(call("concat", text(key), *texts), part)
        summed = call("sum", case(((is_inside, exp.cast(digest, LARGE)),)))
        return exp.cast(call("coalesce", summed, whole(0)), "TEXT")


def _counted_as(level: exp.Expr, runs: LevelRuns) -> exp.Expr:
    """The level as which a level is counted, which is itself where there are too many runs."""
    if runs.counts_each or runs.n_runs > N_RUNS_MAX:
        return level
    ends = zip(runs.ends.tolist(), runs.counted_as.tolist(), strict=True)
    branches = [(exp.LT(this=level, expression=whole(0)), level)]
    branches += [
        (exp.LT(this=level, expression=whole(end)), level if as_ == BY_ITSELF else whole(as_))
        for end, as_ in ends
    ]
    return case(branches)


def _of_units() -> list[exp.Expr]:
    """Whether a row has no unit, and whether a unit has two rows."""
    unit = exp.column(UNIT)
    with_one = call("count", unit)
    each = exp.Count(this=exp.Distinct(expressions=[unit.copy()]))
    return [
        exp.GT(this=call("count", exp.Star()), expression=with_one).as_("has_no_unit"),
        exp.GT(this=with_one.copy(), expression=each).as_("has_several"),
    ]


def _level_is(place: int, code: int) -> exp.Expr:
    return exp.EQ(this=exp.column(f"level_{place}"), expression=whole(code))


def _has_level(place: int) -> exp.Expr:
    return exp.GT(this=exp.column(f"level_{place}"), expression=whole(LEFT_OUT))


def _inside(places: Sequence[int]) -> exp.Expr:
    """Whether every one of some axes has a level."""
    return both(*(_has_level(place) for place in places))


def _any(condition: exp.Expr) -> exp.Expr:
    return call("coalesce", call("bool_or", condition), exp.false())
