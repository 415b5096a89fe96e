"""Generated statements: SELECTs of private rows, and what is computed from their answers."""

# ruff: noqa: S608 - the statements are what is generated

import random
from dataclasses import replace

from tests.sql.fuzz_aggregates import Aggregate, key, linear
from tests.sql.fuzz_rows import ONLY_REAL, are_few, base
from tests.sql.fuzz_statements import Statement, divisors, select, source
from tests.sql.fuzz_values import condition


def statement(rng: random.Random) -> Statement:
    """Any statement of the grammar; each is right SQL, though not all of it is answered."""
    return rng.choice([_ended, _ended, _ended, *_OUTER])(rng)


def _ended(rng: random.Random) -> Statement:
    """A SELECT as a client sends it."""
    return select(rng, ended=True)


def _within(rng: random.Random, inner: Statement, rest: str) -> Statement:
    """A SELECT from a SELECT, in FROM or in WITH.

    A formula is NULL where it divides by zero, and any number where it divides by what rounding
    leaves of zero; what is computed from it is not compared.
    """
    begin, end = rest.split("@")
    if rng.random() < 0.5:
        text = f"{begin}({inner.text}) AS t{end}"
    else:
        text = f"WITH g AS {rng.choice(['', 'MATERIALIZED '])}({inner.text}) {begin}g AS t{end}"
    return replace(
        inner,
        text=text,
        n_keys=0,
        is_compared=inner.is_compared and not inner.has_formula,
        is_ordered=False,
        has_public_keys=False,
    )


def _aggregated_again(rng: random.Random) -> Statement:
    inner = select(rng)
    some = rng.choice(["SUM(a0)", "MAX(a0)", "MIN(a0)", "AVG(a0)", "COUNT(*)", "COUNT(a0)"])
    where = f" WHERE a0 > {rng.choice(['0.0371', '50.0371'])}" if rng.random() < 0.4 else ""
    if inner.n_keys and rng.random() < 0.5:
        return _within(rng, inner, f"SELECT k0, {some} AS a0 FROM @{where} GROUP BY k0")
    return _within(rng, inner, f"SELECT {some} AS a0 FROM @{where}")


def _computed_from(rng: random.Random) -> Statement:
    inner = select(rng, n_keys=rng.choice([1, 2]))
    some = rng.choice(
        [
            *("a0 * 2 + 1", "CASE WHEN a0 > 50.0371 THEN 'many' ELSE 'few' END", "COALESCE(a0, 0)"),
            *("SUM(a0) OVER (PARTITION BY k0)", "a0 - AVG(a0) OVER ()", "a0 > 3.0371", "t.a0"),
            "(SELECT MAX(population) FROM cities)",
        ]
    )
    where = f" WHERE a0 > {rng.choice(['0.0371', '50.0371'])}" if rng.random() < 0.4 else ""
    if rng.random() < 0.3:  # rounding decides what is a duplicate
        inner = replace(inner, is_compared=False)
        return _within(rng, inner, f"SELECT DISTINCT k0, {some} AS a9 FROM @{where}")
    return _within(rng, inner, f"SELECT k0, {some} AS a9 FROM @{where}")


def _joined_answers(rng: random.Random) -> Statement:
    one, other = select(rng, n_keys=1, n_aggregates=1), select(rng, n_keys=1, n_aggregates=1)
    shape = rng.choice(
        [
            "SELECT x.k0, x.a0 - y.a0 AS d FROM x JOIN y ON x.k0 = y.k0",
            "SELECT k0, x.a0 AS a, y.a0 AS b FROM x LEFT JOIN y USING (k0)",
            "SELECT COUNT(*) AS n, SUM(x.a0) AS s FROM x, y",
            "SELECT x.k0, x.a0 FROM x WHERE x.a0 > (SELECT AVG(a0) + 0.0371 FROM y)",
            "SELECT COUNT(*) AS n FROM x JOIN y ON x.k0 IS NOT DISTINCT FROM y.k0",
            "SELECT a0 FROM x UNION ALL SELECT a0 FROM y",
            "SELECT x.a0, c.country FROM x JOIN cities AS c ON CAST(x.k0 AS VARCHAR) = c.city",
        ]
    )
    second = other if rng.random() < 0.5 else one
    return _both(one, second, f"WITH x AS ({one.text}), y AS ({second.text}) {shape}")


def _union(rng: random.Random) -> Statement:
    n_keys = rng.choice([0, 1])
    one = select(rng, n_keys=n_keys, n_aggregates=1)
    other = select(rng, n_keys=n_keys, n_aggregates=1)
    if rng.random() < 0.2:  # rounding decides what is a duplicate
        return replace(_both(one, other, f"{one.text} UNION {other.text}"), is_compared=False)
    return _both(one, other, f"{one.text} UNION ALL {other.text}")


def _scalar(rng: random.Random) -> Statement:
    inner, whole = select(rng, n_keys=1, n_aggregates=1), select(rng, n_keys=0, n_aggregates=1)
    shape = rng.choice(
        [
            f"SELECT k0, a0 - ({whole.text}) AS d FROM @",
            f"SELECT k0 FROM @ WHERE a0 > ({whole.text}) / 5 + 0.0371",
            f"SELECT SUM(a0) / NULLIF(({whole.text}), 0) AS share FROM @",
        ]
    )
    found = _within(rng, inner, shape)
    return _both(found, whole, found.text)


def _share(rng: random.Random) -> Statement:
    """A percentage of a total, which is a formula with an interval."""
    rows = base(rng)
    one = key(rng, rows)
    phantoms = rows.phantoms()
    part = linear(rng, rows, 0).text
    whole = rng.choice(
        [
            f"SUM(COUNT(*){ONLY_REAL}) OVER ()",
            "(SELECT COUNT(*) FROM patients)",
            "(SELECT COUNT(*) FROM patients WHERE age > 40)",
        ]
    )
    share = Aggregate(part, is_linear=False, divisor=whole)
    text = (
        f"SELECT {one} AS k0, 100.0 * {part} / {whole} AS a0{divisors([share])} "
        f"FROM {rows.text(phantoms)} GROUP BY 1"
    )
    return Statement(text, 1, (share,), is_compared=are_few(phantoms), has_public_keys=True)


def _distinct(rng: random.Random) -> Statement:
    rows = source(rng)
    keys = [key(rng, rows) for _ in range(rng.choice([1, 2]))]
    where = f" WHERE {condition(rng, rows, 1)}" if rng.random() < 0.4 else ""
    phantoms = rows.phantoms()
    items = ", ".join(f"{one} AS k{place}" for place, one in enumerate(keys))
    text = f"{rows.with_text(phantoms)}SELECT DISTINCT {items} FROM {rows.text(phantoms)}{where}"
    return Statement(text, len(keys), is_compared=are_few(phantoms), has_public_keys=True)


def _probe(rng: random.Random) -> Statement:
    inner = select(rng)
    return _within(rng, inner, f"SELECT * FROM @ {rng.choice(['LIMIT 0', 'WHERE 1 = 0'])}")


def _both(one: Statement, other: Statement, text: str) -> Statement:
    return Statement(
        text,
        aggregates=one.aggregates + other.aggregates,
        is_compared=one.is_compared
        and other.is_compared
        and not (one.has_formula or other.has_formula),
    )


_OUTER = (
    *(_aggregated_again, _computed_from, _joined_answers, _union, _scalar, _share, _distinct),
    _probe,
)
