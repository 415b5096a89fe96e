"""What SmartNoise SQL would charge for statements at the half-widths that they were answered with.

It is installed by pip into an environment of its own, which needs a package index and some minutes.
The library itself is asked for two numbers of each statement, which depend on neither the rows nor
the condition: what it costs at an epsilon of 10 a column, and how wide each count and sum is then
(`get_privacy_cost`, `get_simple_accuracy`). Its noise is in proportion to 1 / epsilon, so that both
numbers say what another width costs. The half-width of an average or a ratio is that of its two
parts by the delta method. A column is as wide as ours in the median of its groups, and the epsilon
of a statement is that of its most demanding column, since the library has one for all columns.

It has no quantiles and no correlations, whose statements are left out on both sides. It cannot
group by an expression of a day: it is given a column of months, which its owner might have added.
"""

import json
import math
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from benchmarks.first_asked import Aggregate, Asked
from benchmarks.first_tables import Declared
from benchmarks.report import progress

REQUIREMENT: Final = "smartnoise-sql==1.0.10"
MONTH: Final = "month_of"
ALPHA: Final = 0.05
EPSILON: Final = 10.0  # at 1 it refuses the noise of large sums

# Reads [[metadata, [[statement, its parts], ..]], ..]; writes [cost, half-widths] or an error each.
PROGRAM: Final = """
import json, sys
import pandas as pd
from snsql import Privacy, from_df
answers = []
for metadata, statements in json.load(sys.stdin):
    (table,) = metadata[""]["public"].values()
    rows = pd.DataFrame(columns=[name for name, one in table.items() if isinstance(one, dict)])
    reader = from_df(rows, privacy=Privacy(epsilon={epsilon}, delta=1e-9), metadata=metadata)
    for sql, parts in statements:
        try:
            epsilon, _ = reader.get_privacy_cost(sql)
            widths = reader.get_simple_accuracy(parts, {alpha})
            answers.append([float(epsilon), [w for w in widths if w is not None]])
        except ValueError as error:
            answers.append(str(error))
    print(len(answers), file=sys.stderr)
json.dump(answers, sys.stdout)
""".replace("{alpha}", str(ALPHA)).replace("{epsilon}", str(EPSILON))


