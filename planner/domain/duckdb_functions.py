"""Functions that DuckDB has not, or has under another name, written as what it has.

    TO_CHAR(x, 'YYYY-MM')            the year in four digits || '-' || the month in two
    WIDTH_BUCKET(x, 0, 10, 2)        CASE WHEN x < 0 THEN 0 WHEN x < 5 THEN 1 WHEN x < 10 THEN 2 ..
    DATE_BIN('7 days', x, y)         time_bucket('7 days', x as a timestamp, y as a timestamp)
    AGE(a, b), DATE_DIFF('day', a, b), TIME_BUCKET('7 days', x)

Patterns and numbers of buckets are literals, so that the length of what is written is known.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Final

from sqlglot import exp

from planner.sql.date_functions import Age, DateBin, DateDifference, TimeBucket, ToChar
from planner.sql.exact_number import constant_value
from planner.sql.messages import unsupported

N_BUCKETS_MAX: Final = 1000
N_THRESHOLD_PLACES: Final = 18  # of a threshold that is no decimal: finer than any column's

Part = Callable[[exp.Expr], exp.Expr]

_NAME_WIDTH: Final = 9  # of a month's or a day's name, filled up with blanks without FM


def _extract(unit: str) -> Part:
    return lambda moment: exp.Extract(this=exp.var(unit), expression=moment)


def _plus(part: Part, number: int) -> Part:
    return lambda moment: exp.paren(
        exp.Add(this=part(moment), expression=exp.Literal.number(number)), copy=False
    )


def _week_of(unit: str) -> Part:
    """Weeks that begin with the first day of the year or the month."""

    def week(moment: exp.Expr) -> exp.Expr:
        days = exp.Cast(this=_plus(_extract(unit), 6)(moment), to=exp.DType.BIGINT.into_expr())
        return exp.IntDiv(this=days, expression=exp.Literal.number(7))

    return week


def _modulo(part: Part, divisor: int) -> Part:
    return lambda moment: exp.paren(
        exp.Mod(this=part(moment), expression=exp.Literal.number(divisor)), copy=False
    )


def _half_day(moment: exp.Expr) -> exp.Expr:
    """The hour on a clock of twelve: 12, 1, .., 11."""
    return _plus(_modulo(_plus(_extract("HOUR"), 11), 12), 1)(moment)


# By pattern, the number and its digits.
_NUMBERS: dict[str, tuple[Part, int]] = {
    "YYYY": (_extract("YEAR"), 4),
    "IYYY": (_extract("ISOYEAR"), 4),
    "YY": (_modulo(_extract("YEAR"), 100), 2),
    "MM": (_extract("MONTH"), 2),
    "DDD": (_extract("DOY"), 3),
    "DD": (_extract("DAY"), 2),
    "D": (_plus(_extract("DOW"), 1), 1),
    "ID": (_extract("ISODOW"), 1),
    "IW": (_extract("WEEK"), 2),
    "WW": (_week_of("DOY"), 2),
    "W": (_week_of("DAY"), 1),
    "Q": (_extract("QUARTER"), 1),
    "HH24": (_extract("HOUR"), 2),
    "HH12": (_half_day, 2),
    "HH": (_half_day, 2),
    "MI": (_extract("MINUTE"), 2),
    "SS": (_extract("SECOND"), 2),
}
# By pattern in lower case, DuckDB's for the name.
_NAMES = {"month": "%B", "mon": "%b", "day": "%A", "dy": "%a", "am": "%p", "pm": "%p"}
_CASES = [word for name in _NAMES for word in (name, name.upper(), name.capitalize())]
_MONTHS = re.compile(r"mon|quarter|year|decade|centur|millenn", re.IGNORECASE)
_WORDS = "|".join(sorted([*_NUMBERS, *_CASES], key=len, reverse=True))
_PIECE = re.compile(rf'"(?P<quoted>[^"]*)"|(?P<fill>FM)?(?P<word>{_WORDS})|(?P<other>[^A-Za-z"])')


def written_out(tree: exp.Expr) -> exp.Expr:
    """A copy of a tree, of which every node was checked, with every function as DuckDB has it."""
    around = exp.Paren(this=tree.copy())
    for node in reversed(list(around.this.walk(bfs=False))):  # inner nodes first
        written = _written(node)
        if written is not node:
            node.replace(written)
    found: exp.Expr = around.this
    return found


def _written(node: exp.Expr) -> exp.Expr:
    """A node as DuckDB has it; the node itself, if it is the same there."""
    if isinstance(node, Age):
        return exp.Anonymous(this="age", expressions=[node.this, node.expression])
    if isinstance(node, DateDifference):
        unit = exp.Literal.string(node.args["unit"].name.lower())
        return exp.Anonymous(this="date_diff", expressions=[unit, node.this, node.expression])
    if isinstance(node, TimeBucket | DateBin):
        return _as_bucket(node)
    if isinstance(node, ToChar):
        return _as_text(node)
    if isinstance(node, exp.WidthBucket):
        return _as_case(node)
    return node


def check_written(node: exp.Expr) -> None:
    """Raise UnsupportedSql if the pattern or the buckets of a function cannot be written out."""
    if isinstance(node, exp.WidthBucket):
        thresholds(node)
    if isinstance(node, DateBin) and _MONTHS.search(node.this.sql()):
        raise unsupported(
            node,
            "has months in its stride",
            "TIME_BUCKET(INTERVAL '2 months', x) has buckets of them.",
        )
    if not isinstance(node, ToChar):
        return
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise unsupported(node, "needs a literal pattern", "Write the pattern between quotes.")
    read = "".join(match[0] for match in _pieces(node))
    if read != pattern.name:
        raise unsupported(
            node,
            f"has {pattern.name[len(read) :]!a} in its pattern, which is not supported",
            "YYYY, MM, DD, Month, Mon, Day, Dy, Q, IW, IYYY, HH24, MI and SS are; put text between "
            'double quotes, as in YYYY"Q"Q.',
        )


def n_pieces(node: ToChar) -> int:
    """How many pieces the pattern of TO_CHAR has."""
    return len(_pieces(node))


def _pieces(node: ToChar) -> list[re.Match[str]]:
    """The pieces of a pattern, up to what cannot be read."""
    pieces, pattern, place = [], node.expression.name, 0
    while (match := _PIECE.match(pattern, place)) is not None:
        pieces.append(match)
        place = match.end()
    return pieces


def thresholds(node: exp.WidthBucket) -> list[exp.Expr]:
    """The numbers at which the buckets of WIDTH_BUCKET begin, and the last one ends."""
    given = node.args.get("threshold")
    if given is not None:
        values = [constant_value(one) for one in given.expressions]
        numbers = [value for value in values if value is not None]
        is_known = len(numbers) == len(values) and numbers
    else:
        numbers = _equal_buckets(node)
        is_known = numbers
    if not is_known or any(one >= other for one, other in pairwise(numbers)):
        raise unsupported(
            node,
            "needs buckets that are numbers in increasing order",
            f"WIDTH_BUCKET(x, 0, 100, 10) has 10 equal ones; {N_BUCKETS_MAX} are allowed.",
        )
    return [_number(one) for one in numbers]


def _equal_buckets(node: exp.WidthBucket) -> list[Fraction]:
    """The thresholds of ``WIDTH_BUCKET(x, low, high, n)``; none if they are no such numbers."""
    low, high, count = (
        constant_value(node.args[name]) for name in ("min_value", "max_value", "num_buckets")
    )
    if low is None or high is None or count is None or count.denominator != 1:
        return []
    if not 1 <= count <= N_BUCKETS_MAX:
        return []
    return [low + (high - low) * place / count for place in range(int(count) + 1)]


def _number(value: Fraction) -> exp.Expr:
    """A decimal literal; of a number that is no decimal, the next one above with enough places.

    No level of a column lies between: so less than the one is less than the other.
    """
    scaled = value * 10**N_THRESHOLD_PLACES
    whole = -(-scaled.numerator // scaled.denominator)
    digits = f"{abs(whole):0{N_THRESHOLD_PLACES + 1}d}"
    point = len(digits) - N_THRESHOLD_PLACES
    text = f"{digits[:point]}.{digits[point:]}".rstrip("0").removesuffix(".")
    literal = exp.Literal.number(text)
    return exp.Neg(this=literal) if whole < 0 else literal


def _as_bucket(node: TimeBucket | DateBin) -> exp.Expr:
    arguments = [node.this, node.expression, node.args.get("origin")]
    found = [one for one in arguments if one is not None]
    if isinstance(node, DateBin):
        found[1:] = [exp.cast(one, exp.DType.TIMESTAMP, copy=False) for one in found[1:]]
    return exp.Anonymous(this="time_bucket", expressions=found)


def _as_case(node: exp.WidthBucket) -> exp.Expr:
    limits = thresholds(node)
    case = exp.Case()
    for place, limit in enumerate(limits):
        below = exp.LT(this=exp.paren(node.this), expression=limit)
        case.append("ifs", exp.If(this=below, true=exp.Literal.number(place)))
    last = exp.GTE(this=exp.paren(node.this), expression=limits[-1].copy())  # and not where NULL
    case.append("ifs", exp.If(this=last, true=exp.Literal.number(len(limits))))
    return case


def _as_text(node: ToChar) -> exp.Expr:
    """Texts one after the other, with an empty one first: NULL if any piece is."""
    whole: exp.Expr = exp.Literal.string("")
    for match in _pieces(node):
        whole = exp.DPipe(this=whole, expression=_piece(match, node.this))
    return exp.paren(whole, copy=False)


def _piece(match: re.Match[str], moment: exp.Expr) -> exp.Expr:
    word = match["word"]
    if word is None:
        return exp.Literal.string(match["other"] or match["quoted"] or "")
    is_filled = match["fill"] is None
    if word in _NUMBERS:
        part, width = _NUMBERS[word]
        text = exp.cast(part(moment.copy()), exp.DType.VARCHAR, copy=False)
        arguments = [text, exp.Literal.number(width), exp.Literal.string("0")]
        return exp.Anonymous(this="lpad", expressions=arguments) if is_filled else text
    as_moment = exp.cast(moment.copy(), exp.DType.TIMESTAMP, copy=False)
    code = exp.Literal.string(_NAMES[word.lower()])
    name: exp.Expr = exp.Anonymous(this="strftime", expressions=[as_moment, code])
    if word.isupper() or word.islower():
        name = exp.Upper(this=name) if word.isupper() else exp.Lower(this=name)
    if is_filled and word.lower() in ("month", "day"):
        blank = exp.Literal.string(" ")
        name = exp.Anonymous(
            this="rpad", expressions=[name, exp.Literal.number(_NAME_WIDTH), blank]
        )
    return name
