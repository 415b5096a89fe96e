"""Builds parts: a part aggregates one private table in a SELECT, with targets for its answers.

How accurate each answer is to be: as the statement says, or else a default for its kind.

A count's default is its table's half-width, in records. A sum's default is a fraction of itself, or
the target that the owner declared for the measure. A sum costs at most a stated multiple of a
count, since its half-width never goes below a floor that follows from public bounds. Nothing here
measures.

A `PartBuilder` collects groups, linear queries, answers and the columns of the noisy relation, each
once however often the statement mentions it, and returns a frozen `Part`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from cube.axis import LevelValue, MeasureAxis
from cube.query import N_GROUPS_MAX, LinearQuery, Partition, QueryBlock
from cube.refusals import TooLarge
from cube.schema import Schema
from cube.statistic import UNIT_COUNT, Rule
from cube.target import AccuracyTarget, PosteriorMethod, SumTarget
from inference import coefficient_range
from planner.belief import Belief, counts_rows
from planner.decision import Comparison, Decision, surer
from planner.domain import (
    KeyArray,
    KnownConditions,
    PublicDomain,
    PublicRelation,
    PublicRows,
    Scratchpad,
    TableNames,
)
from planner.level_summary import LevelSummary
from planner.lowering.as_of import TableGenerations
from planner.lowering.linear import (
    Grouping,
    bounded,
    changed_in_key,
    check_values,
    counts_records,
    grouping,
    is_bounded,
    linear_query,
    refuse_bounds,
    summed_columns,
)
from planner.lowering.rows import Rows
from planner.meaning import ANSWER, INT4, INT8, TEXT, UNKNOWN, Kind, SqlType, of_duckdb
from planner.sql import counts_cut_units, is_unit_count, text_of
from planner.workload import (
    Aggregate,
    Answer,
    ColumnKind,
    ConsistentSets,
    GroupKey,
    IndependenceQuestion,
    OutputColumn,
    Part,
    QuantileFormula,
    RequestedTarget,
    n_draws_for,
)

DEFAULT_RELATIVE: Final = 0.05  # of a sum without a declared target
AT_LEAST_RECORDS: Final = 2  # times the half-width of counts: records of the largest value

_UNDECLARED: Final = SumTarget(relative=DEFAULT_RELATIVE)


@dataclass(frozen=True, slots=True)
class AnswerTarget:
    """The target of one linear answer, in its own unit.

    Parameters
    ----------
    half_width : float
        What is asked for first.
    relative : float, optional
        The half-width that is wanted in the end, as a fraction of the answer.
    floor : float
        With `relative`, the half-width that is narrow enough for any answer.
    """

    half_width: float
    relative: float | None = None
    floor: float = 0.0

    @property
    def is_searched(self) -> bool:
        """Whether noisy values decide when the answer is narrow enough."""
        return self.relative is not None and self.half_width > self.floor


@dataclass(frozen=True, slots=True)
class TargetRules:
    """The targets of the answers of one SELECT.

    Parameters
    ----------
    requested : RequestedTarget
        What the statement asks for.
    default : AccuracyTarget
        The default for counts.
    sums : mapping
        The declared defaults for sums, by the measure's name.
    schema : Schema
        The schema with the public bounds of measures.
    """

    requested: RequestedTarget
    default: AccuracyTarget
    sums: Mapping[str, SumTarget]
    schema: Schema

    @property
    def names_width(self) -> bool:
        """Whether the statement says how narrow its answers are to be."""
        return self.requested.half_width is not None or self.requested.relative is not None

    @property
    def count_width(self) -> float:
        """The half-width of a count, as far as it is known before any answer."""
        if self.requested.half_width is not None:
            return self.requested.half_width
        return self.default.half_width

    @property
    def requested_floor(self) -> float:
        """With a requested `relative`, the half-width that is narrow enough for any answer."""
        asked = self.requested
        if asked.relative is None:
            return 0.0
        if asked.at_least is None:
            return self.default.half_width
        return asked.relative * asked.at_least

    def of_answer(self, query: LinearQuery) -> AnswerTarget:
        """The target of a linear answer."""
        if self.requested.half_width is not None:
            return AnswerTarget(self.requested.half_width)
        if self.requested.relative is not None:
            return self._relative(query, self.requested.relative, self.requested_floor)
        summed = summed_columns(query)
        if not summed:
            return AnswerTarget(self.default.half_width)
        declared, width = self._declared(summed)
        floor = width * float(query.bound)
        if declared.relative is None:
            return AnswerTarget(floor)
        return self._relative(query, declared.relative, floor)

    @property
    def _undeclared_floor(self) -> float:
        """The narrowest half-width of sums without a declared target, in records."""
        return DEFAULT_RELATIVE * AT_LEAST_RECORDS * self.default.half_width

    def _relative(self, query: LinearQuery, relative: float, floor: float) -> AnswerTarget:
        largest = float(query.bound) * self.schema.n_records_max
        # Nothing is wider that may be enough: for an answer of T, it is r * T / (1 + r).
        first = relative / (1 + relative) * largest
        return AnswerTarget(max(floor, first), relative, floor)

    def _declared(self, columns: Sequence[str]) -> tuple[SumTarget, float]:
        """The strictest default of some summed columns, with its floor in records."""
        targets = [self.sums.get(name, _UNDECLARED) for name in columns]
        widths = [self._floor(name, one) for name, one in zip(columns, targets, strict=True)]
        strictest = widths.index(min(widths))
        return targets[strictest], widths[strictest]

    def _floor(self, name: str, target: SumTarget) -> float:
        """The narrowest half-width of a column's sums, in records of the largest value."""
        if target.relative is not None and target.at_least is None:
            return target.relative / DEFAULT_RELATIVE * self._undeclared_floor
        (axis,) = (axis for axis in self.schema.axes if axis.name == name)
        if not isinstance(axis, MeasureAxis):
            raise TypeError(f"{name} has a target for sums, but is not a measure")
        return target.width / float(max(-Fraction(axis.low), Fraction(axis.high)))


