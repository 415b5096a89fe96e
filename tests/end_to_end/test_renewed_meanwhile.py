"""A table that is renewed while a statement, a batch or a preview is under way."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.gate.gate import Gate
from cube.measurement import Measurement
from cube.pace import Deadline, paced
from cube.refusals import PrivateRows
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, BatchRequest, QueryRequest
from proxy.tables.extent import DataReplaced
from proxy.tables.purchasing import DirectPurchases
from tests.support.renewed_customers import (
    AFTER,
    BEFORE,
    BY_CITY,
    CONFIG,
    PRECISE,
    ask,
    check_ledger,
    counts,
    follow,
    renew,
    served,
    write,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, BEFORE)
    (tmp_path / "tacit.toml").write_text(
        CONFIG.replace("half_width = 2", 'half_width = 2\npreview = "synthetic"')
    )
    return tmp_path


def test_a_statement_that_paid_before_is_not_paid_for_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cap is for all that it spends: begun again, it would spend twice as much."""
    right = Gate.complete
    with served(folder) as service:

        def renewed_behind(gate: Gate, seq: int) -> tuple[Measurement, ...] | None:
            found = right(gate, seq)
            monkeypatch.setattr(Gate, "complete", right)
            renew(folder)
            follow(service)
            return found

        monkeypatch.setattr(Gate, "complete", renewed_behind)
        cap = Fraction(1)
        target = RequestedTarget(half_width=5, epsilon_cap=cap)
        with paced(Deadline(60)), pytest.raises(DataReplaced, match="replaced while the request"):
            ask(service, target=target)
        assert 0 < service.budgets()[0].spent <= cap
        with paced(Deadline(60)):
            assert set(counts(ask(service, target=target).data)) == set(AFTER)
    check_ledger(folder, 2)


def test_a_statement_that_has_not_paid_begins_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Gate.charge_each
    with served(folder) as service:

        def renewed_before(gate: Gate, *arguments: object, **options: object) -> object:
            monkeypatch.setattr(Gate, "charge_each", right)
            renew(folder)
            follow(service)
            return right(gate, *arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(Gate, "charge_each", renewed_before)
        with paced(Deadline(60)):
            assert counts(ask(service).data) == AFTER
    check_ledger(folder, 2)


def test_a_batch_that_was_planned_on_earlier_data_is_planned_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, n_tried = DirectPurchases.buy_plan, [0]
    with served(folder) as service:

        def renewed_before(bought: DirectPurchases, *arguments: object, **cap: object) -> Fraction:
            n_tried[0] += 1
            if n_tried[0] == 1:
                renew(folder)
                follow(service)
            return right(bought, *arguments, **cap)  # type: ignore[arg-type]

        monkeypatch.setattr(DirectPurchases, "buy_plan", renewed_before)
        batch = BatchRequest(sql=BY_CITY, caller=LOCAL, target=PRECISE, buy=True)
        service.engine.plan_batch(batch)
        assert n_tried == [2]
        answered = ask(service)
        assert counts(answered.data) == AFTER
        assert answered.receipt is not None
        assert answered.receipt.epsilon_spent == 0
    check_ledger(folder, 2)


def test_no_preview_is_of_earlier_data(folder: Path) -> None:
    look = QueryRequest(sql="SELECT city FROM customers LIMIT 50", caller=LOCAL)
    make = "CREATE SYNTHETIC TABLE {} FROM customers WITH (epsilon => 20)"
    with served(folder) as service:
        service.engine.answer(replace(look, sql=make.format("spring")))
        assert "spring" in str(service.engine.answer(look).receipt)
        renew(folder)
        follow(service)
        with pytest.raises(PrivateRows):
            service.engine.answer(look)
        service.engine.answer(replace(look, sql=make.format("autumn")))
        assert "autumn" in str(service.engine.answer(look).receipt)
