"""The server is ready while any worker is, and what a dead one counted stays counted."""

from prometheus_client import CollectorRegistry, Counter, generate_latest

from proxy.workers.supervisor import SILENCE_SECONDS_MAX, Roll, Vitals


def vitals(*, is_ready: bool = True, n_calls: int = 0) -> Vitals:
    registry = CollectorRegistry()
    Counter("tacit_calls", "", registry=registry).inc(n_calls)
    return Vitals(is_ready, tuple(registry.collect()))


def n_calls(roll: Roll) -> float | None:
    return roll.registry.get_sample_value("tacit_calls_total")


def test_one_worker_that_is_ready_is_enough() -> None:
    roll = Roll()
    assert not roll.is_ready
    roll.note(0, vitals(is_ready=False))
    assert not roll.is_ready
    roll.note(1, vitals())
    assert roll.is_ready
    roll.strike(1)
    assert not roll.is_ready


def test_a_worker_that_falls_silent_is_not_ready() -> None:
    now = [100.0]
    roll = Roll(lambda: now[0])
    roll.note(0, vitals())
    now[0] += SILENCE_SECONDS_MAX
    assert roll.is_ready
    now[0] += 0.1
    assert not roll.is_ready


def test_counts_never_fall_when_workers_die_and_begin_again() -> None:
    roll = Roll()
    assert n_calls(roll) is None
    roll.note(0, vitals(n_calls=3))
    roll.note(1, vitals(n_calls=4))
    assert n_calls(roll) == 7
    roll.note(0, vitals(n_calls=5))
    assert n_calls(roll) == 9
    roll.strike(0)
    assert n_calls(roll) == 9
    roll.note(0, vitals(n_calls=1))
    assert n_calls(roll) == 10
    roll.strike(0)
    roll.strike(1)
    assert n_calls(roll) == 10
    assert b"tacit_calls_total 10.0" in generate_latest(roll.registry)
