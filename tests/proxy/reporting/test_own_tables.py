"""Collections and streams in the audit report: what they cost, and what is public of them."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.auditor.verdict import Verdict
from accountant.auditor.verify import verify
from accountant.ledger.collections import CollectionBody, CollectionClosed, CollectionOpened
from accountant.ledger.entries import Entry
from accountant.ledger.ledger import Ledger
from accountant.ledger.stores.sqlite_store import SqliteReader
from accountant.ledger.streams import EpochBegun, EpochReleased
from local_dp.campaign import campaign_digest, campaign_text
from proxy.reporting.model import N_EPOCHS_TOLD
from proxy.reporting.report import ReportFormat, make_report, read_report
from streams.estimates import count_interval
from streams.population import Everyone
from tests.support.a_stream import DAILY, MECHANISM, UNITS, ledger_on, noted, write_a_stream
from tests.support.campaigns import survey, wide
from tests.support.html_pages import Page

SCRIPT = "<script>alert(1)</script>"
N_DAYS = 20


def note(ledger: Ledger, body: CollectionBody) -> None:
    ledger.append_collection(lambda _book: body)


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    """Two collections, one of them closed; streams, one of them by the day for twenty days."""
    path = tmp_path_factory.mktemp("report") / "a.ledger"
    with ledger_on(path, "2026-11-01") as ledger:
        for campaign in (survey(SCRIPT), wide()):
            is_wide = campaign.name == "wide"
            note(ledger, CollectionOpened(campaign_text(campaign), 5000, is_wide, "owner"))
        note(ledger, CollectionClosed(SCRIPT, 4321, "ab" * 32, "owner"))
        write_a_stream(ledger)
        noted(ledger, "daily", replace(DAILY, budget_units=40 * UNITS))
    for day in range(N_DAYS):
        name = f"2026-11-{day + 1:02}"
        with ledger_on(path, name) as ledger:
            if day:
                noted(ledger, "daily", EpochReleased(f"2026-11-{day:02}", (480 + day,)))
            noted(ledger, "daily", EpochBegun(name, day * UNITS, (day + 1) * UNITS))
    with closing(SqliteReader(path)) as reader:
        return list(reader.entries_after(0))


@pytest.fixture(scope="module")
def verdict(entries: list[Entry]) -> Verdict:
    found = verify(entries, has_columns=True)
    assert found.problem is None
    return found


@pytest.fixture(scope="module")
def page(entries: list[Entry], verdict: Verdict) -> Page:
    return Page(make_report(entries, ReportFormat.HTML, verdict=verdict).decode())


def rows(page: Page) -> Iterator[str]:
    yield from (text.strip() for text in page.texts if text.strip())


def test_programs_get_what_each_respondent_loses(entries: list[Entry], verdict: Verdict) -> None:
    told = json.loads(make_report(entries, ReportFormat.JSON, verdict=verdict))
    closed, still_open = told["collections"]
    recomputed = {one.name: one.recomputed for one in verdict.collections}
    assert Fraction(closed.pop("recomputed")) == recomputed[SCRIPT]
    assert closed == {
        "collection": SCRIPT,
        "campaign": campaign_digest(campaign_text(survey(SCRIPT))),
        "epsilon_of_each_respondent": "2",
        "n_attributes": 3,
        "n_combinations": 3,
        "n_answered_by_each": 1,
        "by_invitation": False,
        "n_respondents_max": 5000,
        "n_respondents": 4321,
        "opened_at": closed["opened_at"],
        "closed_at": closed["closed_at"],
    }
    assert closed["opened_at"] < closed["closed_at"]
    assert (still_open["n_respondents"], still_open["closed_at"]) == (None, None)
    assert still_open["by_invitation"]


def test_a_release_is_told_as_its_law_has_it(entries: list[Entry], verdict: Verdict) -> None:
    told = json.loads(make_report(entries, ReportFormat.JSON, verdict=verdict))
    daily = next(one for one in told["streams"] if one["stream"] == "daily")
    assert (daily["n_epochs"], daily["n_released"]) == (N_DAYS, N_DAYS - 1)
    assert (daily["epsilon"], daily["spent"], daily["budget"]) == ("1", str(N_DAYS), "40")
    *released, last = daily["released"]
    assert (last["noisy_ones"], last["users"]) == (None, None)
    for day, one in enumerate(released, start=1):
        assert (one["epoch"], one["noisy_ones"]) == (f"2026-11-{day:02}", 480 + day)
    first, latest = released[0], released[-1]
    assert first["users"] is None, "only of the latest epochs"
    interval = count_interval(latest["noisy_ones"], Everyone(1000), MECHANISM, 0.95)
    assert (latest["users"]["low"], latest["users"]["high"]) == (interval.low, interval.high)
    assert interval.low < latest["users"]["estimate"] < interval.high


def test_a_release_is_told_for_each_predicate(
    entries: list[Entry], verdict: Verdict, page: Page
) -> None:
    told = json.loads(make_report(entries, ReportFormat.JSON, verdict=verdict))
    orders = next(one for one in told["streams"] if one["stream"] == "orders")
    assert (orders["epsilon"], orders["predicates"]) == ("3", ["paid", "mobile"])
    (released,) = orders["released"]
    assert released["noisy_ones"] == 400
    for (predicate, one), ones in zip(released["where"].items(), (-3, 77), strict=True):
        assert one["noisy_ones"] == ones, predicate
        interval = count_interval(ones, Everyone(1000), MECHANISM, 0.95)
        assert (one["users"]["low"], one["users"]["high"]) == (interval.low, interval.high)
    assert list(released["where"]) == ["paid", "mobile"]
    assert {"paid", "mobile"} <= set(rows(page))


def test_an_epoch_is_a_line_in_the_ledgers_order(entries: list[Entry], verdict: Verdict) -> None:
    text = make_report(entries, ReportFormat.CSV, verdict=verdict).decode()
    lines = list(csv.DictReader(io.StringIO(text, newline="")))[1:]
    numbers = [int(one["seq"]) for one in lines]
    assert numbers == sorted(numbers)
    epochs = [one for one in lines if one["kind"] == "epoch_begun" and one["table"] == "daily"]
    assert [one["epsilon_spent"] for one in epochs] == [str(day + 1) for day in range(N_DAYS)]
    assert {one["epsilon"] for one in epochs} == {"1"}


def test_the_page_has_both_and_leads_there(page: Page) -> None:
    sections = [value for tag, name, value in page.attributes if (tag, name) == ("section", "id")]
    assert sections == [
        *("overview", "collections", "streams", "guarantee"),
        *("rules", "access", "verification"),
    ]
    assert {"#collections", "#streams"} <= set(page.values("href"))
    seen = " ".join(" ".join(page.texts).split())
    for words in (
        "2 collections of answers that respondents randomised themselves",
        "4 streams with an ε for each epoch",
        "1 of 3 combinations of 3 attributes",
        "2 of 2 combinations of 2 attributes",
        "4,321 5,000 closed 2026-11-01",
        "Of a collection the server never held",
        "Two looks at a state",
        "found it the same to the last unit",
        f"The latest {N_EPOCHS_TOLD} of {N_DAYS} epochs",
        "hits (dropped)",
        "Computed from the noisy numbers that the ledger has of each epoch",
        "those users are counted who came while it held",
        "not released",
    ):
        assert words in seen, words
    assert campaign_digest(campaign_text(wide())) in set(rows(page))


def test_a_campaigns_name_is_text(page: Page) -> None:
    assert "script" not in page.tags
    assert SCRIPT in set(rows(page))


def test_a_report_that_disagrees_with_the_auditor_is_not_made(
    entries: list[Entry], verdict: Verdict
) -> None:
    *others, last = verdict.streams
    wrong = replace(verdict, streams=(*others, replace(last, n_released=last.n_released + 1)))
    with pytest.raises(RuntimeError, match="differ from the auditor's"):
        read_report(entries, wrong)


def test_a_ledger_without_either_has_no_word_of_them(tmp_path: Path) -> None:
    with ledger_on(tmp_path / "a.ledger", "2026-11-01"):
        pass
    with closing(SqliteReader(tmp_path / "a.ledger")) as reader:
        entries = list(reader.entries_after(0))
    made = make_report(entries, ReportFormat.HTML, verdict=verify(entries, has_columns=True))
    found = Page(made.decode())
    assert "#streams" not in found.values("href")
    assert "Beside tables" not in " ".join(found.texts)
