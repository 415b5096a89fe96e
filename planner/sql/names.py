"""Names: what a SELECT list calls its columns, and the functions about answers by their names.

DP_COST(n) and the like accompany an answer. DP_PROBABILITY(condition) is the probability that a
condition on noisy answers holds. A condition is made of comparisons of answers with constants or
with each other. It is read into claims, each that one expression of answers lies in a range, and
arithmetic on them. DP_BEST(n, prior => ..) is the best number to report for a count.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias

from sqlglot import exp

from cube.refusals import TooLarge, UnsupportedSql
from inference import CountPrior
from planner.belief import Belief, PriorSelect, loss_named
from planner.sql.exact_numbers import constant_value, exact_number
from planner.sql.messages import origin, position, shown, text_of, unsupported
from planner.sql.nodes import AS_WRITTEN, nodes_of
from planner.workload import ColumnKind

COMPANIONS: dict[str, ColumnKind] = {
    "DP_INTERVAL_LOW": ColumnKind.LOW,
    "DP_INTERVAL_HIGH": ColumnKind.HIGH,
    "DP_STDERR": ColumnKind.STDERR,
    "DP_COST": ColumnKind.COST,
    "DP_SOURCE": ColumnKind.SOURCE,
}
_OWN_NAMES: dict[type[exp.Expr], str] = {  # of functions that the parser calls otherwise
    exp.TimestampTrunc: "date_trunc",
    exp.GroupConcat: "string_agg",
    exp.ApproxDistinct: "approx_count_distinct",
}
_WITH_CONFIDENCE = ("DP_INTERVAL_LOW", "DP_INTERVAL_HIGH")


class CompanionColumn(exp.Expression):
    """A column that accompanies an answer: DP_COST(n) and the like.

    `this` is the function's name, `answer` the folded name of an answer, `confidence` a number.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "answer": True,
        "confidence": False,
        "text": True,
    }

    @property
    def answer(self) -> str:
        """The output name of the answer."""
        return str(self.args["answer"])

    @property
    def confidence(self) -> float | None:
        """Of the interval; the target's, if it is left open."""
        named = self.args.get("confidence")
        return None if named is None else float(named)


def is_companion(node: exp.Expr) -> bool:
    """Whether a node shows something about an answer of the same SELECT."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in COMPANIONS


def read_companion(node: exp.Expr) -> CompanionColumn:
    """A companion's name and arguments; the first argument is an alias, not a column.

    Raises
    ------
    UnsupportedSql
        If it is part of an expression, or names no answer.
    """
    name, arguments = node.name.upper(), node.expressions
    place = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
    if not isinstance(place, exp.Select) or node.find_ancestor(exp.Ordered):
        raise unsupported(node, "is part of an expression", "Select it as a column of its own.")
    n_arguments_max = 1 + (name in _WITH_CONFIDENCE)
    named = arguments[0] if arguments else None
    if (
        not 1 <= len(arguments) <= n_arguments_max
        or not isinstance(named, exp.Column)
        or named.table
    ):
        raise unsupported(
            node,
            "needs the name of one answer",
            "Give the answer a name with AS, and write that name here.",
        )
    confidence = None
    if len(arguments) > 1:
        value = constant_value(arguments[1])
        if value is None or not 0 < value < 1:
            raise unsupported(node, "needs a confidence between 0 and 1", "A usual value is 0.95.")
        confidence = float(value)
    return CompanionColumn(
        this=name, answer=output_name(named.this), confidence=confidence, text=node.sql()
    )


def output_name(identifier: exp.Identifier) -> str:
    """An identifier as a result column: folded to lower case, unless quoted."""
    return identifier.name if identifier.quoted else identifier.name.lower()


def column_name(item: exp.Expr) -> str:
    """What PostgreSQL would call a SELECT item.

    >>> from sqlglot import parse_one
    >>> column_name(parse_one("COUNT(*) FILTER (WHERE a)")), column_name(parse_one("1 + 1"))
    ('count', '?column?')
    """
    if isinstance(item, exp.Alias):
        return output_name(item.args["alias"])
    node = item.unnest()
    while isinstance(node, exp.Cast | exp.Filter | exp.WithinGroup | exp.Window):
        node = node.this.unnest()
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector | exp.Binary):
        return _function_name(node)
    return "?column?"


def name_inner_columns(tree: exp.Expr, name_of: Callable[[exp.Expr], str] = column_name) -> None:
    """Write out the names that PostgreSQL gives to columns of subqueries in FROM and WITH.

    Only those are written that the tree asks for, since another engine may call them otherwise.

    >>> from sqlglot import parse_one
    >>> tree = parse_one('SELECT "max" FROM (SELECT MAX(a), MIN(a) FROM t) AS x', read="postgres")
    >>> name_inner_columns(tree)
    >>> tree.sql("postgres")
    'SELECT "max" FROM (SELECT MAX(a) AS "max", MIN(a) FROM t) AS x'
    """
    inner_queries = nodes_of(tree, exp.Subquery, exp.CTE)
    asked = {one.name for one in nodes_of(tree, exp.Column)} if inner_queries else set()
    for inner in inner_queries:
        if isinstance(inner, exp.Subquery) and not isinstance(inner.parent, exp.From | exp.Join):
            continue
        select: exp.Expr = inner.this
        while isinstance(select, exp.SetOperation | exp.Subquery):
            select = select.this
        if inner.alias_column_names or not isinstance(select, exp.Select):
            continue
        for item in list(select.expressions):
            if not isinstance(item, exp.Alias | exp.Column | exp.Star) and name_of(item) in asked:
                named = exp.alias_(item.copy(), name_of(item), quoted=True, copy=False)
                item.replace(named)


def _function_name(node: exp.Func) -> str:
    if type(node) in _OWN_NAMES:
        return _OWN_NAMES[type(node)]
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()


BEST: Final = "DP_BEST"
BEST_HINT: Final = (
    "As in DP_BEST(n, loss => 'absolute', prior => ((90, 0.25), (100, 0.5), (110, 0.25)))."
)
_BEST_OPTIONS: Final = ("loss", "power", "prior")


class BestColumn(exp.Expression):
    """A column of best reports of a count: DP_BEST(n, prior => ..).

    `this` is the count, `belief` the prior and the loss, `text` what the analyst wrote.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "belief": True, "text": True}

    @property
    def belief(self) -> Belief:
        """The prior and the loss."""
        found: Belief = self.args["belief"]
        return found


