"""What several processes count is what one server counted, however it fell to them."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.samples import Sample

from proxy.monitoring.metrics import COUNTED, counted, summed

EDGES = (1.0, 2.0)


def metrics_of(counts: list[tuple[str, float]], n_entries: int = 0) -> list[Metric]:
    """What a process says that has counted this, and has read so much of the ledger."""
    registry = CollectorRegistry()
    answers = Counter("tacit_answers", "", ["kind"], registry=registry)
    seconds = Histogram("tacit_stage_seconds", "", registry=registry, buckets=EDGES)
    for kind, value in counts:
        answers.labels(kind).inc()
        seconds.observe(value)
    Gauge("tacit_ledger_entries", "", registry=registry).set(n_entries)
    Gauge("tacit_epsilon_left", "", registry=registry).set(100 - n_entries)
    Gauge("tacit_purchases_in_flight", "", registry=registry).set(len(counts))
    Gauge("tacit_ledger_writable", "", registry=registry).set(n_entries % 2)
    return list(registry.collect())


def values(metrics: list[Metric]) -> dict[tuple[str, str], float]:
    return {(one.name, str(one.labels)): one.value for one in samples(metrics)}


def samples(metrics: list[Metric]) -> Iterator[Sample]:
    for metric in metrics:
        yield from (one for one in metric.samples if not one.name.endswith("_created"))


counts_of_one = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.5, 1.5, 9.0])))


@given(st.lists(counts_of_one, min_size=1, max_size=4), st.integers(0, 4))
def test_counts_of_the_present_and_the_past_add_up(
    counts: list[list[tuple[str, float]]], n_present: int
) -> None:
    parts = [metrics_of(one) for one in counts]
    past = counted(parts[n_present:])
    one_process = metrics_of([each for one in counts for each in one])
    expected = [one for one in one_process if one.type in COUNTED]
    found = summed(parts[:n_present], past)
    assert values([one for one in found if one.type in COUNTED]) == values(expected)


def test_the_ledger_is_as_who_has_read_most_of_it_says_and_writable_if_all_can_write_it() -> None:
    found = values(summed([metrics_of([], 7), metrics_of([("a", 1.0)], 12), metrics_of([], 9)]))
    assert found["tacit_ledger_entries", "{}"] == 12
    assert found["tacit_epsilon_left", "{}"] == 88
    assert found["tacit_purchases_in_flight", "{}"] == 1
    assert found["tacit_ledger_writable", "{}"] == 0


def test_a_series_is_as_old_as_the_oldest_of_its_parts() -> None:
    parts = [metrics_of([("a", 1.0)]) for _ in range(2)]
    begun = [one.value for part in parts for one in part[0].samples if one.name.endswith("created")]
    (found,) = (
        one.value for one in summed(parts)[0].samples if one.name == "tacit_answers_created"
    )
    assert found == min(begun)


def test_summing_changes_none_of_the_parts() -> None:
    part = metrics_of([("a", 1.0)])
    before = values(part)
    summed([part, part], part)
    assert values(part) == before
