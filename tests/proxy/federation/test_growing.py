"""Federated tables that grow: readable as far as at each holder, on real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accountant.auditor.compare import compared
from accountant.auditor.verify import verify
from cube.refusals import ConfigurationInvalid, SourceUnavailable
from proxy.admin import open_configured, periods
from proxy.api import LOCAL, QueryRequest, QueryResult
from proxy.bootstrap import Service, build
from proxy.config.settings import load
from tests.support.hospitals import COUNT, Hospital, columns, coordinates, hospitals


def grows(through: int) -> str:
    return columns(more=f'grows = {{axis = "ward", closed_through = {through}}}')


@pytest.fixture
def both(tmp_path: Path) -> Iterator[list[Hospital]]:
    with hospitals(tmp_path, grows(2), north=700, south=500) as found:
        yield found


def coordinator(folder: Path, of: list[Hospital], through: int = 4) -> Service:
    path = folder / "coordinator.toml"
    path.write_text(coordinates(of, declared=grows(through)))
    return build(load(path))


def ask(service: Service, sql: str = COUNT) -> QueryResult:
    return service.engine.answer(QueryRequest(sql=sql, caller=LOCAL))


def n_of(found: QueryResult) -> float:
    return float(found.data.to_pylist()[0]["n"])


def test_it_is_readable_as_far_as_at_each_holder(tmp_path: Path, both: list[Hospital]) -> None:
    """Wards 0 to 4 have a fifth of the patients each; three of them are closed everywhere."""
    service = coordinator(tmp_path, both)
    try:
        first = ask(service)
        assert abs(n_of(first) - 1200 * 3 / 5) < 4 * 60
        assert first.receipt is not None
        assert first.receipt.epsilon_spent == both[0].spent() == both[1].spent()
        both[0].stop()
        both[0].declare(grows(4))
        both[0].start()
    finally:
        service.close()
    service = coordinator(tmp_path, both)
    try:
        assert ask(service).receipt.epsilon_spent == 0  # type: ignore[union-attr]  # it has one
        both[1].stop()
        both[1].declare(grows(3))
        both[1].start()
    finally:
        service.close()
    service = coordinator(tmp_path, both)
    try:
        later = ask(service)
        assert abs(n_of(later) - 1200 * 4 / 5) < 4 * 60
        then = ask(service, f"{COUNT} AS OF 2")
        assert then.receipt is not None
        assert then.receipt.epsilon_spent == 0
        assert n_of(then) == pytest.approx(n_of(first))
        entries = list(service.ledger.entries())
        held = {one.name: list(one.service.ledger.entries()) for one in both}
        assert verify(entries).problem is None
        assert not compared(entries, held).problems
    finally:
        service.close()


def of_units(through: int) -> str:
    bounds = 'unit = "who"\nrows_per_unit_max = 2\n'
    return columns(more=f'{bounds}grows = {{axis = "ward", closed_through = {through}}}')


def test_units_are_counted_as_it_grows(tmp_path: Path) -> None:
    """The coordinator's cost is the sum of the holders' (federation.md, "Counts of units").

    The half-width of the counts is 60 at most; 4 times as much is missed less than once in 10**4.
    """
    of_who = COUNT.replace("COUNT(*)", "COUNT(DISTINCT who)")
    units = of_who.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 60)")
    with hospitals(tmp_path, of_units(2), north=700, south=500) as both:
        found: list[QueryResult] = []
        for through in (2, 4):
            for one in both:
                one.stop()
                one.declare(of_units(through))
                one.start()
            path = tmp_path / "coordinator.toml"
            path.write_text(coordinates(both, declared=of_units(4)))
            service = build(load(path))
            try:
                found.append(ask(service, units))
                assert abs(n_of(found[-1]) - 1200 * (through + 1) / 5) < 4 * 60
                assert ask(service, units).receipt.epsilon_spent == 0  # type: ignore[union-attr]  # it has one
                ask(service)  # rows beside them
                (budget,) = service.budgets()
                spent = [one.spent() for one in both]
                assert max(spent) < budget.spent <= sum(spent)
                entries = list(service.ledger.entries())
                held = {one.name: list(one.service.ledger.entries()) for one in both}
                for ledger in (entries, *held.values()):
                    assert verify(ledger).problem is None
                assert not compared(entries, held).problems
                then = ask(service, f"{units} AS OF 2")
                assert then.receipt is not None
                assert then.receipt.epsilon_spent == 0
                assert n_of(then) == n_of(found[0])
            finally:
                service.close()
        assert found[1].receipt is not None
        assert found[1].receipt.epsilon_spent > 0


def test_a_first_start_needs_every_holder(tmp_path: Path, both: list[Hospital]) -> None:
    both[1].stop()
    with pytest.raises(ConfigurationInvalid, match="south"):
        coordinator(tmp_path, both)


def test_changes_that_a_holder_accepted_are_accepted_by_the_coordinator(
    tmp_path: Path, both: list[Hospital]
) -> None:
    service = coordinator(tmp_path, both)
    try:
        ask(service)
    finally:
        service.close()
    south = both[1]
    south.stop()
    south.admit(900)
    settings = load(south.folder / "tacit.toml")
    with open_configured(settings.ledger) as ledger:
        assert periods.accept_changes(ledger, settings.tables[0], "0", "2", by="owner")
    south.start()
    service = coordinator(tmp_path, both)
    try:
        with pytest.raises(SourceUnavailable):
            ask(service, COUNT.replace("FROM patients", "FROM patients WHERE sex = 'f'"))
        asked = load(tmp_path / "coordinator.toml").tables[0]
        assert periods.accept_changes(service.ledger, asked, "0", "4", by="owner")
    finally:
        service.close()
    service = coordinator(tmp_path, both)
    try:
        assert abs(n_of(ask(service)) - 1600 * 3 / 5) < 4 * 60
    finally:
        service.close()


def test_synthetic_rows_are_of_what_is_readable_at_the_holders_that_answer(
    tmp_path: Path, both: list[Hospital]
) -> None:
    path = tmp_path / "coordinator.toml"
    declared = grows(4).replace("[tables", "holder_public = true\n[tables", 1)
    text = coordinates(both, declared=declared)
    (tmp_path / "synthetic").mkdir()
    path.write_text(f'{text}\n[server]\nsynthetic_dir = "synthetic"\n')
    service = build(load(path))
    order = "CREATE SYNTHETIC TABLE {} FROM patients WITH (epsilon => 2, evaluate => 0.5, {})"
    rows = "SELECT holder, MAX(ward) AS ward, COUNT(*) AS n FROM s GROUP BY holder ORDER BY holder"
    try:
        made = ask(service, order.format("s", "columns => (holder, ward, sex)")).data.to_pylist()
        assert made[0]["evaluated"].startswith("at most 0.0")
        north, south = ask(service, rows).data.to_pylist()
        assert (north["holder"], south["holder"]) == ("north", "south")
        assert north["ward"] == south["ward"] == 2
        # Of 700 and of 500 patients three wards of five; noise of 1 / 2 per ward is far below.
        assert abs(north["n"] - 420) < 40
        assert abs(south["n"] - 300) < 40
        both[1].stop()
        made = ask(service, order.format("t", "holders => 'any'")).data.to_pylist()
        assert "south" in made[0]["incomplete"]
        assert abs(made[0]["n_rows"] - 420) < 40
    finally:
        service.close()
