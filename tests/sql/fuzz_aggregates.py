"""Generated group keys and aggregates of private rows."""

import random
from dataclasses import dataclass

from tests.sql.fuzz_rows import ONLY_REAL, Source, either
from tests.sql.fuzz_values import condition


@dataclass(frozen=True)
class Aggregate:
    """An aggregate's text; linear if it is a weighted sum of records, which rounds to halves.

    A formula may divide by an answer, which `divisor` computes.
    """

    text: str
    is_linear: bool
    divisor: str | None = None


def key(rng: random.Random, rows: Source) -> str:
    """An expression to group by."""
    candidates = {
        "sex": ["{}", "COALESCE({}, '?')", "{} = 'male'", "{} IS NULL"],
        "city": ["{}", "{}", "UPPER({})", "LENGTH({})", "LEFT({}, 1)", "{} LIKE '%o%'"],
        "blood": ["{}", "CASE {} WHEN 'AB' THEN 'rare' WHEN 'O' THEN 'common' END"],
        "age": [
            *("{}", f"{{}} {either('/', '//')} 10", "{} >= 65", "FLOOR({} / 10.0) * 10", "{} % 7"),
            "CASE WHEN {} < 30 THEN 'young' WHEN {} < 65 THEN 'middle' ELSE 'old' END",
        ],
        "visits": ["{}", "COALESCE({}, -1)", "{} > 3", "NULLIF({}, 0)"],
        "bmi": ["{}", "{} >= 25", "CASE WHEN {} >= 25 THEN 'heavy' END"],
        "insured": ["{}", "{}", "COALESCE({}, FALSE)", "NOT {}"],
        "admitted": ["DATE_TRUNC('month', {})", "EXTRACT(dow FROM {})", "{}", "{} < '2024-01-01'"],
        "country": ["{}", "COALESCE({}, 'none')"],
        "capital": ["{}"],
    }
    role = rng.choice([role for role in candidates if role in rows])
    return rng.choice(candidates[role]).replace("{}", rows[role])


def number(rng: random.Random, rows: Source) -> str:
    """A numeric expression of one record."""
    age, visits = rows.columns.get("age"), rows.columns.get("visits")
    cost, stay = rows.columns.get("cost"), rows.columns.get("stay")
    some = ["1", "2.5", "-3", "NULL"] if rng.random() < 0.08 else []
    if age:
        some += [age, f"{age} - 40", f"2 * {age} + 1", f"ABS({age} - 50)", f"{age} / 4.0"]
    if visits:
        some += [visits, f"COALESCE({visits}, 7)", f"{visits} {either('/', '//')} 2", f"-{visits}"]
    if age and visits:
        some += [f"{age} + 2 * {visits}", f"{age} * {visits}", f"{age} - {visits}"]
    if cost:
        some += [cost, f"{cost} * 0.5 + 10", f"-{cost}"]
    if stay:
        some += [stay, f"{stay} - 7", f"2 * {stay}"]
    if "population" in rows:
        some += [f"{rows.columns['population']} / 1e6"]
    branch = condition(rng, rows, 1)
    some += [f"CASE WHEN {branch} THEN 1 ELSE 0 END", f"CASE WHEN {branch} THEN 2.5 END"]
    if age:
        some += [f"CASE WHEN {branch} THEN {age} ELSE -1 END"]
    return rng.choice(some)


def linear(rng: random.Random, rows: Source, depth: int = 1) -> Aggregate:
    """A count, a sum, or what combines them linearly."""
    if depth and rng.random() < 0.25:
        one, other = linear(rng, rows, 0).text, linear(rng, rows, 0).text
        some = rng.choice(["2", "0.5", "3", "-1", "10"])
        return Aggregate(
            rng.choice(
                [
                    *(f"{one} + {other}", f"{one} - {some} * {other}", f"{one} / 4", f"-{one}"),
                    *(f"({one}) * {some} + 100", f"{some} - {one}", f"COALESCE({one}, 0)"),
                    f"CAST({one} AS DOUBLE)",
                ]
            ),
            is_linear=True,
        )
    filtered = ONLY_REAL
    if rng.random() < 0.3:
        filtered = f" FILTER (WHERE {condition(rng, rows, 1)}{either('', ' AND is_real')})"
    role = rng.choice([role for role in ("sex", "visits", "age", "stay", "city") if role in rows])
    counts = [
        f"COUNT(*){filtered}",
        f"COUNT(*){filtered}",
        f"COUNT({rows.columns[role]}){filtered}",
    ]
    if rows.has_unit:
        unit = rng.choice(["patient_id", "DISTINCT patient_id"])
        counts += [f"COUNT({unit}){filtered}"]
    holds = condition(rng, rows, 1)
    counts += [
        f"{either('', 'COALESCE(')}COUNT_IF({holds}){ONLY_REAL}{either('', ', 0)')}",
        f"COUNT(CASE WHEN {holds} THEN 1 END){filtered}",
    ]
    total = f"SUM({number(rng, rows)}){filtered}"
    sums = [f"{either('', 'COALESCE(')}{total}{either('', ', 0)')}"]
    return Aggregate(rng.choice(counts + 4 * sums), is_linear=True)


def formula(rng: random.Random, rows: Source) -> Aggregate:
    """An average, a variance, a quantile or a ratio."""
    value, filtered = number(rng, rows), ONLY_REAL
    if rng.random() < 0.2:
        filtered = f" FILTER (WHERE {condition(rng, rows, 1)}{either('', ' AND is_real')})"
    one, other = linear(rng, rows).text, linear(rng, rows, 0).text
    moment = rng.choice(["VARIANCE", "VAR_POP", "STDDEV", "STDDEV_POP"])
    of_all, known = f"COUNT(*){ONLY_REAL}", f"COUNT({value}){filtered}"
    some: list[tuple[str, str | None]] = [
        *((f"AVG({value}){filtered}", known), (f"AVG({value}){filtered}", known)),
        (f"{moment}({value}){filtered}", known),
        (f"({one}) / NULLIF({other}, 0)", other),
        (f"100.0 * ({one}) / {of_all}", of_all),
        (f"ABS({one})", None),
        (f"GREATEST({one}, 0)", None),
    ]
    of = [rows.columns[role] for role in ("age", "visits", "cost", "stay") if role in rows]
    if of:
        column, share = rng.choice(of), rng.choice(["0.25", "0.5", "0.9", "0", "1"])
        some += [
            (f"MEDIAN({column}){filtered}", None),
            (f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {column}){filtered}", None),
            (f"PERCENTILE_DISC({share}) WITHIN GROUP (ORDER BY {column}){filtered}", None),
        ]
    text, divisor = rng.choice(some)
    return Aggregate(text, is_linear=False, divisor=divisor)
