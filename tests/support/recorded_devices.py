"""Record and replay where data never lies in the clear: respondents' devices, and streams.

A respondent's answer is the only release about them, so their two rows are the neighbours: with the
same draws, both have to ask for the same draws, and no answer may be more probable for one of them
than the campaign says it loses. Of a stream the neighbours are two arrivals more or less of one
user: with the same words for everybody else, states differ at the user's own places alone, and so
do the numbers to which noise is added.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cube.exponential import epsilon_units_of
from local_dp.respondent import Asked, Level, randomised
from streams.arrivals import Arrivals
from streams.epoch import Epoch
from streams.state import BitState
from tests.support.recorded import Compared, Convicted

Row = Mapping[str, Level]


@dataclass
class Draws:
    """Draws that are given, and 0 after them; how far each could have gone is noted."""

    given: tuple[int, ...]
    sizes: list[int] = field(default_factory=list)

    def below(self, n: int) -> int:
        """The next draw."""
        self.sizes.append(n)
        place = len(self.sizes) - 1
        return self.given[place] if place < len(self.given) else 0


def walked(asked: Asked, row: Row, given: tuple[int, ...] = ()) -> Iterator[tuple[str, list[int]]]:
    """Every answer that a device may give, with the sizes of all the draws that make it."""
    draws = Draws(given)
    answer = randomised(asked, row, draws.below)
    if len(draws.sizes) == len(given):
        yield answer, draws.sizes
        return
    for draw in range(draws.sizes[len(given)]):
        yield from walked(asked, row, (*given, draw))


def compared_answers(asked: Asked, one: Row, other: Row) -> Compared:
    """Compare what a device draws and says for two rows, over all draws that there are.

    Raises
    ------
    Convicted
        If other draws are asked for, or an answer tells more than the campaign says.
    """
    laws: list[Counter[str]] = []
    runs = [list(walked(asked, row)) for row in (one, other)]
    if [sizes for _, sizes in runs[0]] != [sizes for _, sizes in runs[1]]:
        raise Convicted("draws", "what is drawn depends on the row")
    for run in runs:
        law: Counter[str] = Counter()
        for answer, sizes in run:
            law[json.dumps(json.loads(answer), sort_keys=True)] += Fraction(  # type: ignore[assignment]
                1, int(np.prod([int(size) for size in sizes], dtype=object))
            )
        laws.append(law)
    first, second = laws
    if first.keys() != second.keys():
        raise Convicted("answers", "an answer is impossible for one of two rows")
    ratio = max(max(Fraction(first[a]) / second[a], Fraction(second[a]) / first[a]) for a in first)
    lost = epsilon_units_of(ratio)
    if lost > asked.epsilon_units:
        raise Convicted("answers", "an answer loses more than the campaign says")
    return Compared(sum(len(run) for run in runs), lost / asked.epsilon_units)


class Words:
    """Words that are the same for the same events, whatever events are left out."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words, self._place = words, 0

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next words."""
        self._place += n
        taken = self._words[self._place - n : self._place]
        if taken.size < n:
            raise Convicted("draws", "more is drawn than in the other run")
        return taken

    @property
    def is_over(self) -> bool:
        """Whether all were drawn."""
        return self._place == self._words.size


def compared_states(
    epoch: Epoch, arrivals: list[int], user: int, folder: Path, seed: int
) -> Compared:
    """Compare the states and the releases of a stream with and without a user.

    Parameters
    ----------
    epoch : Epoch
        Open, with a place for each user.
    arrivals : list of int
        In order; the user's among them.
    user : int
    folder : Path
        Where states are.
    seed : int
        Of the words.

    Raises
    ------
    Convicted
        If anything but the user's own bits differs, or a bit is not what its word says.
    """
    generator = np.random.default_rng(seed)
    n_estimators = len(epoch.estimators)
    words = generator.integers(0, 2**64, (len(arrivals), n_estimators), dtype=np.uint64)
    at_first = generator.integers(0, 2**64, epoch.n_bits, dtype=np.uint64)
    last = generator.integers(0, 2**64, 4096, dtype=np.uint64)
    found = []
    for name, kept in (("with", arrivals), ("without", [one for one in arrivals if one != user])):
        is_kept = np.isin(arrivals, kept)
        state = BitState.created(
            folder / f"{name}-{seed}",
            epoch.n_bits,
            epoch.mechanism.state,
            epoch.state_name,
            entropy=Words(np.concatenate([at_first, words[is_kept].ravel()])),
        )
        for one in kept:
            epoch.observe(
                state, Arrivals(np.array([one]), where=dict.fromkeys(epoch.predicates, True))
            )
        _check_drawn(epoch, state, kept, words[is_kept])
        bits = [state.count_ones(place, place + 1) for place in range(epoch.n_bits)]
        released = epoch.released(state, Words(last)).noisy_ones
        found.append((bits, released, (folder / f"{name}-{seed}").stat().st_size))
        state.erase()
    return _compared_runs(epoch, user, *found)


def _check_drawn(
    epoch: Epoch, state: BitState, arrivals: list[int], words: NDArray[np.uint64]
) -> None:
    """Raise Convicted unless the bit of each user who came is what the last word for it says."""
    threshold = np.uint64(epoch.mechanism.state.threshold)
    for user, drawn in dict(zip(arrivals, words, strict=True)).items():
        for number, word in enumerate(drawn):
            place = user + number * epoch.population.n_bits
            if state.count_ones(place, place + 1) != int(word < threshold):
                raise Convicted("state", "a bit is not what its word says")


def _compared_runs(
    epoch: Epoch,
    user: int,
    one: tuple[list[int], tuple[int, ...], int],
    other: tuple[list[int], tuple[int, ...], int],
) -> Compared:
    places = {user + place * epoch.population.n_bits for place in range(len(epoch.estimators))}
    changed = {place for place, (a, b) in enumerate(zip(one[0], other[0], strict=True)) if a != b}
    if not changed <= places:
        raise Convicted("state", "bits of other users differ")
    if one[2] != other[2]:
        raise Convicted("state", "the length of the file depends on who came")
    if any(abs(a - b) > 1 for a, b in zip(one[1], other[1], strict=True)):
        raise Convicted("release", "a user moves a number by more than one")
    moved = sum(abs(a - b) for a, b in zip(one[1], other[1], strict=True))
    if moved != len(changed):
        raise Convicted("release", "what is released is not the ones and their noise")
    return Compared(len(one[0]) + len(one[1]), moved / len(places))
