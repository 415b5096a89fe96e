"""The keyed permutation and the keyed buckets: bijections, fair samples, fair loads."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cube.refusals import InvalidRequest
from streams.population import (
    Buckets,
    Everyone,
    KeyedBuckets,
    KeyedPermutation,
    Sample,
    keyed_words,
)

P_VALUE_MIN = 1e-9  # a sound one fails one run in a billion


def key(number: int) -> bytes:
    return number.to_bytes(16, "little")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 100, 1000, 4096, 65_537])
def test_each_place_has_one_user(size: int) -> None:
    places = KeyedPermutation(size, key(size)).places(np.arange(size))
    assert np.array_equal(np.sort(places), np.arange(size))


def test_the_largest_universe_is_permuted_within_itself() -> None:
    ids = np.array([0, 1, 2**31, 2**32 - 1])
    for size in (2**32, 2**32 - 5):
        places = KeyedPermutation(size, key(1)).places(ids[ids < size])
        assert np.unique(places).size == places.size
        assert places.min() >= 0
        assert places.max() < size


@pytest.mark.parametrize("step", [2, 3, 256, 1000])
def test_any_set_of_ids_is_sampled_fairly(step: int) -> None:
    """Of even ids, a linear hash would take all or none."""
    universe, n_bits = 200_000, 20_000
    stream = np.arange(0, universe, step)
    taken = [Sample(universe, n_bits, key(k)).places(stream).size for k in range(10)]
    law = stats.hypergeom(universe, n_bits, stream.size)
    off = (np.array(taken) - law.mean()) / law.std()
    assert stats.chi2.sf(np.sum(off**2), off.size) > P_VALUE_MIN
    assert stats.chi2.cdf(np.sum(off**2), off.size) > P_VALUE_MIN


def test_over_keys_each_user_of_a_small_universe_is_as_likely_in_each_place() -> None:
    seen = np.zeros((8, 8))
    for k in range(1600):
        seen[np.arange(8), KeyedPermutation(8, key(k)).places(np.arange(8))] += 1
    statistic = np.sum((seen - 200) ** 2 / 200)
    assert stats.chi2.sf(statistic, 49) > P_VALUE_MIN


@pytest.mark.parametrize("kind", ["following", "spread", "high bits", "low bits"])
def test_buckets_are_occupied_as_at_random(kind: str) -> None:
    ids: NDArray[np.int64] = {
        "following": np.arange(20_000),
        "spread": np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 20_000),
        "high bits": np.arange(20_000) << 40,
        "low bits": np.arange(20_000) * 65_536,
    }[kind]
    off = []
    for k in range(10):
        population = Buckets(10_007, key(k))
        law = population.occupied(20_000)
        n_occupied = np.unique(population.places(ids)).size
        off.append((n_occupied - law.mean) / law.variance**0.5)
    statistic = float(np.sum(np.square(off)))
    assert stats.chi2.sf(statistic, 10) > P_VALUE_MIN
    assert stats.chi2.cdf(statistic, 10) > P_VALUE_MIN


def test_loads_of_buckets_are_even() -> None:
    loads = np.bincount(KeyedBuckets(1000, key(7)).places(np.arange(100_000)), minlength=1000)
    assert stats.chi2.sf(np.sum((loads - 100) ** 2 / 100), 999) > P_VALUE_MIN


def test_texts_have_ids_of_their_own() -> None:
    buckets = KeyedBuckets(1000, key(7))
    texts = [f"user {k}" for k in range(1000)]
    ids = buckets.ids_of_texts(texts)
    assert np.unique(ids).size == 1000
    assert np.array_equal(ids, buckets.ids_of_texts(texts))
    assert not np.array_equal(ids, KeyedBuckets(1000, key(8)).ids_of_texts(texts))


def test_words_depend_on_key_and_label_and_nothing_else() -> None:
    assert np.array_equal(keyed_words(key(1), b"a", 5), keyed_words(key(1), b"a", 9)[:5])
    assert not np.array_equal(keyed_words(key(1), b"a", 5), keyed_words(key(2), b"a", 5))
    assert not np.array_equal(keyed_words(key(1), b"a", 5), keyed_words(key(1), b"b", 5))


@pytest.mark.parametrize("population", [Everyone(10), Sample(10, 5, key(1))])
def test_ids_of_nobody_are_refused_without_being_named(population: Everyone | Sample) -> None:
    for wrong in (10, -1, 123_456_789):
        with pytest.raises(InvalidRequest, match="0 to 9") as refusal:
            population.places(np.array([3, wrong]))
        assert str(wrong) not in refusal.value.explain().replace("0 to 9", "")


def test_populations_without_a_meaning_are_refused() -> None:
    for make in (
        lambda: Everyone(0),
        lambda: Everyone(2**32 + 1),
        lambda: Sample(10, 11, key(1)),
        lambda: Sample(10, 5, b"short"),
        lambda: Buckets(1, key(1)),
        lambda: Buckets(100, b"short"),
        lambda: KeyedPermutation(0, key(1)),
    ):
        with pytest.raises(ValueError, match="must"):
            make()
