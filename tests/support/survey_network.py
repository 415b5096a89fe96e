"""The Survey network of Scutari & Denis (Bayesian Networks: With Examples in R, 2014): its laws."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from synthesis.networks.graph import Dag
from synthesis.tables import Column

NAMES = ("A", "S", "E", "O", "R", "T")  # age, sex, education, occupation, residence, travel
SURVEY = Dag(
    NAMES, frozenset({("A", "E"), ("S", "E"), ("E", "O"), ("E", "R"), ("O", "T"), ("R", "T")})
)
N_PARAMETERS = 21
AGE = np.array([0.3, 0.5, 0.2])  # young, adult, old
SEX = np.array([0.6, 0.4])  # M, F
HIGH = np.array([[0.75, 0.64], [0.72, 0.70], [0.88, 0.90]])  # education is high, by age and sex
EMPLOYED = np.array([0.96, 0.92])  # by education: high, uni
SMALL = np.array([0.25, 0.20])
TRAVEL = np.array(  # car, train, other; by occupation (emp, self) and residence (small, big)
    [[[0.48, 0.42, 0.10], [0.58, 0.24, 0.18]], [[0.56, 0.36, 0.08], [0.70, 0.21, 0.09]]]
)


@cache
def joint() -> NDArray[np.float64]:
    """The share of every combination of levels, by the order of the names."""
    education, occupation, residence = map(_with_rest, (HIGH, EMPLOYED, SMALL))
    shares: NDArray[np.float64] = np.einsum(
        "a,s,ase,eo,er,ort->aseort", AGE, SEX, education, occupation, residence, TRAVEL
    )
    return shares


def columns() -> tuple[Column, ...]:
    return tuple(Column(name, size) for name, size in zip(NAMES, joint().shape, strict=True))


def sampled(n_rows: int, seed: int) -> NDArray[np.int64]:
    """Rows drawn from the network: codes, a column for each name."""
    shares = joint()
    cells = np.random.default_rng(seed).choice(shares.size, n_rows, p=shares.ravel())
    return np.stack(np.unravel_index(cells, shares.shape), axis=1).astype(np.int64)


def survey_bif() -> str:
    """The network as published networks are written; the levels of A are A0, A1, .."""
    laws = {
        "A": ((), AGE),
        "S": ((), SEX),
        "E": (("A", "S"), _with_rest(HIGH)),
        "O": (("E",), _with_rest(EMPLOYED)),
        "R": (("E",), _with_rest(SMALL)),
        "T": (("O", "R"), TRAVEL),
    }
    blocks = ["network survey { }"]
    for name, (_, law) in laws.items():
        levels = ", ".join(f"{name}{place}" for place in range(law.shape[-1]))
        blocks.append(
            f"variable {name} {{\n    type discrete [ {law.shape[-1]} ] {{ {levels} }};\n}}"
        )
    for name, (parents, law) in laws.items():
        given = f" | {', '.join(parents)}" if parents else ""
        lines = []
        for where in np.ndindex(*law.shape[:-1]):
            values = ", ".join(f"{one}{place}" for one, place in zip(parents, where, strict=True))
            shares = ", ".join(f"{share:.10g}" for share in law[where])
            lines.append(f"    ({values}) {shares};" if parents else f"    table {shares};")
        blocks.append("\n".join([f"probability ( {name}{given} ) {{", *lines, "}"]))
    return "\n".join(blocks) + "\n"


def _with_rest(first: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([first, 1 - first], axis=-1)
