"""How the auditor says that an entry is wrong."""


class Wrong(Exception):
    """An entry that cannot be, or cannot be where it is; the text says why."""
