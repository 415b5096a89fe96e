"""Attributes from a file: TOML, with the levels of each."""

import tomllib
from pathlib import Path
from typing import Final

from cube.refusals import InvalidRequest
from local_dp.campaign import Attribute

EXAMPLE: Final = (
    'smokes = [false, true], a line for each attribute, and education = ["none", "..."]'
)


def attributes_in(path: Path) -> tuple[Attribute, ...]:
    """The attributes of a file, in its order.

    Raises
    ------
    InvalidRequest
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        found = tuple(
            Attribute(name, tuple(levels if isinstance(levels, list) else ()))
            for name, levels in content.items()
        )
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError) as error:
        raise InvalidRequest(
            f"{path} does not hold attributes: {error}.", hint=f"Write {EXAMPLE}."
        ) from None
    if not found:
        raise InvalidRequest(f"{path} holds no attributes.", hint=f"Write {EXAMPLE}.")
    return found
