"""Results: intervals beside and behind the rows, text and HTML, drawings."""

import datetime as dt
import json
import math
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit_client
from tacit_client import Result

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _no_figure_stays_open() -> Iterator[None]:
    yield
    plt.close("all")


def answer(
    keys: list[Any],
    values: list[float | None],
    *,
    reach: float | None = 2.0,
    source: str = "measured",
    notes: tuple[str, ...] = (),
) -> Result:
    """A result as the server sends it: one key, one answer."""
    ends = [None if v is None or reach is None else (v - reach, v + reach) for v in values]
    told = {
        "table": "people",
        "epsilon_spent": 0.25,
        "epsilon_left": 0.75,
        "columns": [
            {
                "name": "n",
                "confidence": 0.95,
                "epsilon_spent": 0.25,
                "source": source,
                "low": [None if one is None else one[0] for one in ends],
                "high": [None if one is None else one[1] for one in ends],
            }
        ],
        "notes": list(notes),
    }
    data = pa.table({"key": keys, "n": pa.array(values, pa.float64())})
    return Result(data.replace_schema_metadata({"tacit.receipt": json.dumps(told)}))


def test_intervals_stand_beside_the_rows() -> None:
    found = answer(["a", None], [10.0, None]).intervals.to_pylist()
    shared = {"column": "n", "confidence": 0.95, "source": "measured"}
    assert found == [
        {"row": 0, "value": 10.0, "low": 8.0, "high": 12.0, **shared},
        {"row": 1, "value": None, "low": None, "high": None, **shared},
    ]


def test_rows_go_to_every_library_with_intervals_behind_answers() -> None:
    result = answer(["a", "b"], [10.0, 20.0])
    wanted = {"key": ["a", "b"], "n": [10.0, 20.0], "n_low": [8.0, 18.0], "n_high": [12.0, 22.0]}
    assert result.to_arrow(intervals=True).to_pydict() == wanted
    assert result.to_polars(intervals=True).to_dict(as_series=False) == wanted
    frame = result.to_pandas(intervals=True)
    assert isinstance(frame, pd.DataFrame)
    assert frame.to_dict("list") == wanted
    assert isinstance(result.to_polars(), pl.DataFrame)
    assert result.to_pandas().columns.tolist() == result.columns == ["key", "n"]
    assert (len(result), list(result)) == (2, [("a", 10.0), ("b", 20.0)])


def test_a_long_result_has_no_intervals_behind_its_first_rows() -> None:
    result = answer(["a", "b"], [10.0, 20.0])
    assert result.receipt is not None
    longer = pa.concat_tables([result.to_arrow(), result.to_arrow().replace_schema_metadata()])
    longer = Result(longer.replace_schema_metadata(result.to_arrow().schema.metadata))
    assert longer.to_arrow(intervals=True).column("n_low").to_pylist() == [8.0, 18.0, None, None]


def test_what_nothing_private_was_asked_of_has_no_receipt() -> None:
    result = Result(pa.table({"a": [1]}))
    assert (result.source, result.epsilon_spent, result.epsilon_left) == (None, 0.0, None)
    assert result.intervals.num_rows == 0
    assert repr(result) == "a\n1"


def test_answers_of_every_kind_are_shown_and_drawn(connection: tacit_client.Connection) -> None:
    shown = connection.sql(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(extremes => 'noisy') city, COUNT(*) AS n, "
        "AVG(visits) FILTER (WHERE age > 98) AS a, MEDIAN(age) AS m, MIN(age) AS low, "
        "MODE() WITHIN GROUP (ORDER BY member) AS o FROM people GROUP BY city"
    )
    assert "NULL" in repr(shown)
    assert "<td>Paris</td>" in shown._repr_html_()
    assert shown.intervals.num_rows == 4 * len(shown.answers)
    assert len(shown.plot(y=["n", "a"]).patches) == 8
    assert shown.plot(y="n") is not None


def test_a_number_that_is_not_known_may_have_an_interval() -> None:
    result = answer(["a", "b"], [10.0, 20.0])
    unknown = result.to_arrow().set_column(1, "n", pa.array([None, 20.0], pa.float64()))
    result = Result(unknown)
    assert repr(result).splitlines()[1].split() == ["a", "NULL", "[8.0,", "12.0]", "measured"]
    assert result.intervals.to_pylist()[0]["value"] is None
    assert [bar.get_height() for bar in result.plot().patches][1:] == [20.0]


