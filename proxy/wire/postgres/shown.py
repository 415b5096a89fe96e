"""What SHOW says of a session's settings, and which targets hold on this wire by default."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from planner.sql.settings import (
    NAMESPACE,
    SETTING_NAMES,
    ShowAll,
    ShowClientSetting,
    ShowSetting,
    every_default,
)
from planner.workload import RequestedTarget
from proxy.wire.postgres.client_settings import REPORTED, USER, canonical, default
from proxy.wire.postgres.transaction import SessionSettings
from proxy.wire.sessions.sessions import setting_text

Show: TypeAlias = ShowSetting | ShowClientSetting | ShowAll

DEFAULTS: Final = RequestedTarget(integer_counts=True)  # as PostgreSQL counts


def shown(statement: Show, settings: SessionSettings, user: str) -> pa.Table:
    """The answer to a SHOW; NULL where a table's own target holds."""
    client, target = dict(settings.client), settings.target.over(DEFAULTS)
    match statement:
        case ShowSetting(name):
            return _texts({NAMESPACE + name: [setting_text(target, name)]})
        case ShowClientSetting(name):
            name = canonical(name)
            value = user if name == USER else client.get(name, default(name))
            return _texts({REPORTED.get(name, name): [value]})
        case ShowAll():
            own = {NAMESPACE + name: setting_text(target, name) for name in SETTING_NAMES}
            every = {**own, **every_default(), **client}
            nothing: list[str | None] = [""] * len(every)
            return _texts({"name": [*every], "setting": [*every.values()], "description": nothing})


def _texts(columns: Mapping[str, Sequence[str | None]]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
