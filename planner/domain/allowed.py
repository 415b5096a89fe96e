"""Lists the scalar SQL that is evaluated, and what to use instead of other functions.

For a function that is not supported, a refusal names the nearest one that is: first by a table of
the names that other dialects use, then by the similarity of the names.

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

_REGULAR = "Use LIKE or STARTS_WITH to compare texts with patterns."
_WEEKDAY = "EXTRACT(ISODOW FROM x) is 1 on Mondays, EXTRACT(DOW FROM x) is 0 on Sundays."
_CHANCE = "An answer may not depend on chance other than its noise: leave it out."
_BUCKET = "Use TIME_BUCKET(INTERVAL '7 days', x)."
_HASH = "Only a column's values are public: use the column itself."

# By name in capital letters, in whatever dialect.
INSTEAD: dict[str, str] = {
    "ADD_MONTHS": "Use x + INTERVAL '1 month'.",
    "CHARINDEX": "Use STRPOS(text, part).",
    "CLOCK_TIMESTAMP": "Use NOW(): it gives one moment for the whole statement.",
    "CONCAT_WS": "Use a || ', ' || b.",
    "CURRENT_TIME": "Use NOW(), or CURRENT_DATE.",
    "DATETRUNC": "Use DATE_TRUNC('month', x).",
    "DATE_BIN": (
        "Use DATE_BIN(INTERVAL '15 minutes', x, TIMESTAMP '2000-01-01') and write its origin."
    ),
    "DATE_BUCKET": _BUCKET,
    "DATE_FORMAT": "Use TO_CHAR(x, 'YYYY-MM').",
    "DAY_OF_WEEK": _WEEKDAY,
    "DAYOFWEEK": _WEEKDAY,
    "DECODE": "Use DECODE(x, value, result, .., otherwise) or CASE: Tacit has no values of bytes.",
    "FORMAT": "Use TO_CHAR(x, 'YYYY-MM'), or CAST(x AS VARCHAR).",
    "FORMAT_DATE": "Use TO_CHAR(x, 'YYYY-MM').",
    "FORMAT_DATETIME": "Use TO_CHAR(x, 'YYYY-MM').",
    "GETDATE": "Use CURRENT_DATE, or NOW().",
    "GETUTCDATE": "Use CURRENT_DATE, or NOW().",
    "INITCAP": "Use UPPER(LEFT(x, 1)) || LOWER(SUBSTRING(x, 2)).",
    "INSTR": "Use STRPOS(text, part).",
    "ISNULL": "Use COALESCE(x, 0), or x IS NULL.",
    "LOCALTIME": "Use LOCALTIMESTAMP, or CURRENT_DATE.",
    "LOCATE": "Use STRPOS(text, part).",
    "MD5": _HASH,
    "MONTHS_BETWEEN": "Use DATE_DIFF('month', start, end).",
    "NVL2": "Use CASE WHEN x IS NULL THEN 0 ELSE 1 END.",
    "RAND": _CHANCE,
    "RANDOM": _CHANCE,
    "REGEXP_I_LIKE": _REGULAR,
    "REGEXP_LIKE": _REGULAR,
    "REGEXP_MATCH": _REGULAR,
    "REGEXP_MATCHES": _REGULAR,
    "SHA256": _HASH,
    "SPLIT_PART": "Use SUBSTRING(x, 1, STRPOS(x, ' ') - 1).",
    "STRFTIME": "Use TO_CHAR(x, 'YYYY-MM').",
    "STR_TO_DATE": "Use CAST('2024-01-31' AS DATE).",
    "SYSDATE": "Use CURRENT_DATE, or NOW().",
    "SYSDATETIME": "Use NOW().",
    "TIMEOFDAY": "Use NOW().",
    "TIMESTAMP_BUCKET": _BUCKET,
    "TIME_SLICE": _BUCKET,
    "TIME_TO_STR": "Use TO_CHAR(x, 'YYYY-MM').",
    "TODAY": "Use CURRENT_DATE.",
    "TO_DATE": "Use CAST('2024-01-31' AS DATE), or TO_DATE of two literals.",
    "TRANSACTION_TIMESTAMP": "Use NOW().",
    "TRY_CONVERT": "Use CAST(x AS BIGINT).",
    "UNIX_TO_TIME": "Compare with TIMESTAMP '2024-01-31 00:00:00'.",
    "UUID": _CHANCE,
    "WEEKDAY": _WEEKDAY,
}
_OF_DOCUMENTATION = "Use CASE, arithmetic, or a function that docs/sql.md lists."


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
    "collation": "Leave out the collation.",
    "action": "Cast to a type without an action.",
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
            "is not a supported type for a cast",
            "Use BOOLEAN, BIGINT, DECIMAL, DOUBLE, VARCHAR, DATE or TIMESTAMP.",
        )
    if isinstance(node, exp.Var) and node.name.upper() not in UNITS:
        raise unsupported(
            node, "is not a supported unit of time", "Use DAY, WEEK, MONTH, QUARTER or YEAR."
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
                node, "must replace a literal by a literal that is not longer", "Use CASE instead."
            )


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


_EXPLAINED: tuple[tuple[tuple[type[exp.Expr], ...], str, str], ...] = (
    (
        (exp.Query, exp.Subquery, exp.Exists, Held),
        "is a subquery in a place that needs a value of one record",
        "Run the subquery first and write its answer here, or join a public table.",
    ),
    (
        (exp.Window,),
        "is a window function over private rows",
        "Use GROUP BY first, and the window function over the answers.",
    ),
    (
        (exp.AggFunc,),
        "is an aggregate in a place that needs a value of one row",
        "Use aggregates only in the SELECT list.",
    ),
    (
        (exp.Parameter, exp.Placeholder),
        "is a parameter, which is not supported here",
        "Write the value into the SQL text.",
    ),
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
            "Use comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, CASE, CAST and arithmetic.",
        )
    return unsupported(
        node,
        "is not a supported function",
        instead_of(node, FUNCTIONS.values()),
    )
