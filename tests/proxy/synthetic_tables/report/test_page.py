"""The page of a synthetic table: what is in it, what never can be, and that a browser shows it."""

import re
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from cube.axis import CategoryAxis, IntegerAxis
from cube.encoding import declare
from cube.query import Partition, Scope
from cube.schema import Schema
from proxy.reporting.declared import DeclaredColumn, DeclaredTable
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.report.compare import KnownTable, TableComparison, Total, compare
from proxy.synthetic_tables.report.page import render_report
from proxy.synthetic_tables.report.residuals import Drawing, MeasuredTable, checked_tables
from proxy.synthetic_tables.report.verdict import Kind, PairDistance, Purchases, Verdict
from proxy.synthetic_tables.request import Evaluation, Method
from tests.support.chromium import screenshot
from tests.support.html_pages import Page, colours, contrast

HOSTILE = "<script>alert(1)</script> \"' onload=x {{ 7 * 7 }} $x^2$ &amp;"
TIMES = "\N{MULTIPLICATION SIGN}"
CONTRAST_MIN = 4.5  # of text, WCAG 2.1 level AA
RECORD = SyntheticRecord(
    id="r1",
    name="people_1",
    table="people",
    method=Method.PAIRWISE,
    epsilon=Fraction(1),
    epsilon_spent=Fraction(1, 3),
    seed=7,
    n_rows=100,
    n_bytes=1000,
    columns=(("age", "BIGINT"), ("city", "VARCHAR"), ("kind", "VARCHAR")),
    unknown=("kind",),
    tables=(("age",), ("age", "city")),
    n_charges=4,
    incomplete="",
    made_by="ann",
    made_at="2026-11-21T20:07:49.123+00:00",
)


def columns_of(*names: str) -> list[DeclaredColumn]:
    age, city, kind = names
    axes = (
        IntegerAxis(name=age, low=20, high=79),
        CategoryAxis(name=city, values=("Oslo", "Paris", f"Rome {city}"), null=True),
        CategoryAxis(name=kind, values=("x", "y")),
    )
    schema = Schema(table="people", axes=axes, n_records_max=1000)
    return list(DeclaredTable.parse(declare(schema, version="1")).columns)


def comparison_of(columns: list[DeclaredColumn], n_rows: int = 100) -> TableComparison:
    """Of two columns and their pair: the ages known one by one, but not all, the pair in groups."""
    age, city, _ = (column.name for column in columns)
    rng = np.random.default_rng(5)
    sizes = {column.name: column.n_levels for column in columns}
    levels = {name: rng.integers(0, size, n_rows) for name, size in sizes.items()}
    ages, values = np.arange(60), np.full(60, 1.5)
    low, high = values - 2, values + 2
    low[7], high[7] = -np.inf, np.inf
    tens = ages // 10
    cells = np.array([[1.0, -4, 7, 2]] * 6)
    known = [
        KnownTable((age,), (ages,), values, low, high),
        KnownTable(
            (city,), (np.array([0, 1, 0, 1]),), *(np.array([49.0, 51]) + x for x in (0, -5, 5))
        ),
        KnownTable((age, city), (tens, np.arange(4)), cells, cells - 6, cells + 6),
    ]
    return compare(levels, known, total=Total(100.0, 90.0, 110.0), confidence=0.95)