def is_best(node: exp.Expr) -> bool:
    """Whether a node is a call of DP_BEST."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == BEST


def keep_priors(nodes: Iterable[exp.Expr]) -> bool:
    """Make the SELECT in each ``prior => (SELECT ..)`` a text; whether there was one.

    It is a statement of its own: nothing that is done to the one around it is done to it.
    """
    found = False
    for node in nodes:
        if not is_best(node):
            continue
        for option in node.expressions:
            asked = option.expression if isinstance(option, exp.Kwarg) else None
            while isinstance(asked, exp.Paren | exp.Subquery) and not isinstance(asked, exp.Query):
                asked = asked.this
            # With a parameter that has no value yet, it stays, so that the parameter is found.
            if isinstance(asked, exp.Query) and not asked.find(exp.Parameter, exp.Placeholder):
                option.set("expression", exp.Literal.string(text_of(asked.unnest())))
                found = True
    return found


def read_best(node: exp.Expr) -> BestColumn:
    """A call of DP_BEST whose columns are resolved.

    Raises
    ------
    UnsupportedSql
        If it is no column of its own, or its prior or its loss is not valid.
    """
    place = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
    if not isinstance(place, exp.Select) or node.find_ancestor(exp.Ordered):
        raise _refusal(
            node,
            "is part of an expression",
            "Select it as a column of its own, under a name; use the name in ORDER BY, or in a "
            "SELECT around this one.",
        )
    about = [one for one in node.expressions if not isinstance(one, exp.Kwarg)]
    options = {
        one.name.lower(): one.expression for one in node.expressions if isinstance(one, exp.Kwarg)
    }
    is_known = set(options) <= set(_BEST_OPTIONS)
    if len(about) != 1 or len(about) + len(options) < len(node.expressions) or not is_known:
        raise _refusal(node, "needs one count, and loss, power and prior once each", BEST_HINT)
    if "prior" not in options:
        raise _refusal(node, "has no prior", BEST_HINT)
    power = constant_value(options["power"]) if "power" in options else None
    loss = options.get("loss")
    if ("power" in options and power is None) or not (loss is None or loss.is_string):
        raise _refusal(node, "has a loss that is no text, or a power that is no number", BEST_HINT)
    try:
        belief = Belief(
            _prior(node, options["prior"]),
            loss_named(
                "absolute" if loss is None else loss.name, None if power is None else float(power)
            ),
        )
    except ValueError as error:
        raise _refusal(
            node, f"has a prior or a loss that is not valid: {error}", BEST_HINT
        ) from None
    text = str(node.meta.get(AS_WRITTEN) or shown(node))
    made = BestColumn(this=about[0], belief=belief, text=text)
    made.meta.update(origin(node))
    return made


def _number(node: exp.Expr) -> Fraction | None:
    """The number of a constant, or of a quoted one, as values of parameters may be sent."""
    is_quoted = isinstance(node, exp.Literal) and node.is_string
    return exact_number(node.name, node) if is_quoted else constant_value(node)


def _prior(call: exp.Expr, given: exp.Expr) -> CountPrior | PriorSelect:
    """The prior that is a list of pairs, or the text of a SELECT."""
    node = given.unnest()
    if isinstance(node, exp.Literal) and node.is_string:
        return PriorSelect(node.name)
    listed_pairs = node.expressions if isinstance(node, exp.Tuple) else []
    if isinstance(given, exp.Paren) and not any(isinstance(one, exp.Tuple) for one in listed_pairs):
        listed_pairs = [node]  # one pair, in parentheses
    points: list[tuple[int, float]] = []
    for pair in listed_pairs:
        values = [_number(one) for one in pair.expressions]
        if len(values) != 2 or values[0] is None or values[1] is None or values[0] % 1:  # noqa: PLR2004 - a count and its probability
            points = []
            break
        points.append((int(values[0]), float(values[1])))
    if not points:
        raise _refusal(
            call,
            "has a prior that is no list of counts with probabilities, and no SELECT",
            BEST_HINT,
        )
    points.sort()
    return CountPrior(tuple(one for one, _ in points), tuple(one for _, one in points))


PROBABILITY: Final = "DP_PROBABILITY"
N_RANGES_MAX: Final = 16  # of one expression
WAY_OUT: Final = (
    "As in DP_PROBABILITY(n > 100), DP_PROBABILITY(n BETWEEN 5 AND 9), DP_PROBABILITY(a > b)."
)

Ranges: TypeAlias = tuple[tuple[float, float], ...]  # disjoint, in order
_FLIPPED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}


class Claim(exp.Expression):
    """That an expression of noisy answers lies in a range.

    `this` is the expression, `low` and `high` are floats, perhaps infinite; `text` prints what the
    analyst wrote.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "low": True, "high": True, "text": True}

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the range."""
        return float(self.args["low"]), float(self.args["high"])

    @property
    def finite_ends(self) -> tuple[float, ...]:
        """The ends of the range that are numbers, in order."""
        return tuple(end for end in self.ends if math.isfinite(end))


def comparison_of(node: exp.Expr) -> Claim | None:
    """What a comparison with constants claims; None if a node is no such comparison.

    >>> from sqlglot import parse_one
    >>> comparison_of(parse_one("100 <= COUNT(*)")).ends
    (100.0, inf)
    """
    if isinstance(node, exp.Between):
        about, low, high = node.this, node.args["low"], node.args["high"]
    elif type(node) in _FLIPPED:
        about, low, high = node.this, node.expression, None
        is_above = type(node) in {exp.GT, exp.GTE}
        if constant_value(about) is not None:
            about, low, is_above = low, about, not is_above
        if not is_above:
            low, high = None, low
    else:
        return None
    ends = [None if end is None else constant_value(end) for end in (low, high)]
    if constant_value(about) is not None or any(
        end is not None and value is None for end, value in zip((low, high), ends, strict=True)
    ):
        return None
    first, last = (
        open_end if value is None else float(value)
        for value, open_end in zip(ends, (-math.inf, math.inf), strict=True)
    )
    return Claim(this=about.unnest(), low=first, high=last, text=shown(node))


def without_quotient(claim: Claim) -> list[Claim]:
    """For each end of a claim about a quotient by a count, that the quotient is above it.

    ``a / n > c`` is ``a - c n > 0``, since n is not negative; for n = 0 neither holds. So averages,
    too, are claimed about by sums and counts alone. Empty for a claim about anything else.

    >>> from sqlglot import parse_one
    >>> claim = comparison_of(parse_one("AVG(age) > 40"))
    >>> [one.this.sql() for one in without_quotient(claim)]
    ['(SUM(age)) - (40.0 * (COUNT(age)))']
    """
    about, condition = claim.this.unnest(), None
    if isinstance(about, exp.Filter):
        about, condition = about.this, about.expression
    if isinstance(about, exp.Avg) and not isinstance(about.this, exp.Distinct):
        top: exp.Expr = exp.Sum(this=about.this.copy())
        count: exp.Expr = exp.Count(this=about.this.copy(), big_int=True)
        if condition is not None:
            top, count = (exp.Filter(this=one, expression=condition.copy()) for one in (top, count))
    elif isinstance(about, exp.Div) and condition is None:
        top, count = _uncast(about.this), _uncast(about.expression)
        if isinstance(count, exp.Nullif) and constant_value(count.expression) == 0:
            count = _uncast(count.this)
        counted = count.this if isinstance(count, exp.Filter) else count
        if not isinstance(counted, exp.Count):
            return []
    else:
        return []
    found: list[Claim] = []
    for end in claim.finite_ends:
        scaled = exp.Mul(this=number_literal(end), expression=exp.paren(count))
        linear = exp.Sub(this=exp.paren(top), expression=exp.paren(scaled))
        found.append(Claim(this=linear, low=0.0, high=math.inf, text=claim.args["text"]))
    return found


def claimed_condition(call: exp.Expr) -> exp.Expr:
    """The condition of a call of DP_PROBABILITY; of an answer and two ends, that it is between.

    Raises
    ------
    UnsupportedSql
        If it has other arguments.
    """
    arguments = call.expressions
    if len(arguments) == 1:
        _check_condition(call, arguments[0])
        return exp.paren(arguments[0])
    if len(arguments) != 3:  # noqa: PLR2004 - an answer, and the ends of a range
        raise _refusal(call, "needs a condition, or an answer and two ends", WAY_OUT)
    about, ends = arguments[0], arguments[1:]
    kinds = (exp.GT, exp.LTE)
    sides = [
        kind(this=exp.paren(about), expression=end.copy())
        for kind, end in zip(kinds, ends, strict=True)
        if not isinstance(end.unnest(), exp.Null)
    ]
    return exp.paren(exp.and_(*sides, copy=False) if sides else exp.true())


def _check_condition(call: exp.Expr, node: exp.Expr) -> None:
    """Refuse what is not made of comparisons by NOT, AND and OR."""
    node = node.unnest()
    if isinstance(node, exp.Not | exp.And | exp.Or):
        for side in (node.this, node.args.get("expression")):
            if side is not None:
                _check_condition(call, side)
    elif not isinstance(node, exp.Between) and type(node) not in _FLIPPED:
        raise UnsupportedSql(
            "DP_PROBABILITY has a condition that is no comparison by <, >, or BETWEEN.",
            hint=WAY_OUT,
            position=position(call),
        )


def number_literal(number: float) -> exp.Expr:
    """A number as SQL, exactly.

    >>> number_literal(-0.5).sql()
    '-0.5'
    """
    literal = exp.Literal.number(repr(abs(number)))
    return exp.Neg(this=literal) if number < 0 else literal


def _uncast(node: exp.Expr) -> exp.Expr:
    """A node without casts around it, which do not change a count."""
    node = node.unnest()
    while isinstance(node, exp.Cast):
        node = node.this.unnest()
    return node


def is_probability(node: exp.Expr) -> bool:
    """Whether a node is a call of DP_PROBABILITY."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == PROBABILITY


