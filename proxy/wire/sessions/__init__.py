"""Sessions: settings that a client's later statements are asked with."""

from proxy.wire.sessions.sessions import Sessions, applied, check_in_range, setting_text

__all__ = ["Sessions", "applied", "check_in_range", "setting_text"]
