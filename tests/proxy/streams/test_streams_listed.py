"""The view of streams: what their epochs lost, for whoever may know of them."""

from pathlib import Path

from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from proxy.api.requests import Caller
from tests.support.streaming import DAILY, TOMORROW, streaming

ANALYST = Caller(Payer("bob"), Role.ANALYST, ("visits",))
STRANGER = Caller(Payer("eve"), Role.ANALYST, ("people",))


def test_streams_are_listed_with_what_their_epochs_lost(tmp_path: Path) -> None:
    listed = "SELECT * FROM data_privacy.streams ORDER BY table_name"
    owner = Caller(Payer("ann"), Role.OWNER, ("*",))
    with streaming(tmp_path / "a.ledger") as server:
        assert server.rows(listed) == []
        server.rows(DAILY.replace("'day'", "'day', departures => true, budget => 30"), owner)
        server.turn(TOMORROW)
        server.rows("CREATE STREAM hits (who BUCKETS 64)", owner)
        server.rows("DROP STREAM hits")
        hits, visits = server.rows(listed, owner)
        assert hits["agreement"] is None, "users share buckets"
        assert len(str(visits["agreement"])) == 16
        assert visits == {
            "table_name": "visits",
            "column_name": "user",
            "state": "open",
            "epochs": "day",
            "epsilon": 8.0,
            "epsilon_spent": 16.0,
            "budget": 30.0,
            "n_begun": 2,
            "n_released": 1,
            "universe": 1000,
            "bits": 1000,
            "has_departures": True,
            "predicates": "",
            "visits": None,
            "releases": 1,
            "agreement": visits["agreement"],
            "opened_by": "ann",
        }
        assert hits["state"] == "dropped"
        assert (hits["universe"], hits["bits"], hits["budget"]) == (None, 64, None)
        assert (hits["n_begun"], hits["n_released"], hits["epsilon_spent"]) == (1, 0, 1.0)
        assert server.rows(listed, ANALYST) == [visits]
        assert server.rows(listed, STRANGER) == []
        described = server.rows(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'streams' "
            "AND table_schema = 'data_privacy' ORDER BY ordinal_position"
        )
        assert [one["column_name"] for one in described] == list(visits)