def read_probability(node: exp.Expr) -> exp.Expr:
    """The arithmetic on claims that gives the probability.

    Parameters
    ----------
    node : Expr
        A call whose columns are resolved.

    Raises
    ------
    UnsupportedSql
        If the condition is not made of comparisons, ties several expressions by AND or OR, or has
        ends that are no numbers.
    TooLarge
        If it holds in too many ranges.
    """
    arguments = node.expressions
    if len(arguments) == 3:  # noqa: PLR2004 - an answer, and the ends of a range
        low, high = _end(node, arguments[1], -1), _end(node, arguments[2], 1)
        about, ranges = arguments[0], _one(low, high)
    elif len(arguments) == 1:
        about, ranges = _read(node, arguments[0])
    else:
        raise _refusal(node, "needs a condition, or an answer and two ends", WAY_OUT)
    return _sum(node, about, ranges)


def _sum(node: exp.Expr, about: exp.Expr, ranges: Ranges) -> exp.Expr:
    text = node.meta.get(AS_WRITTEN) or shown(node)
    claims: list[exp.Expr] = [
        Claim(this=about.copy() if place else about, low=low, high=high, text=text)
        for place, (low, high) in enumerate(ranges)
    ]
    if not claims:
        raise _refusal(node, "can never hold", "Compare with another range.")
    total = claims[0]
    for claim in claims[1:]:
        total = exp.Add(this=total, expression=claim)
    return total if len(claims) == 1 else exp.paren(total, copy=False)


