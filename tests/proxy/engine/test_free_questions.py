"""What an analyst finds out by free questions alone about what another analyst has asked."""

from bisect import bisect_left
from fractions import Fraction
from pathlib import Path

from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from proxy.api.requests import Caller, QueryRequest
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from tests.support.worlds import people_engine, random_rows

ANN, EVE = (Caller(Payer(name), Role.ANALYST, ("people",)) for name in ("ann", "eve"))
CITIES, AGES = ("Oslo", "Paris", "Rome"), range(1, 100)
CITY, AGE = "Paris", 42  # what Ann is interested in, and nobody else knows
COUNT = "SELECT COUNT(*) FROM people WHERE "
N_QUESTIONS = 10  # three cities, and then the ages are halved


class Listener:
    """Somebody who asks for prices, and for nothing else."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.n_asked = 0

    def is_paid(self, predicate: str) -> bool:
        """Whether an answer would cost something: somebody has asked about the same records."""
        self.n_asked += 1
        return self._engine.explain(QueryRequest(sql=COUNT + predicate, caller=EVE)).epsilon > 0

    def predicate(self) -> tuple[str, int] | None:
        """A predicate that has been paid for: `city = . AND age >= .`."""
        city = next((one for one in CITIES if self.is_paid(f"city = '{one}'")), None)
        if city is None:
            return None
        first = bisect_left(
            AGES, x=True, key=lambda age: self.is_paid(f"city = '{city}' AND age <= {age}")
        )
        return city, AGES[first]


def ann_asks(engine: Engine) -> None:
    sql = f"{COUNT} city = '{CITY}' AND age >= {AGE}"
    engine.answer(QueryRequest(sql=sql, caller=ANN))


def test_ten_prices_of_a_shared_history_tell_a_city_and_an_age_that_ann_asked_about(
    tmp_path: Path,
) -> None:
    with people_engine(tmp_path, random_rows(500), budget=Fraction(10)) as engine:
        ann_asks(engine)
        eve = Listener(engine)
        assert eve.predicate() == (CITY, AGE)
        assert eve.n_asked <= N_QUESTIONS
        # What is free is free because somebody has asked for just this.
        assert not eve.is_paid(f"city = '{CITY}' AND age >= {AGE}")


def test_prices_of_a_private_history_tell_nothing_of_it(tmp_path: Path) -> None:
    with people_engine(
        tmp_path, random_rows(500), budget=Fraction(10), sharing=Sharing.PRIVATE
    ) as engine:
        before = Listener(engine).predicate()
        ann_asks(engine)
        assert Listener(engine).predicate() == before != (CITY, AGE)
        assert Listener(engine).is_paid(f"city = '{CITY}' AND age >= {AGE}")
