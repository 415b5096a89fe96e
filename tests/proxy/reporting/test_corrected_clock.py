"""A report of a ledger whose clock was corrected counts in windows as the ledger does."""

import datetime as dt
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.clock import ClockGuard
from accountant.ledger.entries import Charge, LimitSet
from accountant.ledger.limits import Limit, Payer, Subject, SubjectKind, Window
from accountant.ledger.mending import correct_clock
from accountant.ledger.opening import open_ledger
from cube.measurement import UNITS_PER_EPSILON
from proxy.reporting.report import ReportFormat, make_report, read_report
from tests.support.short_ledger import CHARGE, OPENED, WEIGHT, appended

STEP = dt.timedelta(days=10**5)
ANN = Subject(SubjectKind.ANALYST, "ann")
LIMIT = LimitSet(Limit(ANN, Fraction(3, 4), Window.DAY), "owner")
BEFORE, TO_COME, NOW, NEXT_DAY = (
    f"{day}T12:00:00.000+00:00" for day in ("2026-11-01", "2099-01-01", "2026-11-03", "2026-11-04")
)


@pytest.mark.parametrize(("at", "n_weights"), [(NOW, 3), (NEXT_DAY, 1)])
def test_what_was_charged_at_a_time_to_come_counts_as_of_the_correction(
    tmp_path: Path, at: str, n_weights: int
) -> None:
    times = [BEFORE]
    with open_ledger(tmp_path / "people.ledger", ClockGuard(STEP)) as ledger:
        ledger._clock = lambda: times[-1]
        appended(ledger, OPENED)
        appended(ledger, LIMIT)
        times.append(TO_COME)
        appended(ledger, CHARGE)
        times.append(NOW)
        correct_clock(ledger, by="owner")
        times.append(at)
        spent = 2 * WEIGHT.units
        appended(ledger, Charge(Payer("ann"), CHARGE.blocks[:1], spent, spent + WEIGHT.units))
        entries = list(ledger.entries())
        counted = ledger.history("people").spent_by(ANN, Window.DAY.start(at))
    verdict = verify(entries, has_columns=True)
    assert verdict.problem is None
    (table,) = read_report(entries, verdict).tables
    (allowance,) = table.allowances
    assert allowance.used == ((ANN, Fraction(counted, UNITS_PER_EPSILON)),)
    assert counted == n_weights * WEIGHT.units
    assert [one.counted_at for one in table.purchases] == [NOW, at]
    assert [one.at for one in table.purchases] == [TO_COME, at]
    page = make_report(entries, ReportFormat.HTML, verdict=verdict).decode()
    assert "clock corrected" in page
