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

INT, NUM, DBL, TXT, BOOL, DAY, MOMENT, SPAN = (
    "int",
    "num",
    "dbl",
    "txt",
    "bool",
    "day",
    "ts",
    "span",
)
TYPES: Final = (INT, NUM, DBL, TXT, BOOL, DAY, MOMENT, SPAN)
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
    INT: ("0", "1", "2", "3", "7", "-1", "-5", "10", "NULL::int", "(-7)"),
    NUM: ("0.5", "1.5", "2.5", "-2.5", "0.1", "2.00", "-0.05", "NULL::numeric", "1.005", "100.25"),
    DBL: (
        "0.5::float8",
        "2.5::float8",
        "(-1.5)::float8",
        "1e3::float8",
        "0.1::float8",
        "3.5::float8",
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
        *("NULL::text", "'12'", "'a,b'"),
    ),
    BOOL: ("TRUE", "FALSE", "NULL::boolean"),
    DAY: ("DATE '2024-02-29'", "DATE '2023-12-31'", "DATE '2024-01-01'", "NULL::date"),
    MOMENT: (
        "TIMESTAMP '2024-03-31 02:30:00'",
        "TIMESTAMP '1999-12-31 23:59:59'",
        "TIMESTAMP '2024-02-29 12:00:00.5'",
    ),
    SPAN: (
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
    *((kind, "-{}", (kind,)) for kind in (INT, NUM, DBL)),
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
    (BOOL, "{} ~ '^[a-z]'", (TXT,)),
    # any
    *(
        (kind, template, (kind, kind))
        for kind in (INT, NUM, DBL, TXT, BOOL, DAY, MOMENT)
        for template in ("COALESCE({}, {})", "NULLIF({}, {})", "GREATEST({}, {})", "LEAST({}, {})")
    ),
    *(
        (kind, "CASE WHEN {} THEN {} ELSE {} END", (BOOL, kind, kind))
        for kind in (INT, NUM, DBL, TXT, BOOL, DAY, MOMENT)
    ),
    *((kind, "CASE {} WHEN {} THEN {} END", (INT, INT, kind)) for kind in (INT, TXT)),
    (NUM, "CASE WHEN {} THEN {} ELSE {} END", (BOOL, INT, NUM)),
    (NUM, "COALESCE({}, {})", (INT, NUM)),
    (DBL, "COALESCE({}, {})", (NUM, DBL)),
    # comparisons and logic
    *(
        (BOOL, f"{{}} {op} {{}}", (kind, kind))
        for op in ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
        for kind in (INT, NUM, DBL, TXT, BOOL, DAY, MOMENT)
    ),
    *((BOOL, f"{{}} {op} {{}}", (INT, NUM)) for op in ("=", "<", ">=")),
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
    *((TXT, f"TO_CHAR({{}}, {pattern})", (DAY,)) for pattern in _DAY_FORMATS),
    (TXT, "TO_CHAR({}, 'HH24:MI:SS')", (MOMENT,)),
    (TXT, "TO_CHAR({}, 'HH12 AM')", (MOMENT,)),
    (TXT, "TO_CHAR({}, '999.99')", (NUM,)),
    (TXT, "TO_CHAR({}, 'FM000')", (INT,)),
    (DAY, "TO_DATE('31/01/2024', 'DD/MM/YYYY')", ()),
    (DAY, "MAKE_DATE(2024, {}, 1)", (INT,)),
)
_BY_KIND: Final = {kind: [one for one in _SHAPES if one[0] == kind] for kind in TYPES}


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
        self._leaves: dict[str, list[Expression]] = {kind: [] for kind in TYPES}
        for name, kind in columns.items():
            self._leaves[kind].append(Expression(kind, name))

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
        _, template, kinds = draw.choice(shapes)
        return Expression(kind, template, tuple(self.expression(one, depth - 1) for one in kinds))
