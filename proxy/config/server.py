"""The `[server]` table: where to listen, who may connect, and what a public address requires.

It is the only part of the configuration that environment variables may override.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from cube.target import PosteriorMethod
from proxy.config.memory import (
    DEFAULT_LIMITS,
    DEFAULT_MEMORY,
    ESTIMATOR_MIB,
    ESTIMATOR_MIB_LEAST,
    MIB,
    MIB_MOST,
    N_BYTES_HIGHEST,
    N_ROWS_HIGHEST,
    PLANNER_MIB,
    PLANNER_MIB_LEAST,
    MemoryLimits,
    SyntheticLimits,
)
from proxy.scheduling import DEFAULT_TIMES, CallTimes
from proxy.shared.address import (
    DEFAULT_LISTEN,
    DEFAULT_POSTGRES_LISTEN,
    host_of,
    is_loopback,
)
from proxy.sources import Problems

N_WORKERS_MAX: Final = 64  # each has the tables in memory, and follows the ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The PEM files of the server's certificate chain and its private key.

    With `client_ca`, clients must present a certificate signed by an authority in that file.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How the server is reached.

    Parameters
    ----------
    listen : str
        ``host:port``; port 0 for any free one.
    allow_anonymous : bool
        Whether calls without a credential count as calls of the analyst ``anonymous``.
    metrics_listen : str, optional
        Where metrics are served for Prometheus, if at all.
    respondents_listen : str, optional
        Where respondents in browsers are served over plain HTTP, if at all.
    postgres_listen : str, optional
        ``host:port`` for PostgreSQL's clients, if they are served at all.
    synthetic_dir : Path, optional
        Where synthetic tables are kept; by default beside the ledger's file.
    synthetic_limits : SyntheticLimits
        Limits on what is kept there.
    collections_file : Path, optional
        Where answers to collections are counted; by default beside the ledger's file.
    times : CallTimes
        How long the work for a call may take.
    memory : MemoryLimits
        How much is kept of earlier work.
    workers : int
        How many processes serve.
    posterior : PosteriorMethod
        How posteriors are computed for statements that do not say it.
    """

    listen: str
    tls: TlsFiles | None
    allow_anonymous: bool = False
    metrics_listen: str | None = None
    respondents_listen: str | None = None
    postgres_listen: str | None = None
    synthetic_dir: Path | None = None
    synthetic_limits: SyntheticLimits = DEFAULT_LIMITS
    collections_file: Path | None = None
    times: CallTimes = DEFAULT_TIMES
    workers: int = 1
    memory: MemoryLimits = DEFAULT_MEMORY
    posterior: PosteriorMethod = PosteriorMethod.EXACT


