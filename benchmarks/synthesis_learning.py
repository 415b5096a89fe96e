"""Learning from synthetic rows: how well a classifier trained on them does on real ones.

    python -m benchmarks.synthesis_learning [--quick]

Four fifths of the rows are a private table behind a gate, with the system's noise. A synthetic
table is made of them for a target; gradient boosting is trained on its rows and tested on the real
rows that were kept out. Beside it stand the same trained on the real rows, and on a synthetic table
made without a target. The area under the curve is .5 for guessing. Needs scikit-learn (the extra
`bench`), and the files of `shared/data` for all tables but Adult.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.synthesis_tables import (
    NAME,
    BenchTable,
    example,
    positions,
    served,
    tables,
)
from proxy.api.requests import LOCAL
from proxy.synthetic_tables.make import make
from proxy.synthetic_tables.request import SynthesisRequest

TENTH, ONE, THREE = Fraction(1, 10), Fraction(1), Fraction(3)
N_RUNS = 3
KEPT_OUT = 5  # every fifth row, after shuffling


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is learned: a column of two classes, and the areas wanted by epsilon."""

    table: str
    target: str
    least: dict[Fraction, float]  # of the area
    least_share: dict[Fraction, float]  # of the area of what was trained on the real rows


LESSONS = (
    Lesson("adult14", "income>50K", {TENTH: 0.86, ONE: 0.900, THREE: 0.908}, {}),
    Lesson("adult13", "income", {}, {TENTH: 0.938, ONE: 0.981, THREE: 0.990}),  # the same of real
    Lesson("br2000", "13", {}, {THREE: 0.97}),
    Lesson("acs", "19", {}, {THREE: 0.97}),
)


def main() -> None:
    """Train on each table, and print the areas."""
    quick = wants_quick("How well models trained on synthetic rows do on real ones.")
    threadpool_limits(limits=1)
    at_hand = {**tables(), "adult13": example()}
    figures: dict[str, object] = {}
    bars: list[Bar] = []
    for lesson in LESSONS:
        if lesson.table in at_hand:
            found, more = _learned(lesson, at_hand[lesson.table], 1 if quick else N_RUNS)
            figures[f"{lesson.table}, {lesson.target}"] = found
            bars += more
    run(figures, bars)


def _learned(lesson: Lesson, table: BenchTable, n_runs: int) -> tuple[dict[str, float], list[Bar]]:
    rows = np.random.default_rng(0).permutation(table.rows())
    tested, trained = rows[::KEPT_OUT], np.delete(rows, np.s_[::KEPT_OUT], axis=0)
    place = table.place(lesson.target)
    real = area(trained, tested, place)
    figures, bars = {"real": real}, []
    for epsilon in (TENTH, ONE, THREE):
        name = f"epsilon {float(epsilon):g}"
        for target in ((), (lesson.target,)):
            areas = [
                area(_synthetic(table, trained, epsilon, target), tested, place)
                for _ in range(n_runs)
            ]
            key = f"{name}, {'target' if target else 'no target'}"
            figures[key] = float(np.mean(areas))
            figures[f"{key}, spread"] = float(np.std(areas))
        progress(f"{lesson.table}: {figures}")
        found = figures[f"{name}, target"]
        wanted = lesson.least.get(epsilon, real * lesson.least_share.get(epsilon, 0.0))
        if wanted:
            title = f"area under the curve, {lesson.table}, {name}"
            bars.append(Bar(title, found, wanted, found >= wanted))
    return figures, bars


def _synthetic(
    table: BenchTable, rows: NDArray[np.int64], epsilon: Fraction, target: tuple[str, ...]
) -> NDArray[np.int64]:
    """Rows of a synthetic table of some of a table's rows."""
    with _of_rows(table, rows) as some, served(some) as private:
        request = SynthesisRequest(table=NAME, epsilon=epsilon, target=target)
        return positions(table.schema, make(private, request, LOCAL.payer).rows)


@contextmanager
def _of_rows(table: BenchTable, rows: NDArray[np.int64]) -> Iterator[BenchTable]:
    """The table with some of its rows, in a file of its own."""
    lines = [",".join(axis.name for axis in table.schema.axes)]
    texts = [["" if value is None else str(value) for value in axis.levels]
             for axis in table.schema.axes]  # fmt: skip
    columns = [np.array(text)[codes] for text, codes in zip(texts, rows.T, strict=True)]
    lines += [",".join(row) for row in zip(*columns, strict=True)]
    with TemporaryDirectory(prefix="tacit-bench-") as folder:
        path = Path(folder) / "rows.csv"
        path.write_text("\n".join(lines) + "\n")
        yield replace(table, path=path)


def area(trained: NDArray[np.int64], tested: NDArray[np.int64], place: int) -> float:
    """The area under the curve of a classifier of one column by the others; .5 without classes."""
    classes = trained[:, place]
    if np.unique(classes).size < 2:
        return 0.5
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(np.delete(trained, place, axis=1), classes)
    likely = model.predict_proba(np.delete(tested, place, axis=1))[:, 1]
    return float(roc_auc_score(tested[:, place], likely))


if __name__ == "__main__":
    main()
