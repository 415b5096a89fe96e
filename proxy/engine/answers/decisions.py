"""How narrow a block must be known until claims about its rows are decided; how sure they are.

The widths of looks, and the error probability of each, are those of `planner.decision`. A look that
is unlikely to decide anything is left out: one at which a row would have to be half a half-width
farther from an end than it seems to be now.

A comparison of a noisy value is right with the probability that the truth is on the same side.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inference import Posterior, RowEstimates, all_known, draw_errors, half_widths, values
from planner.decision import Comparison, Decision, SubqueryClaim
from planner.workload import Part
from proxy.engine.answers.results import AnsweredPart
from proxy.engine.answers.simulation import SimulatedLaw
from proxy.engine.answers.wanted_blocks import Asked, Step
from proxy.outer_sql.postprocessing import OuterSql

Floats: TypeAlias = NDArray[np.float64]

FARTHER: Final = 0.5  # half-widths that a row may be farther from an end than it seems
NARROWER: Final = 0.9  # of a known half-width: no look is closer to it
N_SURE_MAX: Final = 1000  # rows near an end, whose law is asked: some milliseconds
ROUNDED: Final = 1 + 1e-9  # times the last width: a law's half-width is rounded up
SURE: Final = 0.99  # nothing is said about a comparison that is so probably right
N_SAID_MAX: Final = 3  # comparisons that are spoken of


def ask_until_decided(step: Step, place: int, one: Asked, part: Part, rows: RowEstimates) -> None:
    """Ask for the next width of a block; for the known one, if its claims are decided.

    Parameters
    ----------
    one : Asked
        A block of an aggregate with a decision.
    rows : sequence of RowEstimate
        What is known of it.
    """
    decision, floor = _decision(one, part)
    grid = decision.widths(floor)
    known = all_known([rows])
    if known is None:
        step.ask(place, float(grid[0]), surest=floor)
        return
    nearest, widths, reach = _nearest_open(one, part, known)
    is_open = np.isfinite(nearest)
    if not is_open.any():
        step.ask(place, max(float(widths.max(initial=0.0)), floor))
        return
    seen, width = nearest[is_open], widths[is_open]
    deciding = (seen + FARTHER * width) * width / reach[is_open]
    wanted = float(np.minimum(deciding, NARROWER * width).min())
    step.ask(place, float(grid[grid <= wanted].max(initial=floor)), surest=floor)


def is_decided(one: Asked, part: Part, rows: Sequence[Posterior]) -> bool:
    """Whether the claims about every row of a block are decided, or no look is left."""
    return not np.isfinite(_nearest_open(one, part, rows)[0]).any()


def undecided(asked: Sequence[Asked], answered: Sequence[AnsweredPart]) -> Iterator[str]:
    """Which claims are not decided in some row, though the statement wants them decided."""
    for one in asked:
        part = answered[one.part]
        used = part.aggregates[one.aggregate]
        if used.aggregate.decision is None or not used.aggregate.decision.is_requested:
            continue
        nearest, _, _ = _nearest_open(one, part.part, used.posteriors[one.rows], at_last=True)
        n_open = int(np.isfinite(nearest).sum())
        if n_open:
            where = f" in {n_open} of {nearest.size} rows" if nearest.size > 1 else ""
            claims = " and ".join(used.aggregate.decision.claims)
            verb = "are" if len(used.aggregate.decision.claims) > 1 else "is"
            yield f"{claims} {verb} not decided{where}."


def _decision(one: Asked, part: Part) -> tuple[Decision, float]:
    """The decision about a block, and the half-width at which its looks end."""
    aggregate = part.aggregates[one.aggregate]
    if aggregate.decision is None:
        raise TypeError("the aggregate has no decision")
    return aggregate.decision, aggregate.target.half_width


def _nearest_open(
    one: Asked, part: Part, rows: Sequence[Posterior], *, at_last: bool = False
) -> tuple[Floats, Floats, Floats]:
    """How far the nearest end is that is not decided; half-widths; how far decides, (n_rows,) each.

    Infinitely far, where all ends are decided, or the row is known to the last width and `at_last`
    does not ask for it.
    """
    decision, floor = _decision(one, part)
    widths = half_widths(rows, one.wanted.target.confidence)
    reach = half_widths(rows, 1 - 2 * decision.error_of_look(floor))
    away = np.abs(values(rows)[:, None] - np.array(decision.ends))
    is_open = (away < reach[:, None]) & ((widths > floor * ROUNDED) | at_last)[:, None]
    return np.where(is_open, away, math.inf).min(axis=1), widths, reach


def certainty(comparison: Comparison, part: AnsweredPart) -> Floats | None:
    """How probably a comparison is right in each row, (n_rows,); None if that is not known.

    1 in rows that are so far from every end that it is right with a probability of `SURE`: for all
    others the law is asked, row by row.
    """
    rows: Sequence[Posterior] = part.aggregates[comparison.aggregate].posteriors
    ends = np.array(comparison.ends)
    if not part.has_laws or part.unknown_rows(comparison.aggregate).any() or not ends.size:
        return None
    shown = part.values(comparison.aggregate)[: len(rows)]
    sure = half_widths(rows, 1 - 2 * (1 - SURE) / ends.size)
    near = np.flatnonzero((np.abs(values(rows)[:, None] - ends) < sure[:, None]).any(axis=1))
    if not len(rows) or near.size > N_SURE_MAX:
        return None
    found = np.ones(len(rows))
    for place in near.tolist():
        inside = rows[place].probability(comparison.low, comparison.high)
        holds = comparison.low <= shown[place] <= comparison.high
        found[place] = inside if holds else 1 - inside
    return found


def comparison_caveats(answered: Sequence[AnsweredPart]) -> Iterator[str]:
    """How probably comparisons of noisy values are right, where that is not nearly sure."""
    for part in answered:
        for comparison in part.part.comparisons[:N_SAID_MAX]:
            found = certainty(comparison, part)
            if found is None:
                yield f"{comparison.text} compares noisy values: near the limit it may be wrong."
            elif found.min() < SURE:
                yield _said(comparison, found)


def _said(comparison: Comparison, found: Floats) -> str:
    least = math.floor(100 * found.min()) / 100
    if found.size == 1:
        return (
            f"{comparison.text} compares a noisy value, and is right with a probability of "
            f"{least:.2f}."
        )
    which = "chooses" if comparison.chooses_rows else "is"
    rest = "rows by noisy values, and" if comparison.chooses_rows else "computed from noisy values:"
    return (
        f"{comparison.text} {which} {rest} it is right with a probability below {SURE:g} in "
        f"{int((found < SURE).sum())} of {found.size} rows, {least:.2f} at the least."
    )


N_DRAWS: Final = 10_000  # a share of them is within .01 of the probability in 95 % of uses


def claimed_relations(
    claims: Sequence[SubqueryClaim], answered: Mapping[str, AnsweredPart], outer: OuterSql
) -> dict[str, pa.Table]:
    """The probabilities of claims about answers of several SELECTs, each a relation of one row.

    Answers of one table are drawn jointly; tables have noise of their own.
    """
    return {claim.name: _claimed(claim, answered, outer) for claim in claims}


def unanswered_claims(claims: Sequence[SubqueryClaim]) -> dict[str, pa.Table]:
    """The same before anything is answered."""
    return {claim.name: _unknown() for claim in claims}


def _unknown() -> pa.Table:
    return pa.table({"p": pa.array([None], pa.float64())})


def _claimed(
    claim: SubqueryClaim, answered: Mapping[str, AnsweredPart], outer: OuterSql
) -> pa.Table:
    draws = _joint_draws(claim, answered)
    if draws is None:
        return _unknown()
    columns = {f"d{place}": pa.array(one, pa.float64()) for place, one in enumerate(draws)}
    return outer.run(claim.sql, {"draws": pa.table(columns)})


def _joint_draws(claim: SubqueryClaim, answered: Mapping[str, AnsweredPart]) -> list[Floats] | None:
    """Draws of the true value of each answer, (N_DRAWS,) each; None if a law is not known."""
    found: dict[tuple[str, int], Floats] = {}
    linear: dict[str, list[tuple[str, int]]] = {}
    for name, place in claim.answers:
        part = answered[name]
        item = part.answers[place]
        if not part.has_laws or part.is_boxed or np.isnan(item.values).any():
            return None
        if item.law is None:
            linear.setdefault(part.part.table, []).append((name, place))
        elif isinstance(item.law, SimulatedLaw) and not np.isnan(item.law.draws).any():
            law = item.law.draws[0]
            rng = np.random.default_rng([law.size, *name.encode()])
            found[name, place] = rng.choice(law, N_DRAWS)
        else:
            return None
    for table, places in linear.items():
        posteriors = [answered[name].answers[place].posteriors[0] for name, place in places]
        history = answered[places[0][0]].history
        rng = np.random.default_rng([len(history), *table.encode()])
        errors = draw_errors(posteriors, history, N_DRAWS, rng)
        for at, row, error in zip(places, posteriors, errors, strict=True):
            found[at] = row.value - error
    return [found[at] for at in claim.answers]
