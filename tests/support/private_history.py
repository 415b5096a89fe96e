"""People with a private history, without noise: another analyst has asked a lot, or nobody has."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import grpc
import pyarrow as pa
from google.protobuf.json_format import MessageToDict

from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.refusals import Refused
from proxy.api.requests import Caller, QueryRequest
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from proxy.shared.refusal_details import refusal_detail
from tests.support.fakes import NoNoise
from tests.support.worlds import people_engine, random_rows

ANN, EVE = (Caller(Payer(name), Role.ANALYST, ("people",)) for name in ("ann", "eve"))
ROWS = random_rows(2000)
BUDGET = Fraction(200)  # so large that all of this is within its first tenth
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
ANN_ASKED = (
    f"{DP}(half_width => 5) COUNT(*) FROM people WHERE city = 'Paris' AND age >= 42",
    f"{DP}(half_width => 6) city, COUNT(*) AS n, SUM(visits) AS v FROM people GROUP BY city",
    f"{DP}(half_width => 3) COUNT(*) FROM people WHERE member",
    f"{DP}(half_width => 8) COUNT(*) FROM people WHERE age > 3",
)


@contextmanager
def world(
    folder: Path, *, is_busy: bool, sharing: Sharing = Sharing.PRIVATE, budget: Fraction = BUDGET
) -> Iterator[Engine]:
    folder.mkdir()
    with people_engine(folder, ROWS, budget=budget, sharing=sharing, noise=NoNoise()) as engine:
        for sql in ANN_ASKED if is_busy else ():
            engine.answer(QueryRequest(sql=sql, caller=ANN))
        yield engine


def rounded(value: object) -> object:
    """A value with its floats to six digits: sums are added in another order."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return value


def told(call: Callable[[], object]) -> object:
    """What a call gives, or what it is refused with."""
    try:
        return rounded(call())
    except Refused as refusal:
        return (refusal.code, refusal.explain(), MessageToDict(refusal_detail(refusal)))
    except grpc.RpcError as error:
        return (error.code(), error.details(), tuple(error.trailing_metadata()))
    except pa.ArrowException as error:
        return str(error).partition("gRPC client debug context")[0]
