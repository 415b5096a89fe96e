"""The page: what is in it, what can never be in it, and that a browser shows it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from accountant.ledger.entries import Entry
from proxy.reporting.report import ReportFormat, make_report
from tests.proxy.reporting.ledgers import (
    SCRIPT,
    judged,
    write_gaussian,
    write_overspent,
    write_unasked,
    write_year,
)
from tests.support.chromium import screenshot
from tests.support.html_pages import Page, colours, contrast

CONTRAST_MIN = 4.5  # of text, WCAG 2.1 level AA
CONTRAST_MIN_DRAWN = 3.0  # of what is drawn, level AA too
MODES = ("light", "dark")


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    return write_year(tmp_path_factory.mktemp("year") / "year.ledger")


@pytest.fixture(scope="module")
def text(entries: list[Entry]) -> str:
    return made(entries)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_every_part_is_there_once_and_can_be_reached(page: Page) -> None:
    sections = [value for tag, name, value in page.attributes if (tag, name) == ("section", "id")]
    assert sections == [
        "overview", "table-1", "table-2", "guarantee", "rules", "access", "verification",
    ]  # fmt: skip
    assert len(set(page.values("id"))) == len(page.values("id"))
    targets = {value.removeprefix("#") for value in page.values("href")}
    assert targets <= set(page.values("id"))


def test_a_table_shows_what_it_is_about(page: Page) -> None:
    seen = " ".join(" ".join(page.texts).split())
    for words in (
        "Who spent it", "By group", "Limits in force", "When", "Where on each column", "Answers",
        "Parameters", "Plain Laplace", "wider than promised", "Not guaranteed", "Keyed fingerprint",
        "one row for each person", "pure ε-differential privacy",
        "18 measured, 1 raised", "Made with", "recomputed", "exactly",
    ):  # fmt: skip
        assert words in seen
    assert "Unit of privacy, neighbours all rows of one" not in seen, "no unit has several rows"
    assert "at 38 … 57" in seen, "the dearest ages by their names"
    assert "at 2020-02-01 … 2020-02-29" in seen


def test_a_table_says_what_its_dearest_charges_were_for(entries: list[Entry], page: Page) -> None:
    seen = " ".join(" ".join(page.texts).split())
    told = json.loads(make_report(entries, ReportFormat.JSON, verdict=judged(entries)))
    assert seen.count("For what") >= 2, "for each table that was asked"
    for table in told["tables"]:
        bought = [charge["bought"] for charge in table["dearest_charges"]]
        assert bought
        assert set(bought) <= {text.strip() for text in page.texts}
    assert "COUNT(*) GROUP BY city" in seen


def test_there_is_a_picture_for_each_table_and_column(page: Page) -> None:
    drawn = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "role")]
    assert drawn == ["img"] * (2 + 3 + 1)
    assert all(page.values("aria-label"))


def test_a_table_that_nobody_asked_says_so(tmp_path: Path) -> None:
    entries = write_unasked(tmp_path / "unasked.ledger")
    seen = made(entries)
    assert "There are no queries yet." in seen
    assert "No credential was issued" in seen


def test_a_budget_below_what_is_spent_leaves_nothing(tmp_path: Path) -> None:
    seen = made(write_overspent(tmp_path / "overspent.ledger"))
    assert "lowered below what was already spent" in seen
    assert '<dt>Left</dt><dd title="0">0.000000' in seen


def made(entries: list[Entry]) -> str:
    return make_report(entries, ReportFormat.HTML, verdict=judged(entries)).decode()


def test_names_are_text_whatever_is_in_them(text: str, page: Page) -> None:
    assert "script" not in page.tags
    assert SCRIPT in "".join(page.texts)
    assert "<script" not in text.lower()


def test_a_hostile_name_cannot_leave_an_attribute(entries: list[Entry]) -> None:
    hostile = "\"' onload=alert(1) style='x' {{ 7 * 7 }} {% raw %} $x^2$ &amp;"
    hit = [
        Entry(
            one.seq, one.at, one.kind, one.table and f"{one.table} {hostile}", one.body, one.digest
        )
        for one in entries
    ]
    # Of no table: the names are not those that were verified.
    verdict = replace(judged(entries), tables=())
    found = Page(make_report(hit, ReportFormat.HTML, verdict=verdict).decode())
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    assert hostile in " ".join(found.texts)


def test_the_page_fetches_nothing_and_runs_nothing(text: str, page: Page) -> None:
    assert not re.search(
        r"https?:|//[a-z]|@import|url\((?!#)|javascript:|data:", text, re.IGNORECASE
    )
    assert set(page.tags).isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form"})
    assert all(value.startswith("#") for value in page.values("href"))
    assert not page.values("src")
    [policy] = [value for value in page.values("content") if "default-src" in value]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_measure_of_contrast_is_the_standards() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("mode", MODES)
def test_text_can_be_read_in_light_and_dark(text: str, mode: str) -> None:
    named = colours(text)[mode]
    pairs = [
        ("ink", "paper"), ("ink-soft", "paper"), ("accent", "paper"), ("good", "good-paper"),
        ("bad", "bad-paper"), ("ink", "good-paper"), ("ink", "bad-paper"), ("accent", "good-paper"),
    ]  # fmt: skip
    for front, back in pairs:
        assert contrast(named[front], named[back]) >= CONTRAST_MIN, (front, back)
    for drawn in ("accent", "limit"):
        assert contrast(named[drawn], named["paper"]) >= CONTRAST_MIN_DRAWN


def test_charts_have_no_colours_but_the_pages(text: str) -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert "var(--accent)" in drawn
    assert not re.search(r"#[0-9a-fA-F]{6}\b", drawn)
    assert not re.search(r"\b(black|white)\b", drawn)


def test_a_browser_shows_it(text: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(text, encoding="utf-8")
    blank = tmp_path / "blank.html"
    blank.write_text("<!doctype html><title>nothing</title>", encoding="utf-8")
    for source in (page, blank):
        screenshot(source, source.with_suffix(".png"), width=1000, height=2000)
    # A picture of one colour is a few kilobytes at any size; text and lines are not.
    assert page.with_suffix(".png").stat().st_size > 10 * blank.with_suffix(".png").stat().st_size


def test_a_delta_is_said_where_there_is_one(tmp_path: Path, text: str) -> None:
    told = made(write_gaussian(tmp_path / "gaussian.ledger"))
    assert "Private except with probability 0.000000001." in told
    assert "Private except with probability" not in text
