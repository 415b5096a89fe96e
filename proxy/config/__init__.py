"""The configuration file, read and checked: valid settings, or all of its problems at once.

Nothing here opens data, a ledger or a port.
"""

from proxy.config.address import DEFAULT_LISTEN, host_of, is_loopback
from proxy.config.columns import Closing, horizon_of, levels_through, read_level
from proxy.config.ledger import LedgerSettings
from proxy.config.memory import DEFAULT_LIMITS, DEFAULT_MEMORY, MemoryLimits, SyntheticLimits
from proxy.config.server import N_WORKERS_MAX, ServerSettings
from proxy.config.settings import Settings, load
from proxy.config.sharing import Sharing
from proxy.config.table_settings import TableSettings

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_LISTEN",
    "DEFAULT_MEMORY",
    "N_WORKERS_MAX",
    "Closing",
    "LedgerSettings",
    "MemoryLimits",
    "ServerSettings",
    "Settings",
    "Sharing",
    "SyntheticLimits",
    "TableSettings",
    "horizon_of",
    "host_of",
    "is_loopback",
    "levels_through",
    "load",
    "read_level",
]
