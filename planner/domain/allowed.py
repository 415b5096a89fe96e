"""Which scalar SQL is evaluated, and what to write instead of the rest.

What to say instead of a function that is not answered: the nearest thing that is.

First by a table of other dialects' names, then by the likeness of names.

Listed are operators and functions that give one value for one combination of levels, the same one
every time, and whose result cannot be much longer than the text that asked for it. So there is no
clock, no randomness, no environment, no file, no query and no way to make the scratchpad build a
gigabyte. `check_scalar` is called by the scratchpad itself: nothing is evaluated without it.
"""

from collections.abc import Iterable

from sqlglot import exp

from cube.refusals import UnsupportedSql
from planner.meaning import CAST_TYPES, check_written, table
from planner.sql import Held, PublicLookup, every_node, suggestion, unsupported

_REGULAR = "LIKE and STARTS_WITH compare texts with patterns."
_WEEKDAY = "EXTRACT(ISODOW FROM x) is 1 on Mondays, EXTRACT(DOW FROM x) is 0 on Sundays."
_CHANCE = "An answer may not depend on chance beyond its noise: leave it out."
_BUCKET = "Say TIME_BUCKET(INTERVAL '7 days', x)."
_HASH = "Nothing of a value but itself is public: use the column."

# By name in capital letters, in whatever dialect.
INSTEAD: dict[str, str] = {
    "ADD_MONTHS": "Say x + INTERVAL '1 month'.",
    "CHARINDEX": "Say STRPOS(text, part).",
    "CLOCK_TIMESTAMP": "Say NOW(): one moment for the whole statement.",
    "CONCAT_WS": "Say a || ', ' || b.",
    "CURRENT_TIME": "Say NOW(), or CURRENT_DATE.",
    "DATETRUNC": "Say DATE_TRUNC('month', x).",
    "DATE_BIN": "Say DATE_BIN(INTERVAL '15 minutes', x, TIMESTAMP '2000-01-01'), with its origin.",
    "DATE_BUCKET": _BUCKET,
    "DATE_FORMAT": "Say TO_CHAR(x, 'YYYY-MM').",
    "DAY_OF_WEEK": _WEEKDAY,
    "DAYOFWEEK": _WEEKDAY,
    "DECODE": "Say DECODE(x, value, result, .., otherwise), or CASE: no value is of bytes.",
    "FORMAT": "Say TO_CHAR(x, 'YYYY-MM'), or CAST(x AS VARCHAR).",
    "FORMAT_DATE": "Say TO_CHAR(x, 'YYYY-MM').",
    "FORMAT_DATETIME": "Say TO_CHAR(x, 'YYYY-MM').",
    "GETDATE": "Say CURRENT_DATE, or NOW().",
    "GETUTCDATE": "Say CURRENT_DATE, or NOW().",
    "INITCAP": "Say UPPER(LEFT(x, 1)) || LOWER(SUBSTRING(x, 2)).",
    "INSTR": "Say STRPOS(text, part).",
    "ISNULL": "Say COALESCE(x, 0), or x IS NULL.",
    "LOCALTIME": "Say LOCALTIMESTAMP, or CURRENT_DATE.",
    "LOCATE": "Say STRPOS(text, part).",
    "MD5": _HASH,
    "MONTHS_BETWEEN": "Say DATE_DIFF('month', start, end).",
    "NVL2": "Say CASE WHEN x IS NULL THEN 0 ELSE 1 END.",
    "RAND": _CHANCE,
    "RANDOM": _CHANCE,
    "REGEXP_I_LIKE": _REGULAR,
    "REGEXP_LIKE": _REGULAR,
    "REGEXP_MATCH": _REGULAR,
    "REGEXP_MATCHES": _REGULAR,
    "SHA256": _HASH,
    "SPLIT_PART": "Say SUBSTRING(x, 1, STRPOS(x, ' ') - 1).",
    "STRFTIME": "Say TO_CHAR(x, 'YYYY-MM').",
    "STR_TO_DATE": "Say CAST('2024-01-31' AS DATE).",
    "SYSDATE": "Say CURRENT_DATE, or NOW().",
    "SYSDATETIME": "Say NOW().",
    "TIMEOFDAY": "Say NOW().",
    "TIMESTAMP_BUCKET": _BUCKET,
    "TIME_SLICE": _BUCKET,
    "TIME_TO_STR": "Say TO_CHAR(x, 'YYYY-MM').",
    "TODAY": "Say CURRENT_DATE.",
    "TO_DATE": "Say CAST('2024-01-31' AS DATE), or TO_DATE of two literals.",
    "TRANSACTION_TIMESTAMP": "Say NOW().",
    "TRY_CONVERT": "Say CAST(x AS BIGINT).",
    "UNIX_TO_TIME": "Compare with TIMESTAMP '2024-01-31 00:00:00'.",
    "UUID": _CHANCE,
    "WEEKDAY": _WEEKDAY,
}
_OF_DOCUMENTATION = "CASE, arithmetic, and the functions that docs/sql.md lists are evaluated."


def instead_of(function: exp.Func, answered: Iterable[str]) -> str:
    """A sentence that says what to write instead of a function.

    Parameters
    ----------
    function : Func
    answered : iterable of str
        The names of functions that may be meant.
    """
    is_unknown = isinstance(function, exp.Anonymous)
    name = (function.name if is_unknown else function.sql_name()).upper()
    return INSTEAD.get(name) or suggestion(name, answered) or _OF_DOCUMENTATION


