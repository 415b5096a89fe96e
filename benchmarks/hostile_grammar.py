"""Statements made at random, nested, with large numbers: about the catalog, public tables, answers.

A seed makes one statement. Many are refused, for they call what is not offered or make too much;
what matters is that none holds the server. Functions stand here whether they are offered or not.
"""

# ruff: noqa: S311, S608 - random statements, not secrets; texts that are made here alone

import random
from collections.abc import Callable

NUMBERS = ("0", "1", "2", "3", "7", "32", "1000", "10000", "99999", "2147483647", "1000000000")
HUGE = ("100000000", "9999999999", "1e9", "10^9", "9223372036854775807", "-1", "oid", "relnatts")
CATALOG = (
    *("pg_class", "pg_attribute", "pg_type", "pg_namespace", "pg_proc", "pg_constraint"),
    *("information_schema.columns", "information_schema.tables", "pg_settings", "pg_index"),
)
PUBLIC = ("countries",)
ANSWERS = (
    "(SELECT age AS k, COUNT(*) AS n FROM adult GROUP BY age)",
    "(SELECT education AS k, COUNT(*) AS n FROM adult GROUP BY education)",
)
TEXT_COLUMNS = {"catalog": ("relname", "attname", "typname", "nspname"), "public": ("country",)}
TEXT_CALLS = (
    "{t} || {t}",
    "CONCAT({t}, {t}, {i})",
    "CONCAT_WS({t}, {t}, {t})",
    "REPLACE({t}, 'a', {t})",
    "REPLACE({t}, {t}, {t})",
    "REGEXP_REPLACE({t}, '.', '\\&\\&{l}', 'g')",
    "REPEAT({t}, {i})",
    "LPAD({t}, {i}, {t})",
    "RPAD({t}, {i})",
    "FORMAT('%{i}s', {t})",
    "FORMAT('%s%I', {t}, {t})",
    "PRINTF('%{i}d', 1)",
    "UPPER({t})",
    "INITCAP({t})",
    "LEFT({t}, {i})",
    "RIGHT({t}, {i})",
    "SUBSTRING({t} FROM {i} FOR {i})",
    "SPLIT_PART({t}, 'a', {i})",
    "TRANSLATE({t}, 'ab', {t})",
    "NULLIF({t}, {t})",
    "COALESCE({t}, {t})",
    "CASE {t} WHEN {t} THEN {t} ELSE {t} END",
    "CASE WHEN {b} THEN {t} ELSE {t} END",
    "({i})::text",
    "FORMAT_TYPE({i}, {i})",
    "FORMAT_TYPE(25, {t})",
    "QUOTE_IDENT({t})",
    "ARRAY_TO_STRING({a}, {t})",
    "STRING_AGG({t}, {t})",
    "CURRENT_SETTING('search_path')",
    "SET_CONFIG('x', {t}, false)",
    "MAX({t})",
    "REVERSE({t})",
    "TO_CHAR({i}, {t})",
    "CHR({i})",
    "MD5({t})",
    "COL_DESCRIPTION({i}, {i})",
    "'{l}'",
    "{c}",
    "(SELECT {t})",
    "GREATEST({t}, {t}, {t})",
    "OVERLAY({t} PLACING {t} FROM {i})",
    "TRIM({t})",
)
NUMBER_CALLS = (
    "{i} + {i}",
    "{i} * {i}",
    "{i} - {i}",
    "({i}) ^ ({i})",
    "POWER({i}, {i})",
    "FACTORIAL({i})",
    "LENGTH({t})",
    "LEN({a})",
    "ARRAY_LENGTH({a}, 1)",
    "ARRAY_UPPER({a}, 1)",
    "CARDINALITY({a})",
    "NULLIF({i}, {i})",
    "COALESCE({i}, {i})",
    "ABS({i})",
    "CBRT({i})",
    "ROUND({i}, {i})",
    "MOD({i}, {i})",
    "STRPOS({t}, {t})",
    "EXP({i})",
    "COUNT(*)",
    "SUM({i})",
    "RANK() OVER (ORDER BY {t})",
    "ASCII({t})",
    "({b})::int",
    "(SELECT {i})",
    "(SELECT COUNT(*) FROM {f})",
    "GENERATE_SERIES({i}, {i})",
    "{n}",
    "{n}",
    "ROW_NUMBER() OVER (PARTITION BY {t} ORDER BY {i})",
    "MEDIAN({i})",
    "STDDEV({i})",
    "{h}",
)
LIST_CALLS = (
    "RANGE({i})",
    "RANGE({i}, {i})",
    "GENERATE_SERIES({i}, {i})",
    "ARRAY_AGG({t})",
    "ARRAY[{t}, {t}]",
    "STRING_TO_ARRAY({t}, {t})",
    "STRING_TO_ARRAY({t}, NULL)",
    "ARRAY_CAT({a}, {a})",
    "PARSE_IDENT({t})",
    "ARRAY_APPEND({a}, {t})",
    "ARRAY(SELECT {t} FROM {f})",
    "REGEXP_SPLIT_TO_ARRAY({t}, '')",
    "LIST_TRANSFORM(RANGE({i}), x -> x)",
    "ARRAY_FILL({i}, ARRAY[{i}])",
    "CURRENT_SCHEMAS(true)",
)
CONDITIONS = (
    "{t} = {t}",
    "{t} LIKE '%a%_%{l}%b'",
    "{t} ~ '(a|b)*{l}$'",
    "{i} BETWEEN {i} AND {i}",
    "{i} > {i}",
    "{t} IN ({t}, {t}, {t})",
    "{b} AND {b}",
    "{b} OR {b}",
    "NOT ({b})",
    "EXISTS (SELECT 1 FROM {f})",
    "{i} IN (SELECT {i} FROM {f})",
    "{t} = ANY ({a})",
    "{t} BETWEEN SYMMETRIC {t} AND {t}",
    "{t} SIMILAR TO '%(a|b){l}%'",
    "({t}, {i}) = ({t}, {i})",
    "{t} IS NOT NULL",
)
KINDS = {"t": TEXT_CALLS, "i": NUMBER_CALLS, "a": LIST_CALLS, "b": CONDITIONS}


