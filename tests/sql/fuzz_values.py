"""Generated conditions, numbers, keys and aggregates over private rows.

Rounding never decides what is compared: thresholds lie between the values that counts can take.
"""

# ruff: noqa: S608 - the statements are what is generated

import random
from collections.abc import Callable

from tests.sql.fuzz_rows import Source, either

CITIES = ("Bergen", "Oslo", "Paris", "Rome", "elsewhere")
DAYS = ("2023-11-15", "2023-12-24", "2024-01-01", "2024-02-29", "2025-01-01")
EDGES = ("15", "18.5", "25.0", "30", "50")


def condition(rng: random.Random, rows: Source, depth: int = 2) -> str:
    """A condition on private rows, with NULLs in most places where they can be."""
    if depth and rng.random() < 0.45:
        one, other = (condition(rng, rows, depth - 1) for _ in range(2))
        joiner = rng.choice(["AND", "AND", "OR"])
        if rng.random() < 0.2:
            return f"NOT ({one} {joiner} {other})"
        return f"({one} {joiner} {other})" if joiner == "OR" else f"{one} AND {other}"
    if rng.random() < 0.05:
        return rng.choice(["TRUE", "1 = 1", "FALSE", "1 = 0", "NULL", "'a' < 'b'", "NULL IS NULL"])
    return _ATOMS[rng.choice([role for role in _ATOMS if role in rows])](rng, rows)


def _of_sex(rng: random.Random, rows: Source) -> str:
    sex = rows["sex"]
    return rng.choice(
        [
            *(f"{sex} = 'female'", f"{sex} <> 'male'", f"{sex} IS NULL", f"{sex} IS NOT NULL"),
            *(f"{sex} IS DISTINCT FROM 'male'", f"{sex} IN ('male', NULL)", f"{sex} = NULL"),
            f"{sex} NOT IN ('male', NULL)",
            f"COALESCE({sex}, 'nobody') <> 'male'",
            f"CASE {sex} WHEN 'male' THEN TRUE WHEN 'female' THEN NULL ELSE FALSE END",
            f"NULLIF({sex}, 'male') IS NULL",
        ]
    )


def _of_city(rng: random.Random, rows: Source) -> str:
    city, some = rows["city"], rng.choice(CITIES)
    least = rng.choice(["1e6", "0", "1e9"])
    return rng.choice(
        [
            *(f"{city} = '{some}'", f"{city} > '{some}'", f"{city} IN ('Oslo', '{some}')"),
            *(f"{city} LIKE '%o%'", f"{city} NOT LIKE '_ome'", f"{city} ILIKE 'p%'"),
            *(
                f"UPPER({city}) = '{some.upper()}'",
                f"LENGTH({city}) > 4",
                f"{city} || 'x' = 'Oslox'",
            ),
            f"{city} IN (SELECT city FROM cities WHERE population > {least})",
            f"SUBSTRING({city}, 1, 1) = 'O'",
            f"{city} = 'O''Hara'" if rng.random() < 0.1 else f"{city} <> 'Oslo'",
        ]
    )


def _of_blood(rng: random.Random, rows: Source) -> str:
    blood = rows["blood"]
    return rng.choice([f"{blood} = 'AB'", f"{blood} IN ('A', 'O')", f"{blood} LIKE '%B'"])


def _of_age(rng: random.Random, rows: Source) -> str:
    age, low = rows["age"], rng.randint(15, 95)
    written = rng.choice([f"{low}", f"{low}.0", f"{low}.5", f"{low}e0", f"- -{low}", f"'{low}'"])
    return rng.choice(
        [
            f"{age} BETWEEN {low} AND {low + rng.randint(-3, 30)}",
            f"{age} {rng.choice(['<', '<=', '>', '>='])} {written}",
            f"{age} {rng.choice(['=', '<>'])} {rng.randint(18, 90)}",
            f"{age} NOT BETWEEN {low} AND 70",
            *(f"{age} IN (20, 30, {rng.randint(18, 90)})", f"{age} % 3 = {rng.randint(0, 3)}"),
            f"{age} {either('/', '//')} 10 = {rng.randint(1, 9)}",
            *(f"ABS({age} - 50) < {rng.randint(0, 20)}", f"{low} < {age}", f"SQRT({age}) > 7"),
            f"FLOOR({age} / 7.0) = {rng.randint(2, 13)}",
        ]
    )


