"""Says which role may call which method. A method that is not listed here may not be called.

Auditors read what was spent and on what; they may not query, so their credentials cannot spend
anything. Collectors tell streams who came, and do nothing else: they read nothing. The ledger of
another server, with the role `federation`, buys noisy rows and reads no history.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from accountant.ledger import Role
from cube.refusals import NotAllowed

TACIT: Final = "/tacit.v1.Tacit/"
FEDERATION: Final = "/tacit.v1.Federation/"
RESPONDENTS: Final = "/tacit.v1.Respondents/"
FLIGHT: Final = "/arrow.flight.protocol.FlightService/"
HANDSHAKE: Final = FLIGHT + "Handshake"

# What anybody may call: the server's health, the public description of its protocols, and answering
# a collection, for which a respondent has a token of another kind (docs/threat_model.md).
OPEN_SERVICES: Final = (
    "/grpc.health.v1.Health/",
    "/grpc.reflection.v1alpha.ServerReflection/",
    RESPONDENTS,
)

_EVERYBODY: Final = frozenset(Role) - {Role.FEDERATION}
_WHO_READS: Final = _EVERYBODY - {Role.COLLECTOR}
WHO_ASKS: Final = frozenset({Role.ANALYST, Role.OWNER})
_WHO_OVERSEES: Final = frozenset({Role.OWNER, Role.AUDITOR})
WHO_OBSERVES: Final = frozenset({Role.OWNER, Role.COLLECTOR})
_WHO_FEDERATES: Final = frozenset({Role.OWNER, Role.FEDERATION})
_OWNER: Final = frozenset({Role.OWNER})


def _listed() -> Iterator[tuple[str, frozenset[Role]]]:
    for name in ("Query", "Explain", "Plan", "TestIndependence", "Marginals", "BestReport"):
        yield TACIT + name, WHO_ASKS
    for name in ("Create", "Preview", "Read", "Report", "Resample", "Drop"):
        yield f"{TACIT}{name}Synthetic", WHO_ASKS
    yield f"{TACIT}SyntheticLaw", WHO_ASKS
    yield f"{TACIT}ExportStream", WHO_ASKS
    for name in ("CreateCollection", "InviteRespondents", "CloseCollection"):
        yield TACIT + name, _OWNER
    for name in ("EstimateCollection", "ReadCollection"):
        yield TACIT + name, WHO_ASKS
    for name in ("ListTables", "ListSynthetic", "ListCollections", "GetBudget"):
        yield TACIT + name, _WHO_READS
    for name in ("PlanCollection", "PlanRobustness"):
        yield TACIT + name, _WHO_READS
    for name in ("ListLimits", "AuditReport"):
        yield TACIT + name, _WHO_OVERSEES
    yield f"{TACIT}SetLimit", _OWNER
    yield f"{TACIT}Observe", WHO_OBSERVES
    for name in ("DescribeHolder", "PriceForLedger", "MeasureForLedger"):
        yield FEDERATION + name, _WHO_FEDERATES
    yield HANDSHAKE, _EVERYBODY
    for name in (
        "ListFlights",
        "GetFlightInfo",
        "GetSchema",
        "DoGet",
        "DoExchange",
        "DoAction",
        "ListActions",
    ):
        yield FLIGHT + name, WHO_ASKS
    yield f"{FLIGHT}DoPut", WHO_ASKS | WHO_OBSERVES  # which upload it is decides who of them


# Methods that are known to take long and report their progress; all others are queries.
JOBS: Final = frozenset(
    (
        *(TACIT + name for name in ("Plan", "Marginals", "AuditReport", "Observe")),
        *(f"{TACIT}{name}Synthetic" for name in ("Create", "Preview", "Report", "Resample")),
        f"{FEDERATION}MeasureForLedger",
    )
)

MAY_CALL: Final[Mapping[str, frozenset[Role]]] = MappingProxyType(dict(_listed()))


def check_asks(role: Role) -> None:
    """Refuse a role that may not query, where calls of other kinds come in by the same door.

    Raises
    ------
    NotAllowed
    """
    if role not in WHO_ASKS:
        raise NotAllowed(
            f"The role {role} may not query.",
            hint="Ask the server's owner for a credential with another role.",
        )