class Grammar:
    """Makes one statement.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._world = self._random.choice(("catalog", "catalog", "public", "answers", "nothing"))
        self._left = self._random.choice((4, 10, 30, 80))  # calls

    def statement(self) -> str:
        """The statement."""
        shape = self._random.choice((self._plain, self._doubled, self._nested, self._recursive))
        sql = shape()
        around = ("EXPLAIN {}", "EXPLAIN PRIVACY {}", "SELECT * FROM ({}) AS t", "{} LIMIT 1")
        return self._random.choice((*around, "{}", "{}", "{}")).format(sql)

    def _plain(self) -> str:
        shown = ", ".join(
            f"{self._made(self._random.choice('tiab'), self._depth())} AS x{place}"
            for place in range(self._random.choice((1, 1, 2, 5)))
        )
        clauses = [f"SELECT {shown}"]
        if self._world != "nothing":
            clauses.append(f"FROM {self._from()}")
        if self._random.random() < 0.4:
            clauses.append(f"WHERE {self._made('b', 2)}")
        if self._random.random() < 0.3:
            clauses.append(self._random.choice(("GROUP BY 1", "ORDER BY 1", "ORDER BY 1 DESC")))
        return " ".join(clauses)

    def _doubled(self) -> str:
        """CTEs, each of which makes more of the one before it."""
        step = self._random.choice(
            (
                *("a || a", "CONCAT(a, a, a)", "REPLACE(a, 'a', a)", "NULLIF(a, a || a)"),
                *("a || (SELECT MAX(a) FROM r0)", "REGEXP_REPLACE(a, '.', '\\&\\&', 'g')"),
                *("STRING_AGG(a, a)", "LPAD(a, 1000000, a)", "FORMAT('%s%s%s', a, a, a)"),
            )
        )
        joined = self._random.choice(("", "", ", r0 AS z", ", {last} AS z"))
        steps = [f"r0 AS (SELECT {self._column()} AS a FROM {self._from()})"]
        for place in range(1, self._random.choice((5, 12, 40))):
            last = f"r{place - 1}"
            named = step.replace("a", f"{last}.a") if joined else step
            named = step if "(" in step and joined == "" else named
            steps.append(f"r{place} AS (SELECT {named} AS a FROM {last}{joined.format(last=last)})")
        return f"WITH {', '.join(steps)} SELECT a FROM r{len(steps) - 1}"

    def _nested(self) -> str:
        """One function, put into itself."""
        kind = self._random.choice("tia")
        around = self._random.choice([one for one in KINDS[kind] if f"{{{kind}}}" in one])
        text = self._made(kind, 1)
        for _ in range(self._random.choice((4, 9, 14, 25))):
            first, *rest = around.split(f"{{{kind}}}")
            text = first + text + self._random.choice((text, "1"))[:200].join(rest)
            text = self._filled(text, 0)
            if len(text) > 20_000:
                break
        return f"SELECT {text} AS x FROM {self._from()}"

    def _recursive(self) -> str:
        first, step = self._random.choice((("1", "a + 1"), ("'x'", "a || a"), ("1", "a * 2")))
        until = self._random.choice(NUMBERS)
        read = self._random.choice(("", ", pg_class", f", generate_series(1, {until}) AS s"))
        return (
            f"WITH RECURSIVE r AS (SELECT {first} AS a UNION ALL SELECT {step} FROM r{read} "
            f"WHERE LENGTH(a::text) < {until}) SELECT COUNT(*) FROM r, {self._from()}"
        )

    def _depth(self) -> int:
        return self._random.choice((1, 2, 3, 5))

    def _from(self) -> str:
        entries = [self._entry(place) for place in range(self._random.choice((1, 1, 2, 3, 6)))]
        return ", ".join(entries)

    def _entry(self, place: int) -> str:
        if self._random.random() < 0.1:
            number = self._random.choice(NUMBERS)
            return f"GENERATE_SERIES(1, {number}) AS s{place}"
        of: dict[str, tuple[str, ...]] = {"public": PUBLIC, "answers": ANSWERS}
        name = self._random.choice(of.get(self._world, CATALOG))
        return f"{name} AS t{place}"

    def _column(self) -> str:
        return self._random.choice(TEXT_COLUMNS.get(self._world, ("k::text", "'a'")))

    def _made(self, kind: str, depth: int) -> str:
        self._left -= 1
        if depth <= 0 or self._left <= 0:
            leaves: dict[str, Callable[[], str]] = {
                "t": self._column,
                "i": lambda: self._random.choice((*NUMBERS, *HUGE)),
                "a": lambda: "ARRAY['a', 'b']",
                "b": lambda: "1 = 1",
            }
            return leaves[kind]()
        return self._filled(self._random.choice(KINDS[kind]), depth - 1)

    def _filled(self, template: str, depth: int) -> str:
        """A template with something in each of its places."""
        text = template
        for name in "tiab":
            while f"{{{name}}}" in text:
                text = text.replace(f"{{{name}}}", self._made(name, depth), 1)
        letters = self._random.choice(("a", "a" * 50, "a_%" * 40, "(a*)*"))
        number, huge = self._random.choice(NUMBERS), self._random.choice(HUGE)
        for name, put in (("l", letters), ("n", number), ("h", huge), ("c", self._column())):
            text = text.replace(f"{{{name}}}", put)
        return text.replace("{f}", self._entry(9))


def statement(seed: int) -> str:
    """The statement of a seed, within the limit on a text."""
    return Grammar(seed).statement()[:60_000]
