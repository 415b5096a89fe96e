"""Generated SELECTs that aggregate private rows, and what is known of each statement.

Columns are called k0, k1, .. where they are keys, a0, a1, .. where they are aggregates, and c0,
c1, .. where they are what DuckDB cannot know.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.sql.fuzz_aggregates import Aggregate, formula, key, linear
from tests.sql.fuzz_rows import (
    ONLY_REAL,
    Source,
    are_few,
    base,
    derived,
    either,
    for_duckdb,
    for_tacit,
    joined,
)
from tests.sql.fuzz_values import condition

OPTIONS = (
    *("", " OPTIONS(half_width => 60)", " OPTIONS(half_width => 400, confidence => 0.9)"),
    *(" OPTIONS(epsilon => 5)", " OPTIONS(simultaneous => 4)", " OPTIONS(confidence = 0.99)"),
    " OPTIONS(relative => 0.2, at_least => 100)",
)


@dataclass(frozen=True)
class Statement:
    """A statement for Tacit and for DuckDB.

    Parameters
    ----------
    text : str
        With marks (`fuzz_rows`).
    n_keys, aggregates : int, tuple of Aggregate
        Its first columns, and those after them.
    is_compared : bool
        Whether DuckDB's answer must be the same.
    is_ordered : bool
        And in the same order.
    has_public_keys : bool
        Whether its rows, and their keys, do not depend on the answers.
    """

    text: str
    n_keys: int = 0
    aggregates: tuple[Aggregate, ...] = ()
    is_compared: bool = True
    is_ordered: bool = False
    has_public_keys: bool = False

    @property
    def for_tacit(self) -> str:
        return for_tacit(self.text)

    @property
    def for_duckdb(self) -> str:
        return for_duckdb(self.text)

    @property
    def has_formula(self) -> bool:
        return not all(one.is_linear for one in self.aggregates)


def source(rng: random.Random, *, may_be_cte: bool = True) -> Source:
    kind = rng.random()
    inner = joined(rng) if rng.random() < 0.2 else base(rng)
    if kind < 0.7:
        return inner
    filtered = condition(rng, inner, 1) if rng.random() < 0.7 else ""
    return derived(rng, inner, filtered, as_cte=may_be_cte and rng.random() < 0.5)


def select(
    rng: random.Random,
    *,
    n_keys: int | None = None,
    n_aggregates: int | None = None,
    ended: bool = False,
) -> Statement:
    """One SELECT that aggregates private rows; if `ended`, with ORDER BY and LIMIT now and then."""
    rows = source(rng, may_be_cte=ended)
    n_keys = rng.choice([0, 0, 0, 1, 1, 1, 1, 2, 2, 3]) if n_keys is None else n_keys
    where = f" WHERE {condition(rng, rows)}" if rng.random() < 0.5 else ""
    keys = list(dict.fromkeys(key(rng, rows) for _ in range(n_keys)))
    if len(keys) < n_keys:
        keys = [key(rng, rows) for _ in range(n_keys)]
    phantoms = rows.phantoms() if keys else frozenset()
    wanted = n_aggregates or rng.choice([1, 1, 1, 2, 3])
    aggregates = [
        linear(rng, rows) if rng.random() < 0.7 else formula(rng, rows) for _ in range(wanted)
    ]
    group, is_sets = _group_by(rng, keys)
    having = _having(rng, rows, keys) if rng.random() < 0.2 else ""
    options = _options(rng)
    items = [f"{one} AS k{place}" for place, one in enumerate(keys)]
    items += [f"{one.text} AS a{place}" for place, one in enumerate(aggregates)]
    if ended and rng.random() < 0.3:
        items += _companions(rng, aggregates)
    if ended and keys and rng.random() < 0.2:
        items += _windows(rng, keys, is_sets)
    order, ordered, limited = _order(rng, rows, keys, is_sets) if ended else ("", False, False)
    text = (
        f"{rows.with_text(phantoms)}SELECT{options} {', '.join(items)}{divisors(aggregates)} "
        f"FROM {rows.text(phantoms)}{where}{group}{having}{order}"
    )
    return Statement(
        text,
        len(keys),
        tuple(aggregates),
        is_compared=are_few(phantoms) and (ordered or not limited),
        is_ordered=ordered,
        has_public_keys=not (having or order or " OVER (" in text),
    )


def divisors(aggregates: Sequence[Aggregate]) -> str:
    """Columns of DuckDB's alone, after all others: d0 is what a0 divides by."""
    return "".join(
        either("", f", {for_duckdb(one.divisor)} AS d{place}")
        for place, one in enumerate(aggregates)
        if one.divisor is not None
    )