def test_an_answer_that_is_no_number_is_shown_and_not_drawn() -> None:
    result = answer(["a"], [10.0], reach=None)
    texts = Result(result.to_arrow().set_column(1, "n", pa.array(["most"])))
    assert "most" in repr(texts)
    assert texts.intervals.to_pylist()[0]["value"] is None
    with pytest.raises(tacit_client.InterfaceError, match="numeric column"):
        texts.plot()


def test_the_terminal_shows_values_to_the_width_of_their_intervals() -> None:
    shown = repr(answer(["a", None], [1234.567, 20.0], notes=("mind this",)))
    assert shown.splitlines() == [
        "key        n     0.95 interval    source",
        "a     1234.6  [1232.6, 1236.6]  measured",
        "NULL    20.0      [18.0, 22.0]  measured",
        "note: mind this",
        "epsilon spent 0.25; 0.75 left for people",
    ]


def test_a_notebook_shows_nothing_as_markup() -> None:
    html = answer(["<b>&", "x\x1b[0m"], [1.0, None], notes=("<i>",))._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert "&lt;i&gt;" in html
    assert "<b>" not in html
    assert "\x1b" not in html
    for text in ("[-1.0, 3.0]", "measured", "NULL", "none", "epsilon spent 0.25"):
        assert text in html


def test_a_long_result_is_cut_where_it_is_shown() -> None:
    shown = repr(answer(list(range(100)), [1.0] * 100))
    assert "and 40 more rows" in shown
    assert len(shown.splitlines()) == 1 + 60 + 2


def test_categories_are_bars_with_their_intervals() -> None:
    axes = answer(["a", None, "c"], [10.0, 20.0, None]).plot()
    assert [one.get_text() for one in axes.get_xticklabels()] == ["a", "NULL", "c"]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights[:2] == [10.0, 20.0]
    assert math.isnan(heights[2])
    assert reaches(axes)[:2] == [(8.0, 12.0), (18.0, 22.0)]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "n")


@pytest.mark.parametrize(
    "keys", [[3, None, 1], [dt.date(2024, 3, 1), None, dt.date(2024, 1, 1)]], ids=["int", "date"]
)
def test_an_ordered_key_is_a_line_in_order(keys: list[Any]) -> None:
    axes = answer(keys, [30.0, 99.0, 10.0]).plot()
    (line, *_) = axes.lines
    assert list(line.get_ydata()) == [10.0, 30.0]
    assert reaches(axes) == [(8.0, 12.0), (28.0, 32.0)]


def test_what_has_no_interval_is_drawn_without_one() -> None:
    axes = answer(["a", "b"], [10.0, 20.0], reach=None, source="model").plot()
    assert [bar.get_height() for bar in axes.patches] == [10.0, 20.0]
    assert all(math.isnan(low) for low, _ in reaches(axes))


def test_what_to_draw_can_be_said() -> None:
    result = Result(pa.table({"a": ["x", "y"], "b": [1, 2], "c": [3, 4]}))
    axes = result.plot(x="a", y=["b", "c"])
    assert [bar.get_height() for bar in axes.patches] == [1.0, 2.0, 3.0, 4.0]
    assert [one.get_text() for one in axes.get_legend().get_texts()] == ["b", "c"]
    assert result.plot(kind="bar", ax=axes) is axes
    for wrong in ({"x": "d"}, {"y": "d"}, {"kind": "pie"}):
        with pytest.raises(tacit_client.InterfaceError):
            result.plot(**wrong)
    with pytest.raises(tacit_client.InterfaceError, match="numeric column"):
        Result(pa.table({"a": ["x"]})).plot()


def test_a_single_number_is_one_bar() -> None:
    result = answer(["a"], [10.0])
    axes = Result(result.to_arrow().drop(["key"])).plot()
    assert [bar.get_height() for bar in axes.patches] == [10.0]


@pytest.mark.parametrize(
    ("method", "library"),
    [("to_pandas", "pandas"), ("to_polars", "polars"), ("plot", "matplotlib")],
)
def test_a_library_that_is_not_there_is_named(
    method: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        getattr(answer(["a"], [1.0]), method)()


def reaches(axes: Any) -> list[tuple[float, float]]:
    """The ends of the error bars that are drawn."""
    segments = axes.collections[0].get_segments()
    return [(one[0][1], one[1][1]) if len(one) else (math.nan, math.nan) for one in segments]
