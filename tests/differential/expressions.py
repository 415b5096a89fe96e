"""Expressions at random, typed as PostgreSQL types them, and how one is made smaller.

An expression is a template with places for others: ``("{} + {}", a, b)``. Where the template has no
parentheses of its own, what is put in may have lower precedence, so that readings of precedence are
compared, too.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

INT, NUM, DBL, TXT, BOOL = "int", "num", "dbl", "txt", "bool"
DAY, TIME, MOMENT, ZONED, SPAN = "day", "time", "ts", "tstz", "span"
TYPES: Final = (INT, NUM, DBL, TXT, BOOL, DAY, TIME, MOMENT, ZONED, SPAN)
# What only some places have: an aggregate of rows, two keys of a group, and a count in HAVING.
SUMMED, PAIR, COUNTED = "summed", "pair", "counted"
DEPTH_MAX: Final = 3


@dataclass(frozen=True)
class Expression:
    """A template, what is put into its places, and the type it is generated as."""

    kind: str
    template: str
    parts: tuple["Expression", ...] = ()

    @cached_property
    def sql(self) -> str:
        return self.template.format(*(part.sql for part in self.parts))

    @property
    def size(self) -> int:
        return 1 + sum(part.size for part in self.parts)

    def smaller(self) -> Iterator["Expression"]:
        """Expressions with less in them: parts alone, and with one part smaller."""
        yield from self.parts
        for place, part in enumerate(self.parts):
            plain = [
                one for one in (*part.parts, *LITERAL_NODES[part.kind]) if one.kind == part.kind
            ]
            for one in (*plain, *part.smaller()):
                if one.kind == part.kind and one.size < part.size:
                    yield Expression(
                        self.kind,
                        self.template,
                        (*self.parts[:place], one, *self.parts[place + 1 :]),
                    )


LITERALS: Final[Mapping[str, tuple[str, ...]]] = {
    INT: (
        *("0", "1", "2", "3", "7", "-1", "-5", "10", "NULL::int", "(-7)"),
        *("2147483647", "(-2147483648)", "3000000000"),
    ),
    NUM: (
        *("0.5", "1.5", "2.5", "-2.5", "0.1", "2.00", "-0.05", "NULL::numeric", "1.005", "100.25"),
        *("(-0.5)", "(-1.5)", "2.675", "1e-10", "-0.000000001", "123456789012345678.5"),
        *("99999999999.99", "12345678901234567890", "1e15", "0.0"),
    ),
    DBL: (
        *("0.5::float8", "2.5::float8", "(-1.5)::float8", "1e3::float8", "0.1::float8"),
        *("3.5::float8", "(-0.5)::float8", "1e15::float8", "1e-7::float8", "NULL::float8"),
        *("123456789.123::float8", "(-2.5)::float8", "1e20::float8"),
    ),
    TXT: (
        *(
            "'a'",
            "''",
            "'Oslo'",
            "'straße'",
            "'ÅÉ'",
            "'e\u0301'",
            "'😀x'",
            "' b '",
            "'a_b'",
            "'10%'",
        ),
        *(
            "NULL::text",
            "'12'",
            "'a,b'",
            "'é'",
            "'👩\u200d👧'",
            "'\U0001d4b3a'",
            "'ﬁ'",
            "'  '",
            "'A'",
        ),
        *("E'\\ta\\n'", "'ǆ'", "'-7'", "'a\\'", "'a#b'"),
    ),
    BOOL: ("TRUE", "FALSE", "NULL::boolean"),
    DAY: ("DATE '2024-02-29'", "DATE '2023-12-31'", "DATE '2024-01-01'", "NULL::date"),
    MOMENT: (
        "TIMESTAMP '2024-03-31 02:30:00'",
        "TIMESTAMP '1999-12-31 23:59:59'",
        "TIMESTAMP '2024-02-29 12:00:00.5'",
    ),
    TIME: ("TIME '12:30:00'", "TIME '00:00'", "TIME '23:59:59.5'", "NULL::time", "TIME '1:02 PM'"),
    ZONED: (
        *("TIMESTAMPTZ '2024-03-31 02:30:00+02'", "TIMESTAMPTZ '2024-10-27 01:30:00+00'"),
        *("TIMESTAMPTZ '2024-01-01 00:00:00'", "NULL::timestamptz"),
        *("TIMESTAMPTZ '1999-12-31 23:59:59.25-05:30'",),
    ),
    SUMMED: ("COUNT(*)",),
    PAIR: ("1 AS e0, 2 AS e1",),
    COUNTED: ("(c + 0.125)",),  # which is as large as nothing else, whatever a count's last digits
    SPAN: (
        "NULL::interval",
        *(
            "INTERVAL '1 month'",
            "INTERVAL '1 day'",
            "INTERVAL '-36 hours'",
            "INTERVAL '90 minutes'",
        ),
        *(
            "INTERVAL '1 day 12:00:00'",
            "INTERVAL '3 months ago'",
            "INTERVAL '1-2'",
            "INTERVAL 'P1M'",
        ),
        *("INTERVAL '- 1 month'", "INTERVAL '1.5 days'", "INTERVAL '1' DAY", "INTERVAL '2 weeks'"),
    ),
}
LITERAL_NODES: Final = {
    kind: tuple(Expression(kind, text.replace("{", "{{").replace("}", "}}")) for text in texts)
    for kind, texts in LITERALS.items()
}

_UNITS: Final = ("year", "quarter", "month", "week", "day", "hour")
_PARTS: Final = (
    *(
        "YEAR",
        "MONTH",
        "DAY",
        "DOW",
        "ISODOW",
        "DOY",
        "WEEK",
        "QUARTER",
        "ISOYEAR",
        "CENTURY",
        "DECADE",
    ),
    "EPOCH",
)
_TIME_PARTS: Final = ("HOUR", "MINUTE", "SECOND")
_PATTERNS: Final = (
    *(
        "'%a%'",
        "'O_lo'",
        "'%'",
        "''",
        r"'a\_b'",
        "'_'",
        "'%\u0301'",
        r"'10\%'",
        "'ß%'",
        r"'Os\lo'",
        "'%Å%'",
    ),
    "'straße'",
)
_DAY_FORMATS: Final = (
    *("'YYYY-MM'", "'YYYY-\"Q\"Q'", "'Mon DD'", "'FMMonth'", "'Day'", "'IYYY-IW'", "'D ID DDD'"),
    *("'YY/MM/DD'", "'dy'", "'MON'"),
)

_ESCAPED: Final = (
    *("'a#_%' ESCAPE '#'", "'##' ESCAPE '#'", "'%#' ESCAPE '#'", "'a_b' ESCAPE ''"),
    *("'a#b' ESCAPE '#'", r"'a\_b' ESCAPE '\'", r"'a\%' ESCAPE '#'", "'%😀_%' ESCAPE '😀'"),
    *("'10#%' ESCAPE '#'", "'%%' ESCAPE '%'", "'__' ESCAPE '_'", "'a##b' ESCAPE '#'"),
)
_ZONES: Final = ("Europe/Oslo", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC")
_ANY: Final = (INT, NUM, DBL, TXT, BOOL, DAY, TIME, MOMENT, ZONED, SPAN)

# What makes a type out of others. ``{}`` are places, ``[[..]]`` a choice.
_SHAPES: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    # arithmetic
    *((INT, f"{{}} {op} {{}}", (INT, INT)) for op in ("+", "-", "*", "/", "%")),
    *((INT, f"({{}} {op} {{}})", (INT, INT)) for op in ("+", "-", "*", "/", "%")),
    *(
        (NUM, f"({{}} {op} {{}})", (NUM, kind))
        for op in ("+", "-", "*", "/", "%")
        for kind in (NUM, INT)
    ),
    *((NUM, f"({{}} {op} {{}})", (INT, NUM)) for op in ("+", "-", "*", "/")),
    *(
        (DBL, f"({{}} {op} {{}})", (DBL, kind))
        for op in ("+", "-", "*", "/")
        for kind in (DBL, INT, NUM)
    ),
    *((kind, "- {}", (kind,)) for kind in (INT, NUM, DBL)),
    (DBL, "{} ^ {}", (INT, INT)),
    (DBL, "({} ^ {})", (DBL, INT)),
    (DBL, "POWER({}, {})", (DBL, INT)),
    (INT, "({} & {})", (INT, INT)),
    (INT, "({} | {})", (INT, INT)),
    (INT, "({} << 2)", (INT,)),
    # rounding and functions of numbers
    *((kind, f"{name}({{}})", (kind,)) for name in ("ABS", "SIGN") for kind in (NUM, DBL)),
    (INT, "ABS({})", (INT,)),
    *(
        (kind, f"{name}({{}})", (kind,))
        for name in ("ROUND", "CEIL", "FLOOR", "TRUNC")
        for kind in (NUM, DBL)
    ),
    *(
        (NUM, f"{name}({{}}, {digits})", (NUM,))
        for name in ("ROUND", "TRUNC")
        for digits in (1, 2, 0, -1)
    ),
    (INT, "MOD({}, {})", (INT, INT)),
    (NUM, "MOD({}, {})", (NUM, NUM)),
    (DBL, "SQRT({})", (DBL,)),
    (DBL, "LN({})", (DBL,)),
    (DBL, "EXP({})", (DBL,)),
    (DBL, "LOG({})", (DBL,)),
    (NUM, "DIV({}, {})", (NUM, NUM)),
    (INT, "WIDTH_BUCKET({}, 0, 10, 4)", (NUM,)),
    # casts
    (INT, "({})::int", (NUM,)),
    (INT, "({})::int", (DBL,)),
    (INT, "CAST({} AS bigint)", (NUM,)),
    (INT, "({})::int", (BOOL,)),
    (INT, "CAST({} AS integer)", (TXT,)),
    (NUM, "({})::numeric", (INT,)),
    (NUM, "({})::numeric(6,1)", (NUM,)),
    (NUM, "({})::numeric(8,2)", (DBL,)),
    (DBL, "({})::float8", (INT,)),
    (DBL, "({})::float8", (NUM,)),
    (DBL, "({})::float8", (TXT,)),
    *((TXT, "({})::text", (kind,)) for kind in (INT, NUM, DBL, BOOL, DAY, MOMENT)),
    (TXT, "({})::varchar(3)", (TXT,)),
    (DAY, "({})::date", (MOMENT,)),
    (DAY, "({})::date", (TXT,)),
    (MOMENT, "({})::timestamp", (DAY,)),
    (BOOL, "({})::boolean", (INT,)),
    (BOOL, "({})::boolean", (TXT,)),
    # texts
    *(
        (TXT, f"{name}({{}})", (TXT,))
        for name in ("UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM", "REVERSE", "INITCAP")
    ),
    (INT, "LENGTH({})", (TXT,)),
    (INT, "CHAR_LENGTH({})", (TXT,)),
    (INT, "STRPOS({}, {})", (TXT, TXT)),
    (INT, "POSITION('a' IN {})", (TXT,)),
    (TXT, "{} || {}", (TXT, TXT)),
    (TXT, "{} || {}", (TXT, INT)),
    (TXT, "CONCAT({}, {})", (TXT, INT)),
    (TXT, "CONCAT_WS('-', {}, {})", (TXT, TXT)),
    *((TXT, f"LEFT({{}}, {n})", (TXT,)) for n in (2, 0, -1)),
    *((TXT, f"RIGHT({{}}, {n})", (TXT,)) for n in (2, 0, -1)),
    *((TXT, f"SUBSTRING({{}}, {a}, {n})", (TXT,)) for a, n in ((1, 2), (0, 2), (-1, 3), (2, 0))),
    (TXT, "SUBSTRING({} FROM 2)", (TXT,)),
    (TXT, "SUBSTR({}, {})", (TXT, INT)),
    (TXT, "SUBSTRING({} FROM {} FOR 2)", (TXT, INT)),
    (TXT, "REPLACE({}, 'a', '')", (TXT,)),
    (TXT, "REPLACE({}, 'ss', 'b')", (TXT,)),
    (TXT, "SPLIT_PART({}, ',', 2)", (TXT,)),
    (TXT, "LPAD({}, 4, '0')", (TXT,)),
    (TXT, "RPAD({}, 4)", (TXT,)),
    (TXT, "TRIM(BOTH 'a' FROM {})", (TXT,)),
    (BOOL, "STARTS_WITH({}, 'a')", (TXT,)),
    *(
        (BOOL, f"{{}} {word} {p}", (TXT,))
        for word in ("LIKE", "ILIKE", "NOT LIKE")
        for p in _PATTERNS
    ),
    (BOOL, "{} LIKE 'a!_b' ESCAPE '!'", (TXT,)),
    *(
        (BOOL, f"{{}} {word} {p}", (TXT,))
        for word in ("LIKE", "ILIKE", "NOT LIKE", "SIMILAR TO")
        for p in _ESCAPED
    ),
    (TXT, "TRANSLATE({}, 'aé😀', 'b')", (TXT,)),
    (TXT, "OVERLAY({} PLACING 'xy' FROM 2 FOR 1)", (TXT,)),
    (TXT, "OVERLAY({} PLACING {} FROM 1)", (TXT, TXT)),
    (TXT, "BTRIM({}, ' a')", (TXT,)),
    (TXT, "LTRIM({}, {})", (TXT, TXT)),
    (TXT, "REPEAT({}, 2)", (TXT,)),
    (TXT, "LEFT({}, {})", (TXT, INT)),
    (TXT, "RIGHT({}, {})", (TXT, INT)),
    (TXT, "LPAD({}, 3, 'é😀')", (TXT,)),
    (TXT, "RPAD({}, 5, {})", (TXT, TXT)),
    (TXT, "SPLIT_PART({}, {}, -1)", (TXT, TXT)),
    (TXT, "REPLACE({}, {}, {})", (TXT, TXT, TXT)),
    (TXT, "REGEXP_REPLACE({}, '[a-z]', '<\\&>', 'g')", (TXT,)),
    (TXT, "CHR({})", (INT,)),
    (INT, "ASCII({})", (TXT,)),
    (INT, "OCTET_LENGTH({})", (TXT,)),
    (INT, "POSITION({} IN {})", (TXT, TXT)),
    (BOOL, "STARTS_WITH({}, {})", (TXT, TXT)),
    (BOOL, "{} SIMILAR TO '(a|O)%'", (TXT,)),
    (BOOL, "{} ~* '^é'", (TXT,)),
    (BOOL, "{} ~ '^[a-z]'", (TXT,)),
    # any
    *(
        (kind, template, (kind, kind))
        for kind in _ANY
        for template in ("COALESCE({}, {})", "NULLIF({}, {})", "GREATEST({}, {})", "LEAST({}, {})")
    ),
    *(
        (kind, template, (kind,))
        for kind in _ANY
        for template in (
            *("COALESCE(NULL, {})", "NULLIF({}, NULL)", "GREATEST({}, NULL)", "LEAST(NULL, {})"),
        )
    ),
    *((kind, "CASE WHEN {} THEN {} ELSE {} END", (BOOL, kind, kind)) for kind in _ANY),
    *((kind, "CASE WHEN {} THEN NULL ELSE {} END", (BOOL, kind)) for kind in _ANY),
    *((kind, "CASE WHEN {} THEN {} END", (BOOL, kind)) for kind in _ANY),
    *(
        (wide, template, (BOOL, *kinds))
        for template in ("CASE WHEN {} THEN {} ELSE {} END",)
        for wide, *kinds in (
            *((DBL, INT, DBL), (DBL, DBL, NUM), (MOMENT, DAY, MOMENT), (ZONED, MOMENT, ZONED)),
            *((ZONED, ZONED, DAY), (NUM, NUM, INT)),
        )
    ),
    (INT, "CASE WHEN {} THEN '5' ELSE {} END", (BOOL, INT)),
    (DAY, "CASE WHEN {} THEN '2024-02-29' ELSE {} END", (BOOL, DAY)),
    (NUM, "GREATEST({}, {}, {})", (INT, NUM, INT)),
    (DBL, "LEAST({}, {})", (INT, DBL)),
    (NUM, "NULLIF({}, {})", (NUM, INT)),
    (INT, "NULLIF({}, {})", (INT, NUM)),
    *((kind, "CASE {} WHEN {} THEN {} END", (INT, INT, kind)) for kind in (INT, TXT)),
    (NUM, "CASE WHEN {} THEN {} ELSE {} END", (BOOL, INT, NUM)),
    (NUM, "COALESCE({}, {})", (INT, NUM)),
    (DBL, "COALESCE({}, {})", (NUM, DBL)),
    # comparisons and logic
    *(
        (BOOL, f"{{}} {op} {{}}", (kind, kind))
        for op in ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
        for kind in _ANY
    ),
    *((BOOL, f"{{}} {op} {{}}", (INT, NUM)) for op in ("=", "<", ">=")),
    *((BOOL, f"{{}} {op} {{}}", (MOMENT, ZONED)) for op in ("=", "<", ">=")),
    *((BOOL, f"{{}} {op} {{}}", (ZONED, DAY)) for op in ("=", "<", ">=")),
    *((BOOL, f"{{}} {op} {{}}", (DAY, MOMENT)) for op in ("=", "<", ">=")),
    *((BOOL, f"{{}} {op} {{}}", (NUM, DBL)) for op in ("=", "<", ">=")),
    (BOOL, "{} AND {}", (BOOL, BOOL)),
    (BOOL, "{} OR {}", (BOOL, BOOL)),
    (BOOL, "({} OR {})", (BOOL, BOOL)),
    (BOOL, "NOT {}", (BOOL,)),
    (BOOL, "(NOT {})", (BOOL,)),
    *(
        (BOOL, f"({{}}) {test}", (BOOL,))
        for test in ("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NULL")
    ),
    *((BOOL, "({}) IS NOT NULL", (kind,)) for kind in (INT, TXT, DAY)),
    *(
        (BOOL, f"{{}} {word} {{}} AND {{}}", (kind, kind, kind))
        for word in ("BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC")
        for kind in (INT, NUM, TXT, DAY)
    ),
    *(
        (BOOL, f"{{}} {word} ({{}}, {{}})", (kind, kind, kind))
        for word in ("IN", "NOT IN")
        for kind in (INT, NUM, TXT, DAY)
    ),
    (BOOL, "{} = ANY(ARRAY[{}, {}])", (INT, INT, INT)),
    (BOOL, "{} <> ALL(ARRAY[{}, {}])", (TXT, TXT, TXT)),
    (BOOL, "({}, {}) = ({}, {})", (INT, TXT, INT, TXT)),
    (BOOL, "({}, {}) IN ((1, 'a'), (2, 'b'))", (INT, TXT)),
    (BOOL, "({}, {}) < ({}, {})", (INT, INT, INT, INT)),
    (BOOL, "({}, {}) IS NULL", (INT, TXT)),
    (BOOL, "({}, {}) IS NOT NULL", (INT, TXT)),
    (BOOL, "NOT ({}, {}) IS NULL", (INT, TXT)),
    (BOOL, "({}, {}) IS DISTINCT FROM ({}, {})", (INT, TXT, INT, TXT)),
    (BOOL, "({}, {}) BETWEEN ({}, {}) AND (2, 2)", (INT, INT, INT, INT)),
    (BOOL, "({}, {}) NOT IN ((1, 'a'), ({}, NULL))", (INT, TXT, INT)),
    (BOOL, "{} NOT IN (1, 2) = {}", (INT, BOOL)),
    # texts that take the other side's type
    (INT, "('5' + {})", (INT,)),
    (NUM, "({} * '1.5')", (NUM,)),
    (DBL, "({} - '2')", (DBL,)),
    (DAY, "({} + '3')", (DAY,)),
    *((BOOL, f"{{}} = '{text}'", (INT,)) for text in ("7", " 2 ", "7.0", "abc", "-1", "")),
    *((BOOL, f"{{}} < '{text}'", (NUM,)) for text in ("1.5", "2", "1e1", "x")),
    *((BOOL, f"{{}} >= '{text}'", (DAY,)) for text in ("2024-02-29", "2024-2-1", "20240301", "x")),
    *((BOOL, f"{{}} = '{text}'", (BOOL,)) for text in ("t", "on", "no", "1", "maybe")),
    *((BOOL, "{} = 1", (kind,)) for kind in (TXT, BOOL)),
    # days, moments and spans
    *((NUM, f"EXTRACT({part} FROM {{}})", (DAY,)) for part in _PARTS),
    *((NUM, f"EXTRACT({part} FROM {{}})", (MOMENT,)) for part in (*_PARTS[:-1], *_TIME_PARTS[:2])),
    (NUM, "EXTRACT(EPOCH FROM {})", (MOMENT,)),
    (NUM, "EXTRACT(SECOND FROM {})", (MOMENT,)),
    *((DBL, f"DATE_PART('{part.lower()}', {{}})", (DAY,)) for part in _PARTS[:4]),
    *((MOMENT, f"DATE_TRUNC('{unit}', {{}})", (MOMENT,)) for unit in _UNITS),
    *((DAY, f"(DATE_TRUNC('{unit}', {{}}))::date", (DAY,)) for unit in _UNITS),
    (DAY, "({} + {})", (DAY, INT)),
    (DAY, "({} - {})", (DAY, INT)),
    (INT, "({} - {})", (DAY, DAY)),
    (MOMENT, "({} + {})", (DAY, SPAN)),
    (MOMENT, "({} - {})", (DAY, SPAN)),
    (MOMENT, "({} + {})", (MOMENT, SPAN)),
    (MOMENT, "({} - {})", (MOMENT, SPAN)),
    (SPAN, "({} - {})", (MOMENT, MOMENT)),
    (SPAN, "AGE({}, {})", (MOMENT, MOMENT)),
    (SPAN, "({} * {})", (SPAN, INT)),
    (SPAN, "(-{})", (SPAN,)),
    (SPAN, "({} + {})", (SPAN, SPAN)),
    (BOOL, "{} < {}", (SPAN, SPAN)),
    *((NUM, f"EXTRACT({part} FROM {{}})", (SPAN,)) for part in ("DAY", "HOUR", "MONTH", "EPOCH")),
    # times and instants
    *((TIME, "({})::time", (kind,)) for kind in (MOMENT, ZONED, TXT, SPAN)),
    (SPAN, "({})::interval", (TIME,)),
    (SPAN, "({})::interval", (TXT,)),
    (TIME, "({} + {})", (TIME, SPAN)),
    (TIME, "({} - {})", (TIME, SPAN)),
    (SPAN, "({} - {})", (TIME, TIME)),
    (MOMENT, "({} + {})", (DAY, TIME)),
    *(
        (NUM, f"EXTRACT({part} FROM {{}})", (TIME,))
        for part in ("HOUR", "MINUTE", "SECOND", "EPOCH", "MICROSECONDS")
    ),
    *((BOOL, f"{{}} >= '{text}'", (TIME,)) for text in ("12:30", "1 PM", "24:00", "x")),
    *((TXT, "({})::text", (kind,)) for kind in (TIME, ZONED, SPAN)),
    *((MOMENT, f"({{}} AT TIME ZONE '{zone}')", (ZONED,)) for zone in _ZONES),
    *((ZONED, f"({{}} AT TIME ZONE '{zone}')", (MOMENT,)) for zone in _ZONES),
    *((MOMENT, f"({{}} AT TIME ZONE '{zone}')", (DAY,)) for zone in _ZONES[:2]),
    *((ZONED, "({})::timestamptz", (kind,)) for kind in (MOMENT, DAY)),
    (MOMENT, "({})::timestamp", (ZONED,)),
    (DAY, "({})::date", (ZONED,)),
    *((ZONED, f"DATE_TRUNC('{unit}', {{}})", (ZONED,)) for unit in _UNITS),
    *((NUM, f"EXTRACT({part} FROM {{}})", (ZONED,)) for part in (*_PARTS, *_TIME_PARTS)),
    (ZONED, "({} + {})", (ZONED, SPAN)),
    (ZONED, "({} - {})", (ZONED, SPAN)),
    (SPAN, "({} - {})", (ZONED, ZONED)),
    (SPAN, "({} - {})", (MOMENT, ZONED)),
    (SPAN, "AGE({}, {})", (ZONED, ZONED)),
    *((BOOL, f"{{}} < '{text}'", (ZONED,)) for text in ("2024-03-31 02:30+02", "2024-02-29", "x")),
    (SPAN, "JUSTIFY_DAYS({})", (SPAN,)),
    (SPAN, "JUSTIFY_HOURS({})", (SPAN,)),
    (SPAN, "MAKE_INTERVAL(days => {})", (INT,)),
    # what is added up over rows, composite keys, and conditions on counts
    *((SUMMED, f"{name}({{}})", (kind,)) for name in ("SUM", "AVG") for kind in (INT, NUM, DBL)),
    *((SUMMED, "COUNT({})", (kind,)) for kind in (INT, TXT, BOOL)),
    (SUMMED, "COUNT(*) FILTER (WHERE {})", (BOOL,)),
    (SUMMED, "SUM({}) FILTER (WHERE {})", (NUM, BOOL)),
    (SUMMED, "SUM(CASE WHEN {} THEN {} ELSE {} END)", (BOOL, INT, NUM)),
    (SUMMED, "AVG(CASE WHEN {} THEN {} END)", (BOOL, INT)),
    (SUMMED, "SUM({} * {})", (INT, NUM)),
    *(
        (PAIR, "{} AS e0, {} AS e1", kinds)
        for kinds in (
            *((INT, TXT), (TXT, TXT), (BOOL, NUM), (DAY, INT), (MOMENT, BOOL), (DBL, TXT)),
            *((TIME, INT), (NUM, NUM), (TXT, DAY)),
        )
    ),
    (COUNTED, "{} * 2", (COUNTED,)),
    (COUNTED, "-{}", (COUNTED,)),
    (COUNTED, "({} + {})", (COUNTED, INT)),
    (COUNTED, "ABS({} - {})", (COUNTED, INT)),
    (COUNTED, "COALESCE({}, {})", (COUNTED, INT)),
    (COUNTED, "CASE WHEN {} THEN {} ELSE {} END", (BOOL, COUNTED, INT)),
    *((TXT, f"TO_CHAR({{}}, {pattern})", (DAY,)) for pattern in _DAY_FORMATS),
    (TXT, "TO_CHAR({}, 'HH24:MI:SS')", (MOMENT,)),
    (TXT, "TO_CHAR({}, 'HH12 AM')", (MOMENT,)),
    (TXT, "TO_CHAR({}, '999.99')", (NUM,)),
    (TXT, "TO_CHAR({}, 'FM000')", (INT,)),
    (DAY, "TO_DATE('31/01/2024', 'DD/MM/YYYY')", ()),
    (DAY, "MAKE_DATE(2024, {}, 1)", (INT,)),
)
_BY_KIND: Final = {kind: [one for one in _SHAPES if one[0] == kind] for kind in LITERALS}
# What a condition in HAVING may be, besides those on the keys of the group.
_ON_COUNTS: Final = (
    *((BOOL, f"{{}} {op} {{}}", (COUNTED, INT)) for op in ("<", ">=")),
    *((BOOL, f"{{}} {op} {{}}", (COUNTED, NUM)) for op in ("<", ">")),
    (BOOL, "{} BETWEEN {} AND {}", (COUNTED, INT, INT)),
    (BOOL, "{} AND {} > 0", (BOOL, COUNTED)),
    (BOOL, "({} OR {} < 2)", (BOOL, COUNTED)),
    (BOOL, "({}) IS NULL", (COUNTED,)),
)


class Generator:
    """Makes expressions over some columns.

    Parameters
    ----------
    seed : int
    columns : mapping
        The types of columns by their names.
    """

    def __init__(self, draw: random.Random, columns: Mapping[str, str]) -> None:
        self._draw = draw
        self._leaves: dict[str, list[Expression]] = {kind: [] for kind in LITERALS}
        for name, kind in columns.items():
            self._leaves[kind].append(Expression(kind, name))
        self._on_counts = list(_ON_COUNTS) if self._leaves[COUNTED] else []

    def expression(self, kind: str | None = None, depth: int | None = None) -> Expression:
        """An expression of a type, or of any."""
        draw = self._draw
        kind = draw.choice(TYPES) if kind is None else kind
        depth = draw.randint(1, DEPTH_MAX) if depth is None else depth
        shapes = _BY_KIND[kind]
        if depth == 0 or not shapes or draw.random() < 0.1:
            leaves = self._leaves[kind]
            of_columns = leaves and draw.random() < 0.7
            return draw.choice(leaves if of_columns else LITERAL_NODES[kind])
        if kind == BOOL and self._on_counts and draw.random() < 0.5:
            shapes = self._on_counts
        _, template, kinds = draw.choice(shapes)
        return Expression(kind, template, tuple(self.expression(one, depth - 1) for one in kinds))
