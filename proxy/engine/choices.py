"""What is said of rows that were picked by noisy answers, and of answers that say little.

The first rows in the order of an answer are those that the noise favoured. How probably they are
the first is simulated: the joint law of the true values is in hand. An answer whose half-width is
above itself does not tell its size, nor a relative target that ended at its floor the share that
was asked for.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cube.encoding import fingerprint
from inference.block_estimates import values
from inference.joint import draw_errors
from planner.workload import PICKED, ColumnKind, Pick
from proxy.api.requests import ColumnReceipt
from proxy.engine.formula_widths import has_target
from proxy.engine.results import AnsweredPart
from proxy.engine.simulation import SimulatedLaw

Floats: TypeAlias = NDArray[np.float64]

N_DRAWS: Final = 1000
N_DRAWS_LEAST: Final = 300  # of so many, none says below .01 (with a confidence of .95)
N_DRAWN_MAX: Final = 2_000_000  # rows times draws, and noises times draws
NULLS: Final = (
    "Rows without a value are among the first, where PostgreSQL has them, too: say NULLS LAST."
)
SURE: Final = 0.99  # nothing is said of an order that is so probably right


def choice_caveats(pick: Pick | None, answered: Sequence[AnsweredPart]) -> Iterator[str]:
    """How probably the rows that a statement shows are those that it means."""
    if pick is None or not answered:
        return
    if _n_null_shown(pick, answered[0]):
        yield NULLS
    found = _of_pick(pick, answered[0])
    if found is None:
        yield PICKED
        return
    of_set, of_order, n = found
    if of_order >= SURE:
        return
    which, tend = ("largest", "large") if pick.is_descending else ("smallest", "small")
    are, rows, they = ("are", f"The {n} rows", "they") if n > 1 else ("is", "The row", "it")
    what = f"the {n} {which}" if n > 1 else f"the {which}"
    if pick.n_before:
        what = f"those from place {pick.n_before + 1} on"
    in_order = f", and in this order with {_shown(of_order)}" if n > 1 else ""
    yield (
        f"{rows} {are} picked by noisy answers: {they} {are} {what} with a probability of "
        f"{_shown(of_set)}{in_order}. What is picked because it is {tend} tends to be too {tend}; "
        f"with simultaneous => {answered[0].part.n_rows}, intervals hold whatever is picked."
    )


def _shown(probability: float) -> str:
    """A probability, of which no more is known than the draws tell."""
    least = 3 / N_DRAWS_LEAST
    return f"{probability:.2g}" if probability >= least else f"below {least:g}"


def wide_caveats(columns: Sequence[ColumnReceipt], data: pa.Table) -> Iterator[str]:
    """In how many of the shown rows a half-width is above the answer itself."""
    for column in columns:
        place = data.column_names.index(column.name)
        shown = data.column(place).to_numpy(zero_copy_only=False).astype(np.float64)
        low, high = np.array(column.low, np.float64), np.array(column.high, np.float64)
        is_wide = (high - low) / 2 > np.abs(shown)  # never of a NULL
        if is_wide.any():
            where = f" in {int(is_wide.sum())} of {is_wide.size} rows" if is_wide.size > 1 else ""
            yield (
                f"The half-width of {column.name} is above {column.name} itself{where}: use the "
                f"interval{' there' if where else ''}, not the value."
            )


def floor_notes(answered: Sequence[AnsweredPart]) -> Iterator[str]:
    """Which relative targets ended at the half-width that is narrow enough for any answer."""
    for part in answered:
        confidence = part.part.confidence
        if part.part.is_default or part.is_boxed:  # a table that answers by itself has no floor
            continue
        for item in part.answers:
            relative, floor = item.answer.relative, item.answer.width_floor
            if relative is None or not floor or not has_target(item.answer):
                continue
            widths = item.half_widths(confidence)
            missed = (widths > relative * np.abs(item.values)) & (widths <= floor)
            if missed.any():
                yield (
                    f"{item.answer.name} is not known to {relative:g} of itself in "
                    f"{int(missed.sum())} of its {missed.size} rows: a half-width of {floor:g} is "
                    "narrow enough for any. Name at_least, or half_width, for narrower ones."
                )


def _n_null_shown(pick: Pick, part: AnsweredPart) -> int:
    """How many of the shown rows are there because they have no value."""
    if pick.by.kind is not ColumnKind.ANSWER or not pick.is_null_first:
        return 0
    n_null = int(np.isnan(part.answers[pick.by.index].values).sum())
    n_others = part.part.n_rows - n_null
    return max(0, min(n_null, pick.n_before + pick.n_rows) - pick.n_before) if n_others else 0


def _of_pick(pick: Pick, part: AnsweredPart) -> tuple[float, float, int] | None:
    """The probabilities that rows are the first, and that they are in order; and their number.

    None if that is not known. Where all rows are shown, none was picked.
    """
    drawn = _drawn(pick, part)
    if drawn is None:
        return None
    shown, truths = drawn
    first, last = pick.n_before, min(pick.n_before + pick.n_rows, shown.size)
    if first >= last or last - first == shown.size:
        return 1.0, 1.0, last - first
    sign = -1.0 if pick.is_descending else 1.0
    order = np.argsort(sign * shown, kind="stable")[first:last]
    of_truths = np.argsort(sign * truths, axis=0, kind="stable")[first:last]
    is_ordered = (of_truths == order[:, None]).all(axis=0)
    is_same = (np.sort(of_truths, axis=0) == np.sort(order)[:, None]).all(axis=0)
    return float(is_same.mean()), float(is_ordered.mean()), last - first


def _drawn(pick: Pick, part: AnsweredPart) -> tuple[Floats, Floats] | None:
    """What rows are ordered by, (n_rows,), and draws of its true values, (n_rows, n_draws).

    A row without a value is at the end where NULL is.
    """
    if part.is_boxed or not part.part.n_rows:
        return None
    if pick.by.kind is ColumnKind.ANSWER:
        item = part.answers[pick.by.index]
        if isinstance(item.law, SimulatedLaw):
            end = math.inf if pick.is_null_first == pick.is_descending else -math.inf
            shown = np.where(np.isnan(item.values), end, item.values)
            draws = np.where(np.isnan(item.law.draws), shown[:, None], item.law.draws)
            return (shown, draws) if draws.shape[1] >= N_DRAWS_LEAST else None
        if item.law is not None:
            return None
        (place,) = item.answer.uses
    else:
        place = pick.by.index
    used = part.aggregates[place]
    if used.aggregate.is_total or part.unknown_rows(place).any():
        return None
    posteriors = used.posteriors
    n_terms = sum(one.terms.place.size for one in posteriors)
    n_draws = min(N_DRAWS, N_DRAWN_MAX // max(len(posteriors), n_terms, 1))
    if n_draws < N_DRAWS_LEAST:
        return None
    names = "".join(map(fingerprint, used.aggregate.blocks))
    rng = np.random.default_rng([len(part.history), *names.encode()])
    shown = values(posteriors)
    return shown, shown[:, None] - draw_errors(posteriors, part.history, n_draws, rng)