N_DRAWN_MAX = 2**23  # of a formula's true value, for all groups: a second or two
N_CUMULATED_MAX = 2**25  # of the counts for a quantile, for all groups: likewise
N_DECIDED_MAX = 1000  # groups that are decided unasked: of more, some are near any limit
N_COLUMNS_MAX = 1000  # of a SELECT list or of GROUP BY; a wider result is of no use

_TYPES = {
    ColumnKind.GROUPING: INT4,
    ColumnKind.SOURCE: TEXT,
    ColumnKind.SUMMARY: UNKNOWN,
    ColumnKind.REPORT: INT8,
}
# An aggregate's text, its conditions if they differ from the SELECT's, and whether it is a total
# over all groups.
ColumnKey: TypeAlias = tuple[
    ColumnKind, int, float | None, tuple[float, float] | None, Belief | None
]
AggregateKey: TypeAlias = tuple[str, tuple[exp.Expr, ...], bool]


@dataclass(frozen=True, slots=True)
class PlanningContext:
    """The public context in which statements are planned.

    Parameters
    ----------
    schemas : mapping
        The schemas of the private tables, by name.
    rows : mapping
        All rows of each private table.
    defaults : mapping
        For every private table, the target of counts in a request that names none.
    sums : mapping
        For every private table, the declared targets for sums of its measures, by their names.
    public : mapping
        Public and synthetic tables, by their names in the outer SQL.
    names : TableNames
        The names of all of these tables.
    privacy_views : tuple of str
        The views of `data_privacy`, in lower case.
    scratchpad : Scratchpad
    public_rows : callable
        Returns the result of a SELECT over public tables: its columns' SQL types and values.
    conditions : KnownConditions
        The conditions that statements have had in WHERE.
    generations : mapping
        Of each table whose data was replaced.
    """

    schemas: Mapping[str, Schema]
    rows: Mapping[str, Rows]
    defaults: Mapping[str, AccuracyTarget]
    sums: Mapping[str, Mapping[str, SumTarget]]
    public: Mapping[str, PublicRelation]
    names: TableNames
    privacy_views: tuple[str, ...]
    scratchpad: Scratchpad
    public_rows: PublicRows
    conditions: KnownConditions
    generations: Mapping[str, TableGenerations] = field(default_factory=dict)


