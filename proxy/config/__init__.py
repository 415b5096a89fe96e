"""The configuration file, read and checked: valid settings, or all of its problems at once.

Nothing here opens data, a ledger or a port.
"""

from proxy.config.columns import Closing, horizon_of, levels_through, read_level
from proxy.config.ledger import LedgerSettings
from proxy.config.memory import DEFAULT_LIMITS, DEFAULT_MEMORY, MemoryLimits, SyntheticLimits
from proxy.config.settings import Settings
from proxy.config.sharing import Sharing
from proxy.config.table_settings import TableSettings

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MEMORY",
    "Closing",
    "LedgerSettings",
    "MemoryLimits",
    "Settings",
    "Sharing",
    "SyntheticLimits",
    "TableSettings",
    "horizon_of",
    "levels_through",
    "read_level",
]