def _read(call: exp.Expr, condition: exp.Expr) -> tuple[exp.Expr, Ranges]:
    """The expression that a condition is about, and the ranges in which it holds."""
    node = condition.unnest()
    if isinstance(node, exp.Not):
        about, ranges = _read(call, node.this)
        return about, _others(ranges)
    if isinstance(node, exp.And | exp.Or):
        about, first = _read(call, node.this)
        other, second = _read(call, node.expression)
        if about != other:
            raise _refusal(
                call,
                "ties several answers by AND or OR",
                "Ask for the probability of each comparison by itself, or compare the answers with "
                "each other.",
            )
        is_and = isinstance(node, exp.And)
        found = _both(first, second) if is_and else _others(_both(_others(first), _others(second)))
        if len(found) > N_RANGES_MAX:
            raise TooLarge(
                f"The condition of {PROBABILITY} holds in more than {N_RANGES_MAX} ranges.",
                hint="Ask for a part of them at a time, and add the probabilities up.",
                position=position(call),
            )
        return about, found
    if isinstance(node, exp.Between):
        low, high = constant_value(node.args["low"]), constant_value(node.args["high"])
        if low is not None and high is not None:
            return node.this.unnest(), _one(float(low), float(high))
    if type(node) in _FLIPPED:
        return _compared(call, node)
    raise _refusal(call, "has a condition that is no comparison by <, >, or BETWEEN", WAY_OUT)


