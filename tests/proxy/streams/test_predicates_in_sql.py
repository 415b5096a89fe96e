"""Predicates of streams in SQL: WHERE one of them, from an estimator of its own."""

from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from cube.refusals import InvalidTarget, UnsupportedSql
from tests.support.streaming import COUNT, EACH, TODAY, TOMORROW, WATCHED, streaming

IDS = np.arange(300)
PAID, MOBILE = IDS < 120, IDS % 5 == 0
FAR = 30  # 1000 bits of epsilon 8 miss by a deviation of about 1: that far in no lifetime


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.ledger"


def test_an_epoch_is_released_with_all_of_its_counts(path: Path) -> None:
    with streaming(path) as server:
        (made,) = server.rows(WATCHED)
        assert (made["bits"], made["epsilon"]) == (1000, 24.0)
        assert (server.folder / "visits.all.bits").stat().st_size == 64 + 3 * 125
        server.observe(IDS, where={"paid": PAID, "mobile": MOBILE})
        server.observe(IDS)  # again, and nothing holds: who paid has paid
        (paid,) = server.rows(f"{COUNT} WHERE paid")
        assert server.kinds() == ["stream_opened", "epoch_begun", "epoch_released"]
        (each,) = server.rows(EACH)
        assert each["n_paid"] == paid["n"]
        for n, true in zip(each.values(), (300, PAID.sum(), MOBILE.sum()), strict=True):
            assert abs(n - true) < FAR
        verdict = verify(list(server.ledger.entries()))
        assert verdict.problem is None
        assert verdict.streams[0].spent == 24
    with streaming(path) as again:
        assert again.rows(EACH) == [each]


@pytest.mark.parametrize(
    ("condition", "column"),
    [
        ("paid = TRUE", "n_paid"),
        ("paid IS TRUE AND epoch = 'all'", "n_paid"),
        ("mobile", "n_mobile"),
        ("mobile AND (paid OR NOT paid)", "n_mobile"),
        ("NOT (NOT mobile)", "n_mobile"),
        ("paid OR NOT paid", "n"),
        ("epoch = 'all'", "n"),
    ],
)
def test_what_a_condition_means_decides_and_not_how_it_is_written(
    path: Path, condition: str, column: str
) -> None:
    with streaming(path) as server:
        server.rows(WATCHED)
        server.observe(IDS, where={"paid": PAID, "mobile": MOBILE})
        (each,) = server.rows(EACH)
        assert server.rows(f"{COUNT} WHERE {condition}") == [{"n": each[column]}]


@pytest.mark.parametrize(
    "sql",
    [
        f"{COUNT} WHERE NOT paid",
        f"{COUNT} WHERE paid AND mobile",
        f"{COUNT} WHERE paid OR mobile",
        f"{COUNT} WHERE paid AND NOT mobile",
        "SELECT paid, COUNT(DISTINCT user) FROM visits GROUP BY paid",
    ],
)
def test_what_has_no_estimator_is_refused_with_the_list_and_releases_nothing(
    path: Path, sql: str
) -> None:
    with streaming(path) as server:
        server.rows(WATCHED)
        with pytest.raises(UnsupportedSql, match="held: paid, mobile") as caught:
            server.rows(sql)
        assert "WHERE paid" in str(caught.value.hint)
        assert "epoch_released" not in server.kinds()


def test_a_row_that_counts_nobody_is_zero_for_certain(path: Path) -> None:
    with streaming(path) as server:
        server.rows(WATCHED)
        for condition in ("paid AND NOT paid", "mobile IS NULL"):
            result = server.ask(f"{COUNT} WHERE {condition}")
            assert result.data.to_pylist() == [{"n": 0}]
        (row,) = server.rows(f"SELECT paid, {COUNT[7:]} WHERE paid GROUP BY paid")
        assert row["paid"] is True


def test_each_day_has_its_own_counts(path: Path) -> None:
    with streaming(path) as server:
        server.rows(WATCHED.replace("epsilon => 24", "epsilon => 24, epochs => 'day'"))
        server.observe(IDS, where={"paid": PAID})
        server.turn(TOMORROW)
        server.observe(IDS[:50], where={"paid": True})
        server.turn("2026-11-26")
        rows = server.rows(
            "SELECT epoch, COUNT(DISTINCT user) AS n FROM visits WHERE paid GROUP BY epoch "
            "ORDER BY epoch"
        )
        assert [one["epoch"] for one in rows] == [TODAY, TOMORROW]
        assert abs(rows[0]["n"] - 120) < FAR
        assert abs(rows[1]["n"] - 50) < FAR
        with pytest.raises(UnsupportedSql, match="in several epochs"):
            server.rows(f"{COUNT} WHERE paid")


def test_a_share_of_two_counts_has_an_interval(path: Path) -> None:
    with streaming(path) as server:
        server.rows(WATCHED)
        server.observe(IDS, where={"paid": PAID})
        result = server.ask(
            "SELECT COUNT(DISTINCT user) FILTER (WHERE paid) / COUNT(DISTINCT user) AS share "
            "FROM visits"
        )
        assert result.receipt is not None
        (column,) = result.receipt.columns
        half_width = (column.high[0] - column.low[0]) / 2
        # Of 95 %: three times as far off is a matter of 1e-8.
        assert abs(0.4 - column.low[0] - half_width) < 3 * half_width < 0.15
        assert result.receipt.epsilon_spent == 0


def test_an_epsilon_is_divided_and_never_too_small_for_a_part(path: Path) -> None:
    with streaming(path) as server:
        with pytest.raises(InvalidTarget, match="from 3/1024 to 32, in equal parts for 3 counts"):
            server.rows(WATCHED.replace("epsilon => 24", "epsilon => 0.0029"))
        server.rows(WATCHED.replace("epsilon => 24", "epsilon => 1"))
        opened = server.ledger.streams.streams["visits"].opened
        assert 2**40 - 3 <= opened.epsilon_units <= 2**40


def test_columns_of_predicates_are_listed(path: Path) -> None:
    with streaming(path) as server:
        server.rows(WATCHED)
        listed = server.rows(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name = 'visits' ORDER BY ordinal_position"
        )
        assert {"column_name": "paid", "data_type": "boolean"} in listed
        (stream,) = server.rows("SELECT predicates, epsilon FROM data_privacy.streams")
        assert stream == {"predicates": "paid, mobile", "epsilon": 24.0}