@dataclass(frozen=True, slots=True)
class Reached:
    """An answered statement.

    Parameters
    ----------
    asked : Asked
    cost : float
        The epsilon that it spent.
    columns : tuple of tuples of (half_width, truth, divisor)
        For each aggregate, its groups with an interval; a divisor is NaN where there is none.
    """

    asked: Asked
    cost: float
    columns: tuple[tuple[tuple[float, float, float], ...], ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """What the library says of a statement, scaled to an epsilon of 1 a column.

    Parameters
    ----------
    epsilon : float
        The cost.
    widths : tuple of float
        The half-width of each part of each aggregate, in order.
    """

    epsilon: float
    widths: tuple[float, ...]


AskedOfSize = Mapping[int, Sequence[tuple[Declared, Sequence[Reached]]]]


def smartnoise_figures(asked: AskedOfSize) -> dict[str, object]:
    """For each size and session, what both spend on the statements that both answer."""
    shapes = _shapes(asked)
    with TemporaryDirectory(prefix="tacit-peers-") as folder:
        python = _installed(Path(folder))
        if python is None:
            return {"failed": f"{REQUIREMENT} could not be installed"}
        scales = _scales(python, shapes)
    figures: dict[str, object] = {"library": REQUIREMENT}
    for n_rows, sessions in asked.items():
        figures[f"{n_rows}_rows"] = [
            {"table": table.name, **_beside(table, reached, scales)} for table, reached in sessions
        ]
    return figures


def _beside(
    table: Declared, reached: Sequence[Reached], scales: Mapping[str, Scale]
) -> dict[str, object]:
    """What one session spent, and the library would."""
    ours, theirs, unanswered = [], [], []
    for one in reached:
        scale = scales.get(shape(table, one.asked).sql)
        price = None if scale is None else price_of(one, scale)
        if price is None:
            unanswered.append(one.asked.kind)
            continue
        ours.append(one.cost)
        theirs.append(price)
    return {
        "statements": len(ours),
        "epsilon": math.fsum(ours),
        "epsilon_of_smartnoise": math.fsum(theirs),
        "left_out": {kind: unanswered.count(kind) for kind in sorted(set(unanswered))},
    }


def price_of(reached: Reached, scale: Scale) -> float | None:
    """The epsilon at which the library's half-widths are no wider than ours.

    Parameters
    ----------
    reached : Reached
    scale : Scale

    Returns
    -------
    epsilon : float or None
        None if it has none of the columns with an interval.
    """
    widths = iter(scale.widths)
    factors = []
    for one, groups in zip(reached.asked.aggregates, reached.columns, strict=True):
        parts = [next(widths) for _ in one.parts]
        factors += [_factor(parts, groups)] if groups else []
    return scale.epsilon * max(factors) if factors else None


def _factor(parts: Sequence[float], groups: Sequence[tuple[float, float, float]]) -> float:
    """The epsilon a column at which one is as wide as ours in the median of its groups."""
    ours, truth, divisor = np.array(groups, dtype=np.float64).T
    theirs = np.full_like(ours, parts[0])
    if len(parts) == 2:
        theirs = np.hypot(parts[0], truth * parts[1]) / divisor
    return float(np.median(theirs / ours))


def shape(table: Declared, asked: Asked) -> Asked:
    """A statement without its condition, its order and expressions of days."""
    keys = tuple(MONTH if table.days.name in key else key for key in asked.keys)
    return replace(asked, keys=keys, where="", limit=0)


def parts_sql(table: Declared, asked: Asked) -> str:
    """The statement that has each part of each aggregate as a column of its own."""
    parts = tuple(Aggregate(part) for one in asked.aggregates for part in one.parts)
    return replace(shape(table, asked), aggregates=parts).sql


def _shapes(asked: AskedOfSize) -> dict[str, tuple[Declared, dict[str, str]]]:
    """For each table, the different statements by their texts, and those of their parts."""
    found: dict[str, tuple[Declared, dict[str, str]]] = {}
    for sessions in asked.values():
        for table, reached in sessions:
            _, statements = found.setdefault(table.name, (table, {}))
            for one in reached:
                if all(column.parts for column in one.asked.aggregates):
                    said = shape(table, one.asked).sql
                    statements[said] = parts_sql(table, one.asked)
    return found


def metadata(table: Declared) -> dict[str, Any]:
    """A table as SmartNoise declares it."""
    columns: dict[str, Any] = {table.person: {"type": "int", "private_id": True}}
    columns |= {one.name: {"type": "string"} for one in table.categories}
    columns |= {
        one.name: {
            "type": "float" if one.step else "int",
            "lower": one.low,
            "upper": one.high,
        }
        for one in table.numbers
    }
    columns[MONTH] = {"type": "string"}
    bound = {"max_ids": table.rows_per_person, "row_privacy": False, "rows": 1}
    return {"": {"public": {table.name: {**bound, **columns}}}}


def _scales(
    python: Path, shapes: Mapping[str, tuple[Declared, Mapping[str, str]]]
) -> dict[str, Scale]:
    """What the library says of each statement that it knows how to answer."""
    wanted = [
        [metadata(table), [[_in_schema(table, one) for one in pair] for pair in said.items()]]
        for table, said in shapes.values()
    ]
    texts = [sql for _, said in shapes.values() for sql in said]
    progress(f"asking {REQUIREMENT} of {len(texts)} statements")
    done = subprocess.run(  # noqa: S603 - an environment and a program of our own
        [str(python), "-c", PROGRAM],
        input=json.dumps(wanted),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    scales = {}
    for sql, answer in zip(texts, json.loads(done.stdout), strict=True):
        if isinstance(answer, str):
            progress(f"not answered: {sql}: {answer}"[:200])
        else:
            cost, widths = answer
            scales[sql] = Scale(cost / EPSILON, tuple(EPSILON * one for one in widths))
    return scales


def _in_schema(table: Declared, sql: str) -> str:
    return sql.replace(f" FROM {table.name}", f" FROM public.{table.name}")


def _installed(folder: Path) -> Path | None:
    """The interpreter of an environment that has the library; None if pip could not make one."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", REQUIREMENT]
    progress(f"installing {REQUIREMENT}")
    return None if subprocess.run(command, check=False, stdout=sys.stderr).returncode else python  # noqa: S603 - made here