class ServerSection(BaseSettings):
    """The keys of `[server]`; ``TACIT_SERVER__LISTEN`` and the like override the file."""

    model_config = SettingsConfigDict(
        env_prefix="TACIT_SERVER__", extra="forbid", frozen=True, strict=True
    )

    listen: str = DEFAULT_LISTEN
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    allow_anonymous: bool = False
    metrics_listen: str | None = None
    respondents_listen: str | None = None
    postgres_listen: str | None = None
    statement_seconds: float = Field(default=DEFAULT_TIMES.statement, ge=5, le=3600)
    job_seconds: float = Field(default=DEFAULT_TIMES.job, ge=5, le=86_400)
    estimator_mib: int = Field(default=ESTIMATOR_MIB, ge=ESTIMATOR_MIB_LEAST, le=MIB_MOST)
    planner_mib: int = Field(default=PLANNER_MIB, ge=PLANNER_MIB_LEAST, le=MIB_MOST)
    synthetic_dir: str | None = Field(default=None, min_length=1)
    synthetic_rows_max: int = Field(default=DEFAULT_LIMITS.n_rows, ge=1, le=N_ROWS_HIGHEST)
    synthetic_bytes_max: int = Field(default=DEFAULT_LIMITS.n_bytes, ge=1, le=N_BYTES_HIGHEST)
    synthetic_tables_max: int = Field(default=DEFAULT_LIMITS.n_tables, ge=1)
    collections_file: str | None = Field(default=None, min_length=1)
    workers: int = Field(default=1, ge=1, le=N_WORKERS_MAX)
    posterior: Literal["exact", "convolution", "monte_carlo"] = "exact"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the library's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the same
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment first, then the file; no other source is used."""
        return env_settings, init_settings


def read_server(values: Any, folder: Path, problems: Problems) -> ServerSettings | None:
    """The server's settings, with paths relative to the file's folder."""
    section = problems.section(ServerSection, values, ("server",))
    if section is None:
        return None
    tls = _read_tls(section, folder, problems)
    wants_tls = section.tls_certificate is not None or section.tls_key is not None
    wires = {"listen": (section.listen, DEFAULT_LISTEN)}
    if section.postgres_listen is not None:
        wires["postgres_listen"] = (section.postgres_listen, DEFAULT_POSTGRES_LISTEN)
    for key, (address, example) in wires.items():
        _check_wire(key, address, example, problems, wants_tls=wants_tls)
    if section.allow_anonymous:
        _check_anonymous(section, [address for address, _ in wires.values()], problems)
    for key, plain, port in (
        ("metrics_listen", section.metrics_listen, 9464),
        ("respondents_listen", section.respondents_listen, 9480),
    ):
        host = None if plain is None else host_of(plain)
        if plain is not None and not (host and is_loopback(host)):
            problems.add(("server", key), f'should be loopback, such as "127.0.0.1:{port}"')
    directory = None if section.synthetic_dir is None else folder / section.synthetic_dir
    if directory is not None and not directory.is_dir():
        problems.add(("server", "synthetic_dir"), "should be an existing directory")
    counts = None if section.collections_file is None else folder / section.collections_file
    if counts is not None and (counts.is_dir() or not counts.parent.is_dir()):
        problems.add(("server", "collections_file"), "should be a file in an existing directory")
    return ServerSettings(
        listen=section.listen,
        tls=tls,
        allow_anonymous=section.allow_anonymous,
        metrics_listen=section.metrics_listen,
        respondents_listen=section.respondents_listen,
        postgres_listen=section.postgres_listen,
        synthetic_dir=directory,
        collections_file=counts,
        synthetic_limits=SyntheticLimits(
            n_rows=section.synthetic_rows_max,
            n_bytes=section.synthetic_bytes_max,
            n_tables=section.synthetic_tables_max,
        ),
        times=CallTimes(statement=section.statement_seconds, job=section.job_seconds),
        memory=MemoryLimits(section.estimator_mib * MIB, section.planner_mib * MIB),
        workers=section.workers,
        posterior=PosteriorMethod(section.posterior),
    )


def _check_wire(
    key: str, address: str, example: str, problems: Problems, *, wants_tls: bool
) -> None:
    host = host_of(address)
    if host is None:
        problems.add(("server", key), f'should be host:port, such as "{example}"')
    elif not wants_tls and not is_loopback(host):
        problems.add(("server", key), "is not loopback, so tls_certificate and tls_key are needed")


def _check_anonymous(section: ServerSection, addresses: Iterable[str], problems: Problems) -> None:
    """Everyone who reaches a port is a caller then; so only this machine may reach them."""
    keys = ("server", "allow_anonymous")
    hosts = [host for address in addresses if (host := host_of(address)) is not None]
    if not all(map(is_loopback, hosts)):
        problems.add(keys, "is for a loopback address only")
    if section.tls_client_ca is not None:
        problems.add(keys, "cannot be combined with tls_client_ca, which identifies every client")


def _read_tls(section: ServerSection, folder: Path, problems: Problems) -> TlsFiles | None:
    named = {"tls_certificate": section.tls_certificate, "tls_key": section.tls_key}
    if section.tls_client_ca is not None:
        named["tls_client_ca"] = section.tls_client_ca
    if not any(named.values()):
        return None
    for key, name in named.items():
        if not name:
            problems.add(("server", key), "is missing: a certificate and a key go together")
        elif not (folder / name).is_file():
            problems.add(("server", key), "names no file")
    certificate, key_file = section.tls_certificate, section.tls_key
    if not certificate or not key_file:
        return None
    client_ca = section.tls_client_ca
    return TlsFiles(
        certificate=folder / certificate,
        key=folder / key_file,
        client_ca=None if client_ca is None else folder / client_ca,
    )
