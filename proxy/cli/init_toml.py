"""Names and strings as TOML, for the drafts of configuration files."""

import json

from proxy.sources.problems import BARE_KEY


def toml_string(text: str) -> str:
    r"""A basic string.

    >>> print(toml_string('say "\t"'))
    "say \"\t\""
    """
    # JSON's escapes are valid TOML, except for one control character that JSON does not escape.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """A key, quoted if necessary.

    >>> toml_key("age"), toml_key("my age")
    ('age', '"my age"')
    """
    return name if BARE_KEY.fullmatch(name) else toml_string(name)
