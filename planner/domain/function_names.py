"""What to say instead of a function that is not answered: the nearest thing that is.

First by a table of what other dialects call it, then by the likeness of the names.
"""

from collections.abc import Iterable

from sqlglot import exp

from planner.sql.messages import suggestion

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
