"""Made-up patients of three hospitals, and the configuration files that serve them.

The rules are written here for everybody to read: which share of each hospital's patients has which
age, ward and stay. No patient is a real one. The hospitals differ in size and in whom they treat: a
large one of a city, a general one, and a small one where most patients are old.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

AGES: Final = ("0-17", "18-39", "40-64", "65-79", "80+")
WARDS: Final = ("children", "surgery", "heart", "cancer", "lungs")
STAY_MAX: Final = 14
TABLE: Final = "patients"


@dataclass(frozen=True, slots=True)
class Hospital:
    """One holder, and the shares of its patients in the age groups.

    Parameters
    ----------
    smokers : float
        The share among grown-ups.
    limit : str
        The most epsilon that the coordinator may spend here.
    """

    name: str
    n_patients: int
    ages: tuple[float, ...]
    smokers: float
    limit: str


HOSPITALS: Final = (
    Hospital("north", 12_000, (0.18, 0.30, 0.28, 0.16, 0.08), smokers=0.22, limit="3"),
    Hospital("south", 5_000, (0.10, 0.22, 0.32, 0.24, 0.12), smokers=0.30, limit="3"),
    Hospital("valley", 1_500, (0.02, 0.08, 0.20, 0.36, 0.34), smokers=0.15, limit="2.5"),
)
# The shares of the wards for each age group: the same everywhere.
WARDS_BY_AGE: Final = np.array(
    [
        (1.00, 0.00, 0.00, 0.00, 0.00),
        (0.00, 0.70, 0.10, 0.10, 0.10),
        (0.00, 0.40, 0.25, 0.20, 0.15),
        (0.00, 0.25, 0.35, 0.25, 0.15),
        (0.00, 0.20, 0.40, 0.15, 0.25),
    ]
)
SMOKERS_AT_LUNGS: Final = 0.5  # of the others in this ward, too
DAYS_OF_STAY: Final = np.array((2.0, 3.0, 5.0, 7.0, 6.0))  # by ward, in the mean

DECLARED: Final = f"""
budget = "5"
n_records_max = 20000
half_width = 150
confidence = 0.95

[tables.{TABLE}.columns.age]
kind = "category"
levels = {list(AGES)}

[tables.{TABLE}.columns.sex]
kind = "category"
levels = ["female", "male"]

[tables.{TABLE}.columns.ward]
kind = "category"
levels = {list(WARDS)}

[tables.{TABLE}.columns.smoker]
kind = "category"
levels = ["no", "yes"]

[tables.{TABLE}.columns.days]
kind = "integer"
low = 1
high = {STAY_MAX}
"""


def admitted(hospital: Hospital, draw: np.random.Generator) -> pa.Table:
    """Patients of one hospital, by the rules of this module."""
    size = hospital.n_patients
    age = draw.choice(len(AGES), size, p=hospital.ages)
    ward = _by_shares(WARDS_BY_AGE[age], draw)
    smokes = draw.random(size) < np.where(age == 0, 0.0, hospital.smokers)
    smokes |= (ward == WARDS.index("lungs")) & (draw.random(size) < SMOKERS_AT_LUNGS)
    days = draw.poisson(DAYS_OF_STAY[ward] * np.where(age == len(AGES) - 1, 1.5, 1.0))
    return pa.table(
        {
            "age": np.array(AGES)[age],
            "sex": np.array(("female", "male"))[draw.integers(2, size=size)],
            "ward": np.array(WARDS)[ward],
            "smoker": np.array(("no", "yes"))[smokes.astype(np.int64)],
            "days": np.clip(days, 1, STAY_MAX),
        }
    )


def _by_shares(shares: NDArray[np.float64], draw: np.random.Generator) -> NDArray[np.int64]:
    """For each row of shares, a column drawn by them."""
    passed: NDArray[np.bool_] = draw.random((len(shares), 1)) >= shares.cumsum(axis=1)[:, :-1]
    places: NDArray[np.int64] = np.count_nonzero(passed, axis=1)
    return places


def holder_config(folder: Path, hospital: Hospital, draw: np.random.Generator) -> Path:
    """Write a hospital's data, and the configuration of its own server."""
    folder.mkdir()
    csv.write_csv(admitted(hospital, draw), folder / "patients.csv")
    config = folder / "tacit.toml"
    write_holder(config, hospital, "127.0.0.1:0")
    return config


def write_holder(config: Path, hospital: Hospital, listen: str) -> None:
    """Write the configuration of a hospital's server, which listens on an address."""
    config.write_text(
        f'[server]\nlisten = "{listen}"\n\n[ledger]\npath = "{hospital.name}.ledger"\n\n'
        f'[tables.{TABLE}]\nsource = "patients.csv"{DECLARED}'
    )


def coordinator_config(
    folder: Path, addresses: Mapping[str, str], tokens: Mapping[str, str]
) -> Path:
    """Write the configuration of the coordinator, and the token that each hospital has given it."""
    folder.mkdir()
    holders = []
    for name, address in addresses.items():
        file = folder / f"{name}.token"
        file.touch(mode=0o600)
        file.write_text(f"{tokens[name]}\n")
        holders.append(f'  {{name = "{name}", address = "{address}", token_file = "{file.name}"}},')
    config = folder / "tacit.toml"
    config.write_text(
        '[server]\nlisten = "127.0.0.1:0"\n\n[ledger]\npath = "coordinator.ledger"\n\n'
        f"[tables.{TABLE}]\nholders = [\n" + "\n".join(holders) + f"\n]{DECLARED}"
    )
    return config