OPERATORS: frozenset[type[exp.Expr]] = table.OPERATORS
LEAVES: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null),
        *(exp.DataType, exp.DataTypeParam, exp.Var, exp.IntervalSpan),
        *(exp.Kwarg, exp.Tuple),
    }
)
FUNCTIONS: dict[type[exp.Expr], str] = table.FUNCTIONS
ALLOWED = OPERATORS | LEAVES | frozenset(FUNCTIONS) | {PublicLookup}

TYPES = CAST_TYPES
UNITS = frozenset(
    {
        *("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "DECADE"),
        *("SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MONTHS", "QUARTERS", "YEARS"),
        *("DECADES", "CENTURIES", "MILLENNIA", "MILLISECOND", "MILLISECONDS", "MICROSECOND"),
        *("MICROSECONDS", "JULIAN", "MINS", "SECS"),
        *("CENTURY", "MILLENNIUM", "DOW", "DOY", "ISODOW", "ISOYEAR", "EPOCH"),
    }
)
# Nodes that are allowed inside others alone.
_PLACES: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.Tuple: exp.Overlaps,
    exp.Kwarg: exp.MakeInterval,
}
# Parts of allowed nodes that reach beyond one row, name an environment, or change with the dialect.
# By part, what works without it.
_LIST_VALUES = "List the values between parentheses, or join a public table."
REFUSED_PARTS = {
    "query": _LIST_VALUES,
    "unnest": _LIST_VALUES,
    "field": _LIST_VALUES,
    "format": "Cast without a format.",
    "collation": "Leave the collation out.",
    "action": "Cast to a type alone.",
}


def check_scalar(expression: exp.Expr) -> None:
    """Raise UnsupportedSql unless every node of `expression` is on the list."""
    for node in every_node(expression):
        if isinstance(node, exp.Array) and isinstance(node.parent, exp.WidthBucket):
            continue  # its thresholds
        place = _PLACES.get(type(node))
        is_misplaced = place is not None and not isinstance(node.parent, place)
        if type(node) not in ALLOWED or is_misplaced:
            raise _refusal(node)
        for part in REFUSED_PARTS.keys() & node.args:
            if node.args[part]:
                raise unsupported(node, "is not supported in this form", REFUSED_PARTS[part])
        check_details(node)


def check_details(node: exp.Expr) -> None:
    """Raise UnsupportedSql if a node that may be on the list is used as it must not be."""
    is_type = isinstance(node, exp.DataType) and not isinstance(node, exp.IntervalSpan)
    if is_type and (node.this not in TYPES or node.args.get("nested")):
        raise unsupported(
            node,
            "is not a type that public levels are cast to",
            "BOOLEAN, BIGINT, DECIMAL, DOUBLE, VARCHAR, DATE and TIMESTAMP are.",
        )
    if isinstance(node, exp.Var) and node.name.upper() not in UNITS:
        raise unsupported(
            node, "is not a supported unit of time", "DAY, WEEK, MONTH, QUARTER and YEAR are."
        )
    if isinstance(node, exp.Like | exp.ILike) and not _is_text(node.expression):
        raise unsupported(node, "needs a literal pattern", "Write the pattern between quotes.")
    if isinstance(node, exp.Escape) and not (
        isinstance(node.this, exp.Like | exp.ILike | exp.SimilarTo) and _is_text(node.expression)
    ):
        raise unsupported(
            node, "needs a literal escape character", "Write one character between quotes."
        )
    check_written(node)
    if isinstance(node, exp.Replace):
        found, put = node.args["expression"], node.args.get("replacement") or exp.null()
        # Nested replacements that grow would multiply the length at every level.
        if not (_is_text(found) and _is_text(put) and len(put.name) <= len(found.name)):
            raise unsupported(
                node, "must replace a literal by a literal that is no longer", "Use CASE instead."
            )


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


_EXPLAINED: tuple[tuple[tuple[type[exp.Expr], ...], str, str], ...] = (
    (
        (exp.Query, exp.Subquery, exp.Exists, Held),
        "is a subquery where a value of one record is needed",
        "Ask it first, and write its answer here; or join a public table.",
    ),
    (
        (exp.Window,),
        "is a window over private rows",
        "GROUP BY first: windows order answers.",
    ),
    (
        (exp.AggFunc,),
        "is an aggregate where a value of one row is needed",
        "Aggregate in the SELECT list only.",
    ),
    ((exp.Parameter, exp.Placeholder), "is a parameter", "Write the value into the SQL text."),
    ((exp.Star,), "is not a value", "Name a column."),
)


def _refusal(node: exp.Expr) -> UnsupportedSql:
    for types, why, hint in _EXPLAINED:
        if isinstance(node, types):
            return unsupported(node, why, hint)
    if not isinstance(node, exp.Func):
        return unsupported(
            node,
            "is not supported in a value or condition",
            "Comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, CASE, CAST and arithmetic are.",
        )
    return unsupported(
        node,
        "is not among the deterministic functions that are evaluated",
        instead_of(node, FUNCTIONS.values()),
    )