def _compared(call: exp.Expr, node: exp.Expr) -> tuple[exp.Expr, Ranges]:
    first, second, kind = node.this.unnest(), node.expression.unnest(), type(node)
    if constant_value(first) is not None:
        first, second, kind = second, first, _FLIPPED[kind]
    threshold = constant_value(second)
    if constant_value(first) is not None:
        raise _refusal(call, "compares no noisy answer", WAY_OUT)
    if threshold is None:
        first = exp.Sub(this=exp.paren(first.copy()), expression=exp.paren(second.copy()))
        threshold = Fraction(0)
    end = float(threshold)
    is_above = kind in {exp.GT, exp.GTE}
    return first, _one(end, math.inf) if is_above else _one(-math.inf, end)


def _end(call: exp.Expr, node: exp.Expr, side: int) -> float:
    """An end of a range; without one, for NULL."""
    if isinstance(node.unnest(), exp.Null):
        return side * math.inf
    value = constant_value(node)
    if value is None:
        raise _refusal(call, "has an end that is no number and not NULL", WAY_OUT)
    return float(value)


def _one(low: float, high: float) -> Ranges:
    return ((low, high),) if low < high else ()


def _both(first: Ranges, second: Ranges) -> Ranges:
    """Where both hold: in a range of each."""
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in first for b in second)
    return tuple(pair for pair in pairs if pair[0] < pair[1])


def _others(ranges: Ranges) -> Ranges:
    """Where a condition does not hold: between its ranges, and beyond them."""
    ends = [-math.inf, *(end for one in ranges for end in one), math.inf]
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return tuple((low, high) for low, high in pairs if low < high)


def _refusal(call: exp.Expr, reason: str, hint: str) -> UnsupportedSql:
    """A refusal that quotes the call as it was written, with the names of answers."""
    text = call.meta.get(AS_WRITTEN) or shown(call)
    return UnsupportedSql(f"{text} {reason}.", hint=hint, position=position(call))


class WrittenCall:
    """A call as it was written: printed once a message quotes it.

    Parameters
    ----------
    node : Expr
        Nobody changes it.
    """

    def __init__(self, node: exp.Expr) -> None:
        self._node = node

    def __str__(self) -> str:
        return shown(self._node)

    def __deepcopy__(self, _: object) -> "WrittenCall":
        return self


def with_named(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A call of DP_PROBABILITY or DP_BEST whose names of answers are written out.

    Other nodes are as they are.
    """
    if not (is_probability(node) or is_best(node)):
        return node
    made = exp.Anonymous(
        this=node.this,
        expressions=[
            one.copy() if isinstance(one, exp.Kwarg) else change(one.copy())
            for one in node.expressions
        ],
    )
    made.meta.update({AS_WRITTEN: WrittenCall(node), **origin(node)})
    return made