def _group_by(rng: random.Random, keys: list[str]) -> tuple[str, bool]:
    if not keys:
        return "", False
    listed = ", ".join(keys)
    kind = rng.random()
    if kind < 0.15:
        return f" GROUP BY {rng.choice(['ROLLUP', 'CUBE'])} ({listed})", True
    if kind < 0.25:
        sets = [f"({one})" for one in keys] + rng.choice([[], ["()"], [f"({listed})"]])
        return f" GROUP BY GROUPING SETS ({', '.join(sets)})", True
    if kind < 0.5:
        return f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}", False
    if kind < 0.7:
        return f" GROUP BY {', '.join(f'k{place}' for place in range(len(keys)))}", False
    return f" GROUP BY {listed}", False


def _having(rng: random.Random, rows: Source, keys: list[str]) -> str:
    some = (
        f"{linear(rng, rows, 0).text} > {rng.choice(['-5.0371', '0.0371', '40.0371', '300.0371'])}"
    )
    if keys and rng.random() < 0.4:
        some = f"({rng.choice(keys)}) IS NOT NULL AND {some}"
    return f" HAVING {some}"


def _options(rng: random.Random) -> str:
    if rng.random() < 0.8:
        return ""
    return either(f" WITH DIFFERENTIAL_PRIVACY{rng.choice(OPTIONS)}", "")


def _companions(rng: random.Random, aggregates: list[Aggregate]) -> list[str]:
    names = ["DP_INTERVAL_LOW", "DP_INTERVAL_HIGH", "DP_COST", "DP_SOURCE", "DP_STDERR"]
    return [
        either(f"{rng.choice(names)}(a{rng.randrange(len(aggregates))})", "NULL") + f" AS c{place}"
        for place in range(rng.randint(1, 2))
    ]


def _windows(rng: random.Random, keys: list[str], is_sets: bool) -> list[str]:
    count = f"COUNT(*){ONLY_REAL}"
    some = [
        f"SUM({count}) OVER ()",
        f"MAX({count}) OVER ()",
        f"{count} > AVG({count}) OVER () + 0.0371",
    ]
    some += [f"100.0 * {count} / SUM({count}) OVER ()"]
    if not is_sets:
        order = ", ".join(_sorted(rng, one) for one in keys)
        some += [
            f"SUM({count}) OVER (ORDER BY {order})",
            f"RANK() OVER (ORDER BY ROUND({count}, 2) DESC, {order})",
            f"LAG({count}) OVER (ORDER BY {order})",
            f"SUM({count}) OVER (PARTITION BY {keys[0]})",
        ]
    return [f"{rng.choice(some)} AS w0"]


def _order(
    rng: random.Random, rows: Source, keys: list[str], is_sets: bool
) -> tuple[str, bool, bool]:
    """ORDER BY and LIMIT; whether the order is total, and whether there is a LIMIT."""
    if rng.random() < 0.6:
        return "", False, False
    limit = f" LIMIT {rng.choice([0, 1, 3, 1000])}" if rng.random() < 0.6 else ""
    if limit and rng.random() < 0.2:
        limit += f" OFFSET {rng.choice([0, 2, 500])}"
    parts = [_sorted(rng, rng.choice([one, f"k{place}"])) for place, one in enumerate(keys)]
    if is_sets:
        parts = [f"GROUPING({', '.join(keys)})", *parts]
    if rng.random() < 0.5:
        parts = [f"ROUND({linear(rng, rows, 0).text}, 2) {rng.choice(['ASC', 'DESC'])}", *parts]
    if rng.random() < 0.2:
        return f" ORDER BY {rng.choice(['a0 DESC', '1', 'a0'])}{limit}", False, bool(limit)
    return (f" ORDER BY {', '.join(parts)}" if parts else "") + limit, not is_sets, bool(limit)


def _sorted(rng: random.Random, one: str) -> str:
    """NULL comes last, or first of what descends, as in PostgreSQL."""
    return rng.choice(
        [
            one + either("", " NULLS LAST"),
            f"{one} DESC" + either("", " NULLS FIRST"),
            f"{one} DESC NULLS LAST",
            f"{one} ASC NULLS FIRST",
        ]
    )
