"""Problems of a configuration file, collected so that its owner sees all of them at once.

A problem is a key path and a sentence. Nothing here knows which keys exist.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from cube.refusals import ConfigurationInvalid

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
N_LISTED_MAX: Final = 40  # problems, each on a line
N_KINDS_MAX: Final = 3
NUMBERS = frozenset({"int", "float"})  # the types of a number that may be either


class Section(BaseModel):
    """A table of the file: only known keys, no silent conversions, no change afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


SectionT = TypeVar("SectionT", bound=BaseModel)


class Problems:
    """The problems found so far in one file, or in another named thing."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._found: list[str] = []

    def add(self, keys: Iterable[str | int], what: str) -> None:
        """Record one problem at a key path; duplicates count once."""
        problem = f"{key_path(keys)}: {what}"
        if problem not in self._found:
            self._found.append(problem)

    def section(self, model: type[SectionT], values: Any, keys: tuple[str, ...]) -> SectionT | None:
        """One table of the file as a checked model; None if it has problems, which are recorded."""
        if not isinstance(values, Mapping):
            self.add(keys, "should be a table")
            return None
        # An unknown key is recorded and removed, so that it hides no problem of the known keys.
        for key in values:
            if key not in model.model_fields:
                listed = ", ".join(model.model_fields)
                self.add((*keys, key), f"is not a known key; known keys are {listed}")
        known = {key: value for key, value in values.items() if key in model.model_fields}
        try:
            return model(**known)
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                where, said = detail["loc"], explain(detail["type"], detail["msg"])
                if len(where) > 1 and where[-1] in NUMBERS:  # one problem, not one for each type
                    where, said = where[:-1], "should be a number"
                self.add((*keys, *where), said)
            return None

    def _kinds(self) -> str:
        """What is said most often among the problems that are not listed, and how often."""
        said = Counter(problem.split(": ", 1)[1] for problem in self._found[N_LISTED_MAX:])
        most = [f"{what} ({n:,})" for what, n in said.most_common(N_KINDS_MAX) if n > 1]
        return f": {', '.join(most)}" if most else ""

    def raise_if_any(self) -> None:
        """Refuse to start with every problem listed."""
        if not self._found:
            return
        count = "a problem" if len(self._found) == 1 else f"{len(self._found):,} problems"
        listed = "".join(f"\n  {problem}" for problem in self._found[:N_LISTED_MAX])
        if len(self._found) > N_LISTED_MAX:
            listed += f"\n  and {len(self._found) - N_LISTED_MAX:,} more{self._kinds()}"
        raise ConfigurationInvalid(f"{self._path} has {count}:{listed}")


def explain(kind: str, message: str) -> str:
    """A validator's message, rephrased for the person who edits the file."""
    if kind == "missing":
        return "is missing"
    words = message.removeprefix("Value error, ").removeprefix("Input ")
    return words[:1].lower() + words[1:]


def key_path(keys: Iterable[str | int]) -> str:
    """A dotted key, quoted where TOML requires it.

    >>> key_path(["tables", "my people", "columns", "age"])
    'tables."my people".columns.age'
    """
    return ".".join(
        str(key) if isinstance(key, int) or BARE_KEY.fullmatch(key) else f'"{key}"' for key in keys
    )
