"""Generated statements that are broken, forbidden or odd: they end in a refusal or in an answer."""

# ruff: noqa: S608 - the statements are what is generated

import random
import re
from dataclasses import replace

from tests.sql.fuzz_statements import Statement

FORBIDDEN = (
    "SELECT * FROM patients",
    "SELECT p.* FROM patients AS p LIMIT 3",
    "SELECT age FROM patients",
    "SELECT nonsense FROM patients GROUP BY nonsense",
    "SELECT COUNT(*) FROM nowhere",
    "SELECT COUNT(*) FROM patients AS a JOIN patients AS b ON a.age = b.age",
    "SELECT COUNT(*) FROM patients AS a, patients AS b",
    "SELECT COUNT(*) FROM (SELECT * FROM patients LIMIT 5) AS t",
    "SELECT (SELECT age FROM patients) AS x",
    "SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients)",
    "SELECT MAX(age), MIN(visits) FROM patients",
    "SELECT age, ROW_NUMBER() OVER () FROM patients",
    "SELECT patient_id, COUNT(*) FROM patients GROUP BY patient_id",
    "SELECT COUNT(*) FROM patients WHERE patient_id = 1000",
    "SELECT COUNT(*) FROM patients WHERE cost > 100",
    "SELECT cost, COUNT(*) FROM patients GROUP BY cost",
    "SELECT COUNT(*) FROM patients WHERE bmi > 26",
    "SELECT COUNT(*) FROM patients WHERE city = 'Atlantis'",
    "SELECT COUNT(DISTINCT city) FROM patients",
    "SELECT age, visits, admitted, COUNT(*) FROM patients GROUP BY 1, 2, 3",
    "SELECT SUM(1 / (age - 30)) FROM patients",
    "SELECT COUNT(*) / 0 FROM patients",
    "SELECT RANDOM(), COUNT(*) FROM patients",
    "SELECT COUNT(*) FROM patients WHERE RANDOM() < 0.5",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT * FROM duckdb_settings()",
    "SELECT CAST(COUNT(*) * 1000 AS TINYINT) FROM patients",
    "SELECT CAST('x' AS INTEGER), COUNT(*) FROM patients",
    "SELECT LN(COUNT(*) - 100000) FROM patients",
    "SELECT SQRT(-COUNT(*)) FROM patients",
    "SELECT EXP(COUNT(*)) FROM patients",
    "SELECT SUM(age) OVER (), COUNT(*) FROM patients GROUP BY age",
    "SELECT COUNT(*) FROM patients HAVING age > 3",
    "SELECT GROUPING(sex) FROM patients GROUP BY city",
    "DELETE FROM patients",
    "SELECT COUNT(*) FROM patients; SELECT COUNT(*) FROM patients",
    "SELECT DP_INTERVAL_LOW(n) FROM patients",
    "SELECT COUNT(*) AS n, DP_COST(n) + 1 FROM patients",
    "WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t",
    "VALUES (1)",
    "SELECT",
    "",
    "SELECT * FROM data_privacy.domains",
    "SELECT * FROM data_privacy.budgets",
    "SELECT * FROM cities JOIN (SELECT city, COUNT(*) FROM patients GROUP BY 1) t USING (city)",
)
ODDITIES = (
    *(
        "'",
        '"',
        "--",
        "/*",
        "*/",
        ";",
        "(",
        ")",
        "()",
        ",",
        "NULL",
        "*",
        ".",
        "::",
        "$1",
        "?",
        "\\",
    ),
    *("'O''Hara'", '"sex"', "U&'\\0041'", "E'\\n'", "$$x$$", "1e400", "1e-400", "0x1F", "''", '""'),
    *("99999999999999999999", "-0.0", "SELECT", "FROM", "GROUP BY", "DISTINCT", "OVER ()", "AS"),
    *("/* a -- comment */", "-- rest\n", "FILTER (WHERE TRUE)", "INTERVAL '1 day'", "ALL", "[1]"),
    *("CASE", "END", "LATERAL", "{'a': 1}", "é", "\u202e", 'COLLATE "C"', "AT TIME ZONE 'UTC'"),
    *(
        "patients",
        "age",
        "k0",
        "a0",
        "COUNT(*)",
        "tacit_part_0",
        "main.",
        "EXISTS (SELECT 1)",
        "IN",
    ),
    *(
        "WITHIN GROUP (ORDER BY age)",
        "TABLESAMPLE (10)",
        "USING (city)",
        "QUALIFY TRUE",
        "LIKE 'x'",
    ),
)
_WORD = re.compile(r"'[^']*'|\w+|\s+|.", re.DOTALL)


def junk(rng: random.Random, good: Statement) -> Statement:
    """A statement that is none of the grammar's, which DuckDB is not asked."""
    kind = rng.random()
    if kind < 0.2:
        text = rng.choice(FORBIDDEN)
    elif kind < 0.3:
        text = _grown(rng, good.for_tacit)
    else:
        text = good.for_tacit
        for _ in range(rng.choice([1, 1, 2, 4])):
            text = _mutated(rng, text)
    return replace(good, text=text, is_compared=False, has_public_keys=False)


def _mutated(rng: random.Random, text: str) -> str:
    words = _WORD.findall(text)
    if not words:
        return rng.choice(ODDITIES)
    place, other = rng.randrange(len(words)), rng.randrange(len(words))
    kind = rng.randrange(5)
    if kind == 0:
        del words[place]
    elif kind == 1:
        words[place], words[other] = words[other], words[place]
    elif kind == 2:
        words.insert(place, words[other])
    elif kind == 3:
        words[place] = f" {rng.choice(ODDITIES)} "
    else:
        words.insert(place, f" {rng.choice(ODDITIES)} ")
    return "".join(words)


def _grown(rng: random.Random, text: str) -> str:
    """The same, long or deep."""
    n = rng.choice([3, 25, 35, 200])
    listed = ", ".join(str(k) for k in range(n * 20))
    return rng.choice(
        [
            f"SELECT {'(' * n}COUNT(*){')' * n} FROM patients",
            f"SELECT COUNT(*) FROM patients WHERE {'NOT ' * n}insured",
            f"SELECT COUNT(*) FROM patients WHERE {' AND '.join(['age > 30'] * n)}",
            f"SELECT COUNT(*) FROM patients WHERE {' OR '.join(['age = 30'] * n)}",
            f"SELECT COUNT(*) FROM patients WHERE age + 0 IN ({listed})",
            f"SELECT {' + '.join(['COUNT(*)'] * n)} FROM patients",
            f"SELECT {'-' * 1}{'- ' * n}COUNT(*) FROM patients",
            f"SELECT COUNT(*) FROM patients WHERE {'CASE WHEN ' * n}TRUE{' THEN TRUE END' * n}",
            f"SELECT {', '.join(f'COUNT(*) AS n{k}' for k in range(n))} FROM patients",
            "SELECT * FROM "
            + "(SELECT * FROM " * min(n, 40)
            + f"({text}) AS t"
            + ") AS t" * min(n, 40),
        ]
    )
