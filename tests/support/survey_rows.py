"""The 500 rows of the Survey network that come with the book, and what bnlearn finds in them.

Rows: survey.txt, https://www.bnlearn.com/book-crc; results: M. Scutari, J.-B. Denis, "Bayesian
Networks: With Examples in R", 2014, sections 1.5.2 and 1.5.3.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from synthesis.networks.graph import Dag
from tests.support.survey_network import NAMES

# Age, residence, education, sex, travel by their first letters (other: x); * is self-employed.
COUNTS: Final = """
abhFc:31 abhFc*:2 abhFt:7 abhFt*:2 abhFx:6 abhMc:41 abhMt:13 abhMx:13 abuFc:14 abuFt:5
abuFx:9 abuFx*:2 abuMc:15 abuMc*:5 abuMt:8 abuMx:5 ashFc:7 ashFt:6 ashFx:1 ashMc:18 ashMt:13
ashMx:2 asuFc:3 asuFc*:1 asuFt:1 asuMc:2 asuMc*:1 asuMt:2 asuMx:1 obhFc:12 obhFt:3 obhFx:4
obhMc:20 obhMt:9 obhMx:9 obuFc:6 obuMc:1 obuMt:4 oshFc:9 oshFt:3 oshFx:2 oshMc:11 oshMc*:1
oshMt:7 oshMx*:1 osuMt:2 ybhFc:16 ybhFt:6 ybhFx:7 ybhMc:35 ybhMc*:1 ybhMt:15 ybhMx:10
ybuFc:14 ybuFt:5 ybuFx:8 ybuMc:9 ybuMc*:1 ybuMt:4 ybuMx:2 yshFc:2 yshFt:3 yshFx:1 yshMc:10
yshMt:5 yshMx:1 ysuFc:2 ysuFt:1 ysuMt:1 ysuMx:1
"""
BIC: Final = -2012.687  # of the network that the book made up
WITH_ARC: Final = ("E", "T")
BIC_WITH_ARC: Final = -2032.603
FOUND: Final = Dag(
    NAMES, frozenset({("R", "E"), ("R", "T"), ("E", "A"), ("E", "O"), ("E", "S")})
)  # by hc: [R][E|R][T|R][A|E][O|E][S|E]
BIC_OF_FOUND: Final = -1998.432


def published_rows() -> NDArray[np.int64]:
    """Codes, a column for each name of the network."""
    found: list[tuple[int, ...]] = []
    for entry in COUNTS.split():
        letters, _, count = entry.partition(":")
        age, residence, education, sex, travel = list(letters[:5])
        row = (
            "yao".index(age),
            "MF".index(sex),
            "hu".index(education),
            int(letters.endswith("*")),
            "sb".index(residence),
            "ctx".index(travel),
        )
        found += [row] * int(count)
    return np.array(found, dtype=np.int64)