def verdict_of(record: SyntheticRecord) -> Verdict:
    """Ages as they were counted, but for thirty rows; one pair measured, one guessed, one open."""
    age, city, kind = (name for name, _ in record.columns)
    rng = np.random.default_rng(6)
    ages = Partition((age,), np.arange(60) // 10)
    counts = np.array([40.0, 20, 10, 10, 10, 10])
    levels = {age: np.repeat(np.arange(0, 60, 10), [10, 50, 10, 10, 10, 10])}
    table = MeasuredTable(ages, counts + rng.laplace(0.0, 0.5, 6), 0.5)
    pairs = [
        PairDistance(tuple(sorted((age, city))), True, 0.02),
        PairDistance(tuple(sorted((age, kind))), False, 0.07, 0.03),
        PairDistance(tuple(sorted((city, kind))), False),
    ]
    return Verdict(
        record=record,
        checked=checked_tables([table], levels, n_rows=100.0, drawing=Drawing()),
        pairs={pair.scope: pair for pair in sorted(pairs, key=lambda one: one.scope)},
        bought=Purchases(
            ((Kind.COLUMNS, 0.25), (Kind.PAIRS, 0.75)), ((age, 0.5), (city, 0.5)), True
        ),
    )


def rendered(record: SyntheticRecord = RECORD, n_rows: int = 100) -> str:
    columns = columns_of(*(name for name, _ in record.columns))
    comparison = comparison_of(columns, n_rows)
    return render_report(record, comparison, verdict_of(record), columns, {"Python": "3.11"})


@pytest.fixture(scope="module")
def text() -> str:
    return rendered()


def seen_in(text: str) -> str:
    return " ".join(" ".join(Page(text).texts).split())


def test_every_part_is_there_once_and_can_be_reached(text: str) -> None:
    page = Page(text)
    sections = [value for tag, name, value in page.attributes if (tag, name) == ("section", "id")]
    assert sections == ["worst", "budget", "origin", "columns", "pairs", "nothing-known", "use"]
    assert len(set(page.values("id"))) == len(page.values("id"))
    assert {value.removeprefix("#") for value in page.values("href")} <= set(page.values("id"))


def test_it_says_where_the_table_comes_from(text: str) -> None:
    seen = seen_in(text)
    for words in (
        "Synthetic table people_1", "pairwise", "2026-11-21 20:07:49 UTC", "by ann",
        "after 4 charges to people", "0.333334", "private table: 90 to 110", "Python 3.11",
    ):  # fmt: skip
        assert words in seen
    assert "ot all of it was bought" not in seen
    stopped = seen_in(rendered(replace(RECORD, incomplete="The budget went to others.")))
    assert "Not all was bought The budget went to others." in stopped
    assert "Not all of it was bought: The budget went to others." in stopped


def test_the_worst_comes_before_everything_else(text: str) -> None:
    seen = seen_in(text)
    said = "It contradicts what was measured of age. Worst is age: "
    assert seen.index(said) < seen.index("Expected distance by pairs") < seen.index("Worst first")
    assert re.search(r"Worst is age: .*, [23]\d rows .* \([23]\d\.\d % of all\), where noise", seen)
    assert "Nothing is known of kind: drawn uniformly." in seen
    assert "2 of 3 pairs of columns were not measured" in seen
    assert f"Furthest off may be age {TIMES} kind, by about 7.0 % of the rows." in seen


def test_what_an_evaluation_found_comes_first() -> None:
    found = Evaluation(
        estimate=0.031, half_width=0.004, n_pairs=8, n_pairs_all=91, epsilon_spent=Fraction(1, 20)
    )
    text = rendered(replace(RECORD, evaluate=Fraction(1, 20), evaluation=found))
    seen = seen_in(text)
    said = (
        "Evaluated: by pairs of columns, 3.1 % of the rows are in the wrong place (2.7 % to 3.5 %)"
    )
    assert seen.index(said) < seen.index("Worst is age")
    assert "3.1 % \N{PLUS-MINUS SIGN} 0.4 % at 95 %; bought for 8 of 91 pairs" in seen
    assert "of at most 1.05" in seen
    assert "Evaluated" not in seen_in(rendered())
    bound = replace(found, is_bound=True)
    seen = seen_in(rendered(replace(RECORD, evaluate=Fraction(1, 20), evaluation=bound)))
    assert "by pairs of columns, at most 3.1 % of the rows" in seen
    assert "at most 3.1 % \N{PLUS-MINUS SIGN} 0.4 %" in seen


def test_the_map_of_pairs_tells_what_was_measured_and_what_was_not(text: str) -> None:
    cells = re.findall(r'<td class="(s-?\d[^"]*)" title="([^"]*)">([^<]*)</td>', text)
    assert cells == [
        ("s1", f"age {TIMES} city: 2.0 %, measured", "2"),
        ("s3 assumed", f"age {TIMES} kind: 7.0 %, not measured, estimated", "7"),
        ("s-1 assumed", f"city {TIMES} kind: not measured, nothing tells", "?"),
    ]


def test_the_budget_is_told_by_kind_and_by_column(text: str) -> None:
    assert "counts of single columns 25.0 % counts of pairs 75.0 %" in seen_in(text)
    assert "age 50.0 % city 50.0 %" in seen_in(text)


def test_counts_stand_beside_the_intervals_of_the_history(text: str) -> None:
    comparison = comparison_of(columns_of("age", "city", "kind"))
    seen = seen_in(text)
    for table in comparison.one_ways.values():
        assert f"{table.n_inside} of {table.n_known} counts inside" in seen
    assert "44 to 54" in seen
    assert "46 to 56" in seen
    for table in comparison.pairs.values():
        furthest = table.largest(1)[0]
        low, high = table.known.low[furthest], table.known.high[furthest]
        assert f"{low:.0f} to {high:.0f}" in seen
        assert f"{table.synthetic[furthest]:.0f}" in seen
    assert "Oslo, Rome city" in seen
    assert "1 more are not known" in seen


def test_columns_of_which_nothing_is_known_are_named(text: str) -> None:
    assert "mean nothing: kind No combination of three" in seen_in(text)
    known = seen_in(rendered(replace(RECORD, unknown=())))
    assert "Something is known of every column." in known
    assert "known in part, but no count of them can be compared: kind" in known


def test_a_table_of_another_size_says_that_its_counts_were_scaled() -> None:
    assert "multiplied by 4 below" in seen_in(rendered(replace(RECORD, n_rows=25), n_rows=25))


def test_larger_tables_are_named(text: str) -> None:
    assert "was counted for this table" in seen_in(text)
    larger = replace(RECORD, tables=(("age", "city", "kind"),))
    assert f"pair by pair: age {TIMES} city {TIMES} kind." in seen_in(rendered(larger))


def test_a_comparison_of_nothing_says_so() -> None:
    columns = columns_of("age", "city", "kind")
    nothing = TableComparison(
        n_rows=9, total=None, scale=1.0, confidence=0.9, one_ways={}, pairs={}
    )
    names = ("age", "city", "kind")
    pairs: dict[Scope, PairDistance] = {
        scope: PairDistance(scope, False) for scope in combinations(names, 2)
    }
    verdict = Verdict(RECORD, [], pairs, Purchases((), (), False))
    seen = seen_in(render_report(RECORD, nothing, verdict, columns, {}))
    assert "There is nothing to compare with." in seen
    assert "the private number is not known" in seen
    assert "Nothing was bought for it" in seen


def test_no_number_is_missing_or_infinite(text: str) -> None:
    drawn = " ".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    for shown in (seen_in(text), drawn.replace("fill: none", "").replace("stroke: none", "")):
        assert not re.search(r"\b(nan|inf|infinity|None)\b", shown)


def test_pictures_are_described_and_have_the_colours_of_the_page(text: str) -> None:
    page = Page(text)
    drawn = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "role")]
    assert drawn == ["img"] * (2 + 1)
    assert all("within the intervals" in label for label in page.values("aria-label")[1:])
    pictures = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert not re.search(r"#[0-9a-fA-F]{6}\b|\b(black|white)\b", pictures)