class PartBuilder:
    """A part in the making.

    Parameters
    ----------
    name : str
        The name of its relation in the outer SQL.
    rows : Rows
        The private rows that it aggregates.
    world : PlanningContext
    requested : RequestedTarget
        The target that the statement requests here.
    """

    def __init__(
        self, name: str, rows: Rows, world: PlanningContext, requested: RequestedTarget
    ) -> None:
        self.name = name
        self.rows = rows
        self.default = world.defaults[rows.table]
        self.requested = requested
        self.targets = TargetRules(
            requested, self.default, world.sums.get(rows.table, {}), rows.schema
        )
        self.domain = PublicDomain(
            rows.table, rows.schema, world.scratchpad, world.conditions, rows.allowance
        )
        self.domain.refuses_unknown_values = bool(requested.refuse_unknown_values)
        self.notes = self.domain.notes  # for the receipt, each once
        self.conditions: tuple[exp.Expr, ...] = ()
        self.consistency: ConsistentSets | None = None
        self.question: IndependenceQuestion | None = None
        self.noisy_extremes = False
        self.summaries: list[LevelSummary] = []
        self.sets: Sequence[Sequence[int]] = ()
        self._sections: list[Grouping] = [Grouping(None, ())]
        self._keys: tuple[GroupKey, ...] = ()
        self._key_types: tuple[SqlType, ...] = ()
        self._n_rows = 1
        self._aggregates: dict[AggregateKey, Aggregate] = {}
        self._places: dict[AggregateKey, int] = {}
        self._keys_of: list[AggregateKey] = []
        self._answers: list[Answer] = []
        self._is_searched = False  # by the width of a formula
        self._compared: dict[Comparison, None] = {}
        self._computed_with: set[int] = set()  # aggregates that more than a comparison reads
        # By axis: the groups cut by its levels, and the level of each row.
        self.levelled: dict[str, tuple[tuple[Partition, ...], tuple[int, ...]]] = {}
        self._columns: dict[ColumnKey, OutputColumn] = {}
        self._by_name: dict[str, OutputColumn] = {}

    @property
    def confidence(self) -> float:
        """The confidence of each interval; simultaneous answers divide the error probability."""
        confidence = self._requested_confidence
        if self.requested.simultaneous is not None and 0 < confidence < 1:
            confidence = float(1 - (1 - Fraction(confidence)) / self.requested.simultaneous)
        return confidence

    @property
    def _requested_confidence(self) -> float:
        named = self.requested.confidence
        return self.default.confidence if named is None else named

    @property
    def n_sections(self) -> int:
        """The number of grouping sets."""
        return len(self._sections)

    @property
    def sections(self) -> Sequence[Grouping]:
        """The grouping sets."""
        return self._sections

    @property
    def n_rows(self) -> int:
        """The number of groups of all sets."""
        return self._n_rows

    @property
    def aggregates(self) -> Sequence[Aggregate]:
        """The linear queries so far."""
        return tuple(self._aggregates.values())

    @property
    def keys(self) -> Sequence[GroupKey]:
        """The group keys, with their values in every row."""
        return self._keys

    def group(self, keys: Sequence[exp.Expr], sets: Sequence[Sequence[int]]) -> None:
        """Group by keys, in each of some sets of their positions."""
        where = self.domain.truths(self.conditions)
        arrays = [self.domain.key(key, where) for key in keys]
        schema = self.domain.schema
        for array in arrays:
            self.domain.caution(changed_in_key(array, where, schema))
        sections = [
            grouping([arrays[place] for place in chosen], where, schema, self.domain.allowance)
            if chosen
            else Grouping(None, ())
            for chosen in sets
        ]
        counts = [section.n_rows for section in sections]
        self.sets = sets
        self._n_rows = sum(counts)
        if self._n_rows > N_GROUPS_MAX:
            raise TooLarge(
                f"GROUP BY makes {self._n_rows} groups; {N_GROUPS_MAX} are allowed.",
                hint="Group by fewer columns or by ranges, or narrow the groups in WHERE.",
            )
        check_values(self._n_rows, len(keys))
        self._sections = sections
        self._key_types = tuple(map(_key_type, arrays))
        self._keys = tuple(
            _joined_key(array.sql_type, place, list(zip(sections, sets, counts, strict=True)))
            for place, array in enumerate(arrays)
        )

    def aggregate(
        self, node: exp.Expr, half_width: float | None = None, *, is_total: bool = False
    ) -> int:
        """The position of a linear item, over all groups if a total; by default as an answer."""
        return self.aggregate_of(node, self.conditions, half_width, is_total=is_total)

    def aggregate_of(
        self,
        node: exp.Expr,
        conditions: tuple[exp.Expr, ...],
        half_width: float | None = None,
        *,
        is_total: bool = False,
    ) -> int:
        """Like `aggregate`, over records for which all of the conditions hold."""
        text = text_of(node)
        key = (text, () if conditions is self.conditions else conditions, is_total)
        if key not in self._aggregates:
            query = linear_query(node, conditions, self.domain)
            partitions: list[Partition | None] = (
                [None] if is_total else [one.partition for one in self._sections if one.n_rows]
            )
            blocks = tuple(QueryBlock(query, partition) for partition in partitions)
            if half_width is None:
                half_width = self.targets.of_answer(query).half_width
            place = self.add(key, text, blocks, half_width, is_total=is_total)
            if is_unit_count(node):
                most, only_cut = self.rows.schema.groups_per_unit, counts_cut_units(node)
                rule = Rule(UNIT_COUNT, most, int(only_cut))
                self._aggregates[key] = replace(self._aggregates[key], rule=rule, fits_units=False)
            return place
        place = self._places[key]
        self._tighten(key, half_width or self._target_of(place).half_width)
        return place

    def shown(self, node: exp.Expr) -> int | None:
        """The position of a linear item if the statement shows it as an answer already."""
        key = (text_of(node), (), False)
        place = self._places.get(key)
        is_shown = any(one.formula is None and one.uses == (place,) for one in self._answers)
        return place if is_shown else None

    def add(
        self,
        key: AggregateKey,
        text: str,
        blocks: tuple[QueryBlock, ...],
        half_width: float,
        *,
        is_total: bool = False,
    ) -> int:
        """The position of an aggregate with the given blocks."""
        if key not in self._aggregates:
            target = AccuracyTarget(half_width=half_width, confidence=self.confidence)
            is_nonnegative = bool(self.requested.nonnegative_counts) and all(
                counts_records(block.query) for block in blocks
            )
            rule = bounded(blocks[0], self.rows.schema, self.requested) if blocks else None
            is_fitted = rule is None and self.requested.rows_per_unit == 0
            is_fitted &= self.rows.schema.rows_per_unit_max > 1
            said = is_total, is_nonnegative, rule, is_fitted
            self._aggregates[key] = Aggregate(text, text, blocks, target, *said)
            self._places[key] = len(self._places)
            self._keys_of.append(key)
        self._tighten(key, half_width)
        return self._places[key]

    def text_of(self, aggregate: int) -> str:
        """The SQL text of an aggregate."""
        return self._aggregates[self._keys_of[aggregate]].sql

    def _tighten(self, key: AggregateKey, half_width: float) -> None:
        known = self._aggregates[key]
        if half_width < known.target.half_width:
            target = replace(known.target, half_width=half_width)
            self._aggregates[key] = replace(known, target=target)

    def _target_of(self, aggregate: int) -> AnswerTarget:
        """The target of an aggregate as an answer; that of a count if it has no group at all."""
        blocks = self._aggregates[self._keys_of[aggregate]].blocks
        return self.targets.of_answer(blocks[0].query if blocks else LinearQuery(()))

    def answer(self, answer: Answer) -> int:
        """Add an answer; its position."""
        asked = self.requested
        if isinstance(answer.formula, LevelSummary):
            pass  # its targets are those of the counts of levels
        elif answer.formula is None:
            target = self._target_of(answer.uses[0])
            answer = replace(answer, relative=target.relative, width_floor=target.floor)
        else:
            self._check_draws(answer.sql, self.confidence, answer)
            # The default floor is in the unit of counts, and a formula may have another unit.
            floor = 0.0 if asked.at_least is None else self.targets.requested_floor
            width = asked.half_width if asked.relative is None else None
            answer = replace(answer, half_width=width, relative=asked.relative, width_floor=floor)
            self._is_searched |= self.targets.names_width
        self._answers.append(answer)
        return len(self._answers) - 1

    def claimed(self, answer: Answer) -> int:
        """An answer that a claim is about: one that is shown, or a new one; its position."""
        for place, known in enumerate(self._answers):
            if known.has_interval and (known.uses, known.formula) == (answer.uses, answer.formula):
                return place
        return self.answer(answer)

    def decide(self, aggregate: int, ends: Sequence[float], claimed: float, text: str) -> None:
        """Have an aggregate known only so well that it is decided on which side of ends it is.

        Parameters
        ----------
        claimed : float
            The probability with which each claim is decided, before simultaneous ones share the
            error probability.
        """
        key = self._keys_of[aggregate]
        known, target = self._aggregates[key], self._target_of(aggregate)
        if not known.blocks or known.is_constant:
            return
        query = known.blocks[0].query
        n_records, (least, most) = self.rows.schema.n_records_max, coefficient_range(query)
        low = float(query.constant) + n_records * min(float(least), 0.0)
        high = float(query.constant) + n_records * max(float(most), 0.0)
        error = (1 - Fraction(claimed)) / (self.requested.simultaneous or 1)
        farthest = max(max(abs(end - low), abs(high - end)) for end in ends)
        if not farthest:
            return
        is_requested = self.requested.decide is not None
        own = tuple(dict.fromkeys(ends))
        decision = Decision(own, float(error), farthest, is_requested, (text,))
        if known.decision is not None:
            decision = known.decision.with_ends(decision)
        self._aggregates[key] = replace(known, decision=decision)
        if target.relative is not None:
            self._tighten(key, target.floor or self.default.half_width * float(query.bound))

    def reads(self, aggregate: int) -> None:
        """Note that more than a comparison is computed from an aggregate."""
        self._computed_with.add(aggregate)

    def compares(self, comparison: Comparison) -> None:
        """Note that an aggregate is compared with constants."""
        self._compared[comparison] = None

    @property
    def comparisons(self) -> Sequence[Comparison]:
        """What was compared so far."""
        return tuple(self._compared)

    def _decide_what_is_compared(self) -> None:
        """Measure for comparisons only, if the statement asks for nothing else.

        A statement that says how surely has them decided so, whatever else it asks for.
        """
        asked = self.requested.decide
        shown = (one for one in self._answers if one.has_interval or one.formula is not None)
        used = {place for answer in shown for place in answer.uses}
        compared = {one.aggregate for one in self._compared}
        is_alone = not used and not self._computed_with and len(compared) == len(self._aggregates)
        is_large = self._n_rows > N_DECIDED_MAX
        if asked is None and (self.targets.names_width or not is_alone or is_large):
            return
        surely = self._requested_confidence if asked is None else asked
        for one in self._compared:
            if one.ends and one.aggregate not in self._computed_with and 0 < surely < 1:
                self.decide(one.aggregate, one.ends, surely, one.text)

    def inner(self, answer: Answer) -> int:
        """Add a formula inside other SQL, which has no interval and no target; its position."""
        self._answers.append(replace(answer, has_interval=False))
        return len(self._answers) - 1

    def shown_column(self, answer: int) -> exp.Column:
        """The column of the relation that shows an answer."""
        formula = self._answers[answer].formula
        if isinstance(formula, LevelSummary):
            return self.column(ColumnKind.SUMMARY, self.summaries.index(formula))
        return self.column(ColumnKind.ANSWER, answer)

    def is_formula(self, answer: int) -> bool:
        """Whether an answer is a formula."""
        return self._answers[answer].formula is not None

    def is_count(self, answer: int) -> bool:
        """Whether an answer is a count of records in each group."""
        known = self._answers[answer]
        if known.formula is not None or len(known.uses) != 1:
            return False
        used = self._aggregates[self._keys_of[known.uses[0]]]
        return not used.counts_units and not used.is_total and all(map(counts_rows, used.blocks))

    def check_draws(self, formula: str, confidence: float, answer: int) -> None:
        """Refuse another interval of a formula that would need too many draws."""
        self._check_draws(formula, confidence, self._answers[answer])

    def _check_draws(self, formula: str, confidence: float, answer: Answer) -> None:
        if not 0 < confidence < 1 or isinstance(answer.formula, LevelSummary):
            return  # which the target's own check reports
        asked = self.requested
        cut_at = confidence if asked.half_width is asked.relative is None else surer(confidence)
        n_draws = n_draws_for(cut_at)
        n_drawn = n_draws * self._n_rows
        is_too_large = n_drawn > N_DRAWN_MAX
        if isinstance(answer.formula, QuantileFormula):
            n_drawn = n_draws * len(answer.formula.cells)
            is_too_large |= n_drawn > N_CUMULATED_MAX
        self.domain.allowance.draws(n_drawn * len(answer.uses), formula)
        if is_too_large:
            raise TooLarge(
                f"{formula} in {self._n_rows} groups needs more random draws at confidence "
                f"{confidence:g} than are allowed.",
                hint="Ask for its sums and counts as separate columns, for fewer groups, or for a "
                "lower confidence.",
            )

    def rename(self, answer: int, name: str) -> None:
        """Give the aggregate of a linear answer the name that the client sees."""
        known = self._answers[answer]
        if known.formula is None:
            key = self._keys_of[known.uses[0]]
            self._aggregates[key] = replace(self._aggregates[key], name=name)

    def column(
        self,
        kind: ColumnKind,
        index: int,
        confidence: float | None = None,
        span: tuple[float, float] | None = None,
        belief: Belief | None = None,
    ) -> exp.Column:
        """A column of the noisy relation, added to it if it is new."""
        key = (kind, index, confidence, span, belief)
        if key not in self._columns:
            name = f"tacit_{kind.value}_{len(self._columns)}"
            column = OutputColumn(name, kind, index, confidence, span, belief)
            self._columns[key] = self._by_name[name] = column
        return exp.Column(this=exp.to_identifier(self._columns[key].name, quoted=True))

    @property
    def types(self) -> dict[str, SqlType]:
        """The types of the relation's columns, as far as they decide what outer SQL means."""
        return {name.lower(): self._type_of(one) for name, one in self._by_name.items()}

    def _type_of(self, column: OutputColumn) -> SqlType:
        if column.kind is ColumnKind.KEY:
            return self._key_types[column.index]
        return _TYPES.get(column.kind, ANSWER)

    def shows(self, column: exp.Column) -> OutputColumn:
        """The column of the relation that a reference names."""
        return self._by_name[column.name]

    def build(self, columns: tuple[OutputColumn, ...] | None = None) -> Part:
        """The part, with all its columns or those that are the result."""
        if max(len(self._columns), len(self._keys)) > N_COLUMNS_MAX:
            raise TooLarge(
                f"The SELECT needs more than {N_COLUMNS_MAX} answers, intervals and group keys.",
                hint="Split them over several statements.",
            )
        known = [self._aggregates[key] for key in self._keys_of]
        if self.question is not None or self.consistency is not None:
            refuse_bounds(known)
        for answer in self._answers:
            if sum(is_bounded(known[place]) for place in set(answer.uses)) > 1:
                refuse_bounds(known)
        self._decide_what_is_compared()
        cap = self.requested.epsilon_cap
        answers = tuple(map(self._unless_decided, self._answers))
        searches_widths = self._is_searched or any(
            one.formula is None
            and one.relative is not None
            and self._target_of(one.uses[0]).is_searched
            for one in answers
        )
        cut_at = surer(self.confidence) if searches_widths else self.confidence
        is_decided = any(one.decision is not None for one in self._aggregates.values())
        aggregates = (
            replace(one, target=replace(one.target, confidence=cut_at))
            for one in self._aggregates.values()
        )
        target = AccuracyTarget(  # checks the target even if no aggregate does
            half_width=self.targets.count_width,
            confidence=self.confidence,
            epsilon_cap=self.default.epsilon_cap if cap is None else cap,
        )
        return Part(
            name=self.name,
            table=self.rows.table,
            keys=self._keys,
            aggregates=tuple(aggregates),
            answers=answers,
            columns=tuple(self._columns.values()) if columns is None else columns,
            confidence=self.confidence,
            epsilon_cap=target.epsilon_cap,
            n_rows=self._n_rows,
            consistency=self.consistency,
            question=self.question,
            is_searched=searches_widths or is_decided,
            searches_widths=searches_widths,
            comparisons=tuple(self._compared),
            posterior=self.requested.posterior or PosteriorMethod.EXACT,
            summaries=tuple(self.summaries),
            is_default=not self.targets.names_width,
        )

    def _unless_decided(self, answer: Answer) -> Answer:
        """An answer; without a target of its own, if a decision says how well it is known."""
        if answer.formula is not None:
            return answer
        is_decided = self._aggregates[self._keys_of[answer.uses[0]]].decision is not None
        return replace(answer, relative=None, width_floor=0.0) if is_decided else answer


def _key_type(key: KeyArray) -> SqlType:
    """What a key is to the SQL around it: decimals are doubles that are rounded as decimals."""
    if key.digits is not None:
        return SqlType(Kind.NUMERIC, None, key.digits)
    return of_duckdb(key.sql_type)


def _joined_key(
    sql_type: str, place: int, sections: Sequence[tuple[Grouping, Sequence[int], int]]
) -> GroupKey:
    """A key's values in every section, one after the other; NULL where a section leaves it out."""
    values: list[LevelValue] = []
    is_summed_over: list[bool] = []
    for section, chosen, n_rows in sections:
        is_here = place in chosen
        values += section.keys[list(chosen).index(place)].values if is_here else [None] * n_rows
        is_summed_over += [not is_here] * n_rows
    return GroupKey(sql_type, tuple(values), tuple(is_summed_over))
