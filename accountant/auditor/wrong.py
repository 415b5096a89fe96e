"""The auditor's exception for a wrong entry."""


class Wrong(Exception):
    """An entry that is not valid, or not valid in its place; the text says why."""