def test_what_is_outside_is_not_told_by_colour_alone_and_can_be_read(text: str) -> None:
    outside = re.findall(r'<td class="n outside">([^<]*)</td>', text)
    assert outside
    assert all(one.endswith(" *") for one in outside)
    for mode in colours(text).values():
        assert contrast(mode["limit"], mode["paper"]) >= CONTRAST_MIN


def test_names_are_text_whatever_is_in_them() -> None:
    hostile = replace(
        RECORD,
        name=HOSTILE,
        table=HOSTILE,
        made_by=HOSTILE,
        incomplete=HOSTILE,
        columns=tuple((f"{place} {HOSTILE}"[:63], "VARCHAR") for place in range(3)),
        unknown=(HOSTILE,),
    )
    text = rendered(hostile)
    page = Page(text)
    assert "<script" not in text.lower()
    assert HOSTILE in " ".join(page.texts)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_the_page_fetches_nothing_and_runs_nothing(text: str) -> None:
    page = Page(text)
    assert not re.search(
        r"https?:|//[a-z]|@import|url\((?!#)|javascript:|data:", text, re.IGNORECASE
    )
    assert set(page.tags).isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form"})
    [policy] = [value for value in page.values("content") if "default-src" in value]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_same_comparison_gives_the_same_page(text: str) -> None:
    assert rendered() == text


def test_a_browser_shows_it(text: str, tmp_path: Path) -> None:
    page, blank = tmp_path / "report.html", tmp_path / "blank.html"
    page.write_text(text, encoding="utf-8")
    blank.write_text("<!doctype html><title>nothing</title>", encoding="utf-8")
    for source in (page, blank):
        screenshot(source, source.with_suffix(".png"), width=400, height=2000)
    assert page.with_suffix(".png").stat().st_size > 10 * blank.with_suffix(".png").stat().st_size
