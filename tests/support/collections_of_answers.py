"""The Survey network of Scutari and Denis as a population, and campaigns about it."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from local_dp.campaign import Attribute, Campaign, designed_views, planned_campaign

SURVEY = (
    Attribute("A", ("young", "adult", "old")),
    Attribute("E", ("high", "uni")),
    Attribute("O", ("emp", "self")),
    Attribute("R", ("small", "big")),
    Attribute("S", ("M", "F")),
    Attribute("T", ("car", "train", "other")),
)
NAMES = tuple(one.name for one in SURVEY)
SURVEY_ROW = {"A": "old", "E": "high", "O": "emp", "R": "big", "S": "F", "T": "car"}
_AGES, _SEXES = (0.3, 0.5, 0.2), (0.6, 0.4)
_HIGH = ((0.75, 0.64), (0.72, 0.70), (0.88, 0.90))  # given age, and M or F
_EMPLOYED, _SMALL = (0.96, 0.92), (0.25, 0.20)  # given education
_TRAVEL = (  # given occupation and residence
    ((0.48, 0.42, 0.10), (0.58, 0.24, 0.18)),
    ((0.56, 0.36, 0.08), (0.70, 0.21, 0.09)),
)


def survey_joint() -> NDArray[np.float64]:
    """The share of every cell, with an axis for each attribute in the order of `NAMES`."""
    shares = np.zeros([len(one.levels) for one in SURVEY])
    for cell in product(*(range(size) for size in shares.shape)):
        age, education, occupation, residence, sex, travel = cell
        high, employed, small = _HIGH[age][sex], _EMPLOYED[education], _SMALL[education]
        shares[cell] = (
            _AGES[age]
            * _SEXES[sex]
            * (high, 1 - high)[education]
            * (employed, 1 - employed)[occupation]
            * (small, 1 - small)[residence]
            * _TRAVEL[occupation][residence][travel]
        )
    return shares


def survey_marginal(scope: tuple[str, ...]) -> NDArray[np.float64]:
    """The shares of the cells of some attributes."""
    return np.asarray(
        survey_joint().sum(axis=tuple(i for i, name in enumerate(NAMES) if name not in scope))
    )


def survey_campaign(epsilon_units: int, *, n_answered: int = 1) -> Campaign:
    """Every pair of the six attributes, in five views of three."""
    return planned_campaign(
        "survey",
        SURVEY,
        designed_views(NAMES, 2),
        epsilon_units=epsilon_units,
        n_answered=n_answered,
    )
