"""The page on federated tables: its two configurations run together, and say what it says."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from accountant.ledger.credentials import Role
from proxy.bootstrap import build
from proxy.config.settings import load
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.wire.server import start_server
from tests.support.configured import ask, spent
from tests.support.identities import token_for

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "federation.md").read_text()
HOLDER, COORDINATOR, GAUSSIAN = (part.split("```")[0] for part in PAGE.split("```toml\n")[1:])


BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


def with_more(text: str, more: str) -> str:
    """A configuration with more keys of its table."""
    return text.replace("budget =", f"{more}budget =")


@pytest.mark.parametrize("more", ["", GAUSSIAN], ids=["Laplace", "Gaussian"])
def test_the_configurations_of_the_page_run_together(tmp_path: Path, more: str) -> None:
    text = with_more(COORDINATOR, more)
    with ExitStack() as stack:
        for name, port in (("north", "31401"), ("south", "31402")):
            folder = tmp_path / name
            folder.mkdir()
            rows = (f"{'fm'[place % 2]},{place % 100}" for place in range(400))
            (folder / "patients.csv").write_text("\n".join(["sex,age", *rows]) + "\n")
            (folder / "tacit.toml").write_text(with_more(HOLDER, more).replace("north", name))
            service = build(load(folder / "tacit.toml"))
            stack.callback(service.close)
            running = start_server(
                service.engine,
                "127.0.0.1:0",
                authenticator=LedgerAuthenticator(service.ledger),
                features=service.features,
            )
            stack.callback(running.stop)
            token = token_for(service.ledger, "clinics", "patients", role=Role.FEDERATION)
            (tmp_path / f"{name}.token").write_text(token)
            assert f"127.0.0.1:{port}" in text
            text = text.replace(f"127.0.0.1:{port}", running.address)
        (tmp_path / "tacit.toml").write_text(text)
        coordinator = build(load(tmp_path / "tacit.toml"))
        stack.callback(coordinator.close)
        (row,) = ask(coordinator, "SELECT COUNT(*) AS n FROM patients")
        assert abs(row["n"] - 800) < 1200  # at half-width 100: once in 10 million beyond
        assert spent(coordinator) > 0
        ask(coordinator, BY_SEX, half_width=50)
        history = ask(coordinator, "SELECT noise FROM data_privacy.history")
        assert any(one["noise"] == "gaussian" for one in history) == bool(more)
        assert spent(coordinator) < 2  # as the page's limit at each holder says
