"""The settings of a network in the method's terms, and checks of their combinations.

Reads only the request and the public schema.
"""

from collections.abc import Sequence

from cube.refusals import InvalidRequest
from cube.statistic import N_CLASSES_OF_F, Score
from proxy.synthetic_tables.request import Method, SynthesisRequest
from synthesis.privbayes.attributes import Attribute
from synthesis.privbayes.hierarchies import layered_attribute, plain_attribute
from synthesis.privbayes.learning import LearningSettings
from synthesis.tables import Column


def settings_of(request: SynthesisRequest) -> LearningSettings:
    """The method's settings."""
    return LearningSettings(score=request.score, degree=request.degree)


def attributes_of(columns: Sequence[Column], request: SynthesisRequest) -> list[Attribute]:
    """Columns as attributes of a network."""
    seen = layered_attribute if request.hierarchies else plain_attribute
    return [seen(column) for column in columns]


def check_score(columns: Sequence[Column], request: SynthesisRequest) -> None:
    """Refuse a score for which a column has too many levels.

    Raises
    ------
    InvalidRequest
    """
    if request.method is not Method.PRIVBAYES or request.score is not Score.FULL_DEPENDENCE:
        return
    for column in columns:
        if column.size > N_CLASSES_OF_F:
            raise InvalidRequest(
                f"The score F needs columns of two levels, and {column.name} has {column.size}.",
                hint="Leave the column out, or use score => 'R' or 'I'.",
            )