def _of_visits(rng: random.Random, rows: Source) -> str:
    visits, some = rows["visits"], rng.randint(0, 12)
    atoms = [
        *(f"{visits} > {some}", f"{visits} IS NULL", f"COALESCE({visits}, {some}) >= {some}"),
        *(f"NOT {visits} < {some}", f"NULLIF({visits}, {some}) IS NULL", f"{visits} <> {some}"),
        *(f"({visits} > {some}) IS NULL", f"{visits} IS NOT DISTINCT FROM NULL"),
        f"CASE WHEN {visits} > {some} THEN {visits} < 10 END",
        f"GREATEST({visits}, 3) = 3",
    ]
    if "age" in rows and rng.random() < 0.2:
        atoms = [f"{rows['age']} + {visits} > {40 + some}", f"{rows['age']} > 5 * {visits}"]
    return rng.choice(atoms)


def _of_bmi(rng: random.Random, rows: Source) -> str:
    bmi, edge = rows["bmi"], rng.choice(EDGES)
    return rng.choice([f"{bmi} >= {edge}", f"{bmi} < {edge}", f"NOT {bmi} >= {edge}", f"{bmi} > 0"])


def _of_insured(rng: random.Random, rows: Source) -> str:
    insured = rows["insured"]
    return rng.choice(
        [
            *(insured, f"NOT {insured}", f"{insured} IS NULL", f"COALESCE({insured}, FALSE)"),
            *(f"{insured} = TRUE", f"{insured} IS NOT TRUE", f"{insured} IS DISTINCT FROM FALSE"),
        ]
    )


def _of_admitted(rng: random.Random, rows: Source) -> str:
    admitted, day = rows["admitted"], rng.choice(DAYS)
    return rng.choice(
        [
            *(f"{admitted} >= DATE '{day}'", f"{admitted} < CAST('{day}' AS DATE)"),
            *(f"EXTRACT(month FROM {admitted}) = {rng.randint(0, 13)}", f"'{day}' > {admitted}"),
            f"DATE_TRUNC('month', {admitted}) = DATE '2024-01-01'",
            f"DATE_DIFF('month', {admitted}, DATE '{day}') > 0",
            f"EXTRACT(day FROM AGE(DATE '{day}', {admitted})) = {rng.randint(0, 30)}",
            f"LAST_DAY({admitted}) < TIMESTAMP '{day} 12:00:00'",
            f"{admitted} BETWEEN '2023-12-01' AND '{day}'",
        ]
    )


def _of_cost(rng: random.Random, rows: Source) -> str:
    cost, some = rows["cost"], rng.choice(["0", "99.5", "250", "333.3", "500"])
    return rng.choice([f"{cost} > {some}", f"{cost} BETWEEN 20 AND {some}", f"{some} >= {cost}"])


def _of_stay(rng: random.Random, rows: Source) -> str:
    stay, some = rows["stay"], rng.choice(["0.5", "2.25", "7", "13.99"])
    return rng.choice(
        [
            *(f"{stay} <= {some}", f"NOT {stay} > {some}", f"{stay} IS NULL"),
            *(f"FLOOR({stay} / 2) = {rng.randint(0, 7)}", f"COALESCE({stay}, {some}) >= {some}"),
        ]
    )


def _of_country(rng: random.Random, rows: Source) -> str:
    country = rows["country"]
    return rng.choice([f"{country} = 'Norway'", f"{country} IS NULL", f"{country} LIKE '%a%'"])


def _of_population(rng: random.Random, rows: Source) -> str:
    return f"{rows['population']} > {rng.choice(['500000', '1e6', '2.2e6', '0'])}"


_ATOMS: dict[str, Callable[[random.Random, Source], str]] = {
    "sex": _of_sex,
    "city": _of_city,
    "blood": _of_blood,
    "age": _of_age,
    "visits": _of_visits,
    "bmi": _of_bmi,
    "insured": _of_insured,
    "admitted": _of_admitted,
    "cost": _of_cost,
    "stay": _of_stay,
    "country": _of_country,
    "population": _of_population,
}
