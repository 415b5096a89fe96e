"""A dashboard of six charts on two private tables, made through Superset's REST interface."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from examples.superset.rest import Superset

TITLE: Final = "Adults and visits, privately"
WITH_INTERVALS: Final = """\
SELECT education, COUNT(*) AS people,
    DP_INTERVAL_LOW(people) AS low, DP_INTERVAL_HIGH(people) AS high
FROM adult GROUP BY education"""
COUNT: Final = {"expressionType": "SQL", "sqlExpression": "COUNT(*)", "label": "people"}
_N_COLUMNS: Final = 12
_COLUMNS_EACH: Final = 4
_HEIGHT: Final = 50


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its name, its kind, the dataset that it reads, and its settings."""

    name: str
    kind: str
    dataset: str
    settings: Mapping[str, Any]


CHARTS: Final = (
    Chart("People", "big_number_total", "adult", {"metric": COUNT}),
    Chart(
        "By marital status",
        "echarts_timeseries_bar",
        "adult",
        {"x_axis": "marital_status", "metrics": [COUNT], "groupby": [], "row_limit": 100},
    ),
    Chart("By sex", "pie", "adult", {"groupby": ["sex"], "metric": COUNT, "row_limit": 100}),
    Chart(
        "Sex and income",
        "pivot_table_v2",
        "adult",
        {"groupbyRows": ["sex"], "groupbyColumns": ["income"], "metrics": [COUNT]},
    ),
    Chart(
        "Visits by month",
        "echarts_timeseries_line",
        "visits",
        {
            "x_axis": "day",
            "time_grain_sqla": "P1M",
            "metrics": [COUNT],
            "groupby": [],
            "row_limit": 1000,
        },
    ),
    Chart(
        "Education, with intervals",
        "table",
        "education",
        {
            "query_mode": "raw",
            "all_columns": ["education", "people", "low", "high"],
            "row_limit": 100,
            "server_pagination": False,
            "column_config": {end: {"d3NumberFormat": ",.0f"} for end in ("low", "high")},
        },
    ),
)


def register(superset: Superset, name: str, uri: str) -> int:
    """Register a database, and return its number."""
    body = {"database_name": name, "sqlalchemy_uri": uri, "expose_in_sqllab": True}
    return int(superset.post("database/", body)["id"])


def make_dataset(superset: Superset, database: int, name: str, sql: str | None = None) -> int:
    """Make a dataset of a table or a query, and return its number."""
    body: dict[str, Any] = {"database": database, "schema": "public", "table_name": name}
    if sql is not None:
        body["sql"] = sql
    return int(superset.post("dataset/", body)["id"])


def make_dashboard(superset: Superset, database: int) -> int:
    """Make datasets, charts and a dashboard of them, and return its number."""
    datasets = {
        "adult": make_dataset(superset, database, "adult"),
        "visits": make_dataset(superset, database, "visits"),
        "education": make_dataset(superset, database, "education", WITH_INTERVALS),
    }
    told = {"dashboard_title": TITLE, "published": True}
    board = int(superset.post("dashboard/", told)["id"])
    charts = [_make_chart(superset, chart, datasets[chart.dataset], board) for chart in CHARTS]
    positions = _positions(list(zip(CHARTS, charts, strict=True)))
    filters = [_sex_filter(datasets["adult"])]
    metadata = {"native_filter_configuration": filters, "positions": positions}
    superset.put(
        f"dashboard/{board}",
        {"position_json": json.dumps(positions), "json_metadata": json.dumps(metadata)},
    )
    return board


def settings_of(chart: Chart, dataset: int) -> dict[str, Any]:
    """A chart's settings, as Superset keeps them."""
    common = {"viz_type": chart.kind, "datasource": f"{dataset}__table", "adhoc_filters": []}
    return {**common, **chart.settings}


def _make_chart(superset: Superset, chart: Chart, dataset: int, board: int) -> int:
    body = {
        "slice_name": chart.name,
        "viz_type": chart.kind,
        "datasource_id": dataset,
        "datasource_type": "table",
        "params": json.dumps(settings_of(chart, dataset)),
        "dashboards": [board],
    }
    return int(superset.post("chart/", body)["id"])


def _positions(charts: Sequence[tuple[Chart, int]]) -> dict[str, Any]:
    """Three charts in a row."""
    n_each = _N_COLUMNS // _COLUMNS_EACH
    rows = [charts[first : first + n_each] for first in range(0, len(charts), n_each)]
    names = [f"ROW-{place}" for place, _ in enumerate(rows)]
    found: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"id": "ROOT_ID", "type": "ROOT", "children": ["GRID_ID"]},
        "GRID_ID": {
            "id": "GRID_ID",
            "type": "GRID",
            "children": names,
            "parents": ["ROOT_ID"],
        },
    }
    for name, row in zip(names, rows, strict=True):
        found[name] = {
            "id": name,
            "type": "ROW",
            "children": [f"CHART-{number}" for _, number in row],
            "parents": ["ROOT_ID", "GRID_ID"],
            "meta": {"background": "BACKGROUND_TRANSPARENT"},
        }
        for chart, number in row:
            found[f"CHART-{number}"] = {
                "id": f"CHART-{number}",
                "type": "CHART",
                "children": [],
                "parents": ["ROOT_ID", "GRID_ID", name],
                "meta": {
                    "chartId": number,
                    "width": _COLUMNS_EACH,
                    "height": _HEIGHT,
                    "sliceName": chart.name,
                },
            }
    return found


def _sex_filter(dataset: int) -> dict[str, Any]:
    """A filter by sex on the charts of the Adult table."""
    return {
        "id": "NATIVE_FILTER-sex",
        "name": "Sex",
        "filterType": "filter_select",
        "type": "NATIVE_FILTER",
        "targets": [{"datasetId": dataset, "column": {"name": "sex"}}],
        "defaultDataMask": {"extraFormData": {}, "filterState": {}, "ownState": {}},
        "cascadeParentIds": [],
        "scope": {"rootPath": ["ROOT_ID"], "excluded": []},
        "controlValues": {
            "enableEmptyFilter": False,
            "defaultToFirstItem": False,
            "multiSelect": True,
            "searchAllOptions": False,
            "inverseSelection": False,
        },
    }
