"""Who may come in, as the configuration says it, and what it refuses to say."""

from pathlib import Path
from typing import Any

import pytest

from cube.refusals import ConfigurationInvalid
from proxy.cli.serving.running import who_may_come_in
from proxy.config.memory import DEFAULT_MEMORY, MemoryLimits, SyntheticLimits
from proxy.config.server import ServerSettings, TlsFiles, read_server
from proxy.scheduling.fair_share import CallTimes
from proxy.sources.problems import Problems

TLS = {"tls_certificate": "server.pem", "tls_key": "server.key"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("server.pem", "server.key", "ca.pem"):
        (tmp_path / name).write_text("x")
    return tmp_path


def read(folder: Path, **values: Any) -> ServerSettings:
    problems = Problems("tacit.toml")
    settings = read_server(values, folder, problems)
    problems.raise_if_any()
    assert settings is not None
    return settings


def test_nobody_comes_in_without_a_credential_unless_that_is_said(folder: Path) -> None:
    assert not read(folder).allow_anonymous
    settings = read(folder, allow_anonymous=True)
    assert settings.allow_anonymous
    assert who_may_come_in(settings).startswith("ANYBODY")
    assert "anonymous" not in who_may_come_in(read(folder)).casefold()


@pytest.mark.parametrize("key", ["metrics_listen", "respondents_listen"])
def test_plain_http_is_for_this_machine_only(folder: Path, key: str) -> None:
    assert getattr(read(folder), key) is None
    assert getattr(read(folder, **{key: "[::1]:9480"}), key) == "[::1]:9480"
    for listen in ("0.0.0.0:9480", "example.org:9480", "9480"):
        with pytest.raises(ConfigurationInvalid, match=key):
            read(folder, **{key: listen})


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "localhost:31337", "[::1]:0"])
def test_it_may_be_said_of_loopback(folder: Path, listen: str) -> None:
    assert read(folder, listen=listen, allow_anonymous=True).allow_anonymous
    assert read(folder, listen=listen, allow_anonymous=True, **TLS).allow_anonymous


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "example.org:1", "192.168.0.1:1"])
def test_and_of_nothing_else(folder: Path, listen: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"server\.allow_anonymous: is for a loopback"):
        read(folder, listen=listen, allow_anonymous=True, **TLS)


def test_nor_beside_certificates_that_everybody_shows(folder: Path) -> None:
    with pytest.raises(
        ConfigurationInvalid, match=r"server\.allow_anonymous: cannot be combined with"
    ):
        read(folder, allow_anonymous=True, tls_client_ca="ca.pem", **TLS)


def test_the_postgresql_wire_is_there_if_it_is_asked_for(folder: Path) -> None:
    assert read(folder).postgres_listen is None
    assert read(folder, postgres_listen="127.0.0.1:5433").postgres_listen == "127.0.0.1:5433"
    reached = read(folder, postgres_listen="0.0.0.0:5433", **TLS)
    assert reached.postgres_listen == "0.0.0.0:5433"


@pytest.mark.parametrize("listen", ["0.0.0.0:5433", "[::]:5433", "192.168.0.1:5433", "db.lan:1"])
def test_it_is_plain_text_on_loopback_only(folder: Path, listen: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"server\.postgres_listen: is not loopback"):
        read(folder, postgres_listen=listen)
    with pytest.raises(ConfigurationInvalid, match=r"server\.allow_anonymous: is for a loopback"):
        read(folder, postgres_listen=listen, allow_anonymous=True, **TLS)


@pytest.mark.parametrize("listen", ["", "5433", "localhost", "localhost:", "localhost:65536"])
def test_its_address_is_one(folder: Path, listen: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"server\.postgres_listen: should be host:port"):
        read(folder, postgres_listen=listen)


def test_how_much_is_kept_of_earlier_work_is_said_in_mib(folder: Path) -> None:
    assert read(folder).memory == DEFAULT_MEMORY
    found = read(folder, estimator_mib=32, planner_mib=16).memory
    assert found == MemoryLimits(estimator=32 * 2**20, planner=16 * 2**20)
    for key in ("estimator_mib", "planner_mib"):
        with pytest.raises(ConfigurationInvalid, match=rf"server\.{key}: .* greater than"):
            read(folder, **{key: 15})


def test_how_long_a_statement_and_a_job_may_take_can_be_said(folder: Path) -> None:
    assert read(folder).times == CallTimes(statement=10.0, job=600.0)
    assert read(folder, statement_seconds=30, job_seconds=5).times == CallTimes(30.0, 5.0)
    for key in ("statement_seconds", "job_seconds"):
        for wrong in (4.9, 0, -1, 1e6, "10s", float("nan")):
            with pytest.raises(ConfigurationInvalid, match=rf"server\.{key}"):
                read(folder, **{key: wrong})


def test_an_authority_for_clients_goes_with_tls(folder: Path) -> None:
    settings = read(folder, tls_client_ca="ca.pem", **TLS)
    assert settings.tls == TlsFiles(
        certificate=folder / "server.pem", key=folder / "server.key", client_ca=folder / "ca.pem"
    )
    assert "certificate" in who_may_come_in(settings)
    assert read(folder, **TLS).tls == TlsFiles(
        certificate=folder / "server.pem", key=folder / "server.key"
    )
    with pytest.raises(ConfigurationInvalid, match=r"server\.tls_certificate: is missing"):
        read(folder, tls_client_ca="ca.pem")
    for nothing in ("absent.pem", ""):
        with pytest.raises(ConfigurationInvalid, match=r"server\.tls_client_ca"):
            read(folder, tls_client_ca=nothing, **TLS)


@pytest.mark.parametrize("value", ["yes", "true", 1, None])
def test_yes_is_written_true(folder: Path, value: object) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"server\.allow_anonymous"):
        read(folder, allow_anonymous=value)


def test_the_environment_may_say_it_and_is_held_to_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_SERVER__ALLOW_ANONYMOUS", "true")
    assert read(folder).allow_anonymous
    with pytest.raises(ConfigurationInvalid, match="loopback"):
        read(folder, listen="0.0.0.0:0", **TLS)


def test_synthetic_tables_have_a_place_and_limits(folder: Path) -> None:
    assert read(folder).synthetic_dir is None
    (folder / "made").mkdir()
    settings = read(folder, synthetic_dir="made", synthetic_rows_max=10, synthetic_tables_max=2)
    assert settings.synthetic_dir == folder / "made"
    assert settings.synthetic_limits == SyntheticLimits(n_rows=10, n_tables=2)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"synthetic_dir": "nowhere"}, r"server\.synthetic_dir: should be an existing directory"),
        ({"synthetic_rows_max": 10**7}, r"server\.synthetic_rows_max: .* less than or equal"),
        ({"synthetic_tables_max": 0}, r"server\.synthetic_tables_max: .* greater than or equal"),
    ],
)
def test_a_place_that_is_none_and_limits_beyond_reason_are_problems(
    folder: Path, values: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=problem):
        read(folder, **values)


def test_one_process_serves_unless_the_file_or_the_environment_says_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(folder).workers == 1
    assert read(folder, workers=4).workers == 4
    monkeypatch.setenv("TACIT_SERVER__WORKERS", "3")
    assert read(folder, workers=4).workers == 3


@pytest.mark.parametrize("value", [0, -1, 65, 1.5, "2", True])
def test_a_number_of_workers_is_a_whole_one_in_reason(folder: Path, value: object) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"server\.workers"):
        read(folder, workers=value)
