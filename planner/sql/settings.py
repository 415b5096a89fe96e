"""Reads SET, RESET and SHOW, for Tacit's own settings and for settings that clients send.

    SET [SESSION] tacit.half_width = 50        SET tacit.confidence TO '0.9'
    RESET tacit.epsilon    RESET ALL           SHOW tacit.half_width

What clients set of their own accord is read, and changes no answer: `CLIENT_SETTINGS` lists it.
Nothing here knows which session the settings are for.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, InvalidTarget, TooLarge, UnknownName
from cube.target import PosteriorMethod
from planner.sql.messages import shortened, suggestion
from planner.sql.options import SWITCHES, fallback_named, posterior_named, switched
from planner.sql.words import WordReader, is_name, keyword
from planner.workload import Fallback

NAMESPACE: Final = "tacit."
AS_OF: Final = "as_of"
POSTERIOR: Final = "posterior"
NOTICES: Final = f"{NAMESPACE}notices"
# A fraction comes before the size that goes with it, since settings are applied in this order.
SETTING_NAMES: Final = (
    *("half_width", "confidence", "epsilon", "relative", "at_least", "decide"),
    *("fallback", POSTERIOR, *SWITCHES, AS_OF),
)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?|-?\d{1,18}", re.ASCII)
N_WORDS_MAX = 1000  # of one setting

# The settings that drivers and tools send when they connect, with the value that SHOW gives. A wire
# that takes one obeys it or refuses its value.
SHOWN: Final[Mapping[str, str]] = {
    "application_name": "",
    "array_nulls": "on",
    "backslash_quote": "safe_encoding",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "intervalstyle": "postgres",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "lock_timeout": "0",
    "names": "UTF8",
    "role": "none",
    "search_path": "public",
    "session authorization": "",
    "session characteristics": "read committed",
    "session_replication_role": "origin",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    NOTICES: "off",  # ours, and changes what is told, not what is answered
    "time zone": "UTC",
    "timezone": "UTC",
    "transaction": "read committed",
    "transform_null_equals": "off",
}
_PLANS: Final = (
    *("async_append", "bitmapscan", "gathermerge", "hashagg", "hashjoin", "incremental_sort"),
    *("indexonlyscan", "indexscan", "material", "memoize", "mergejoin", "nestloop"),
    *("parallel_append", "parallel_hash", "partition_pruning", "seqscan", "sort", "tidscan"),
)
# What a server that only reads can leave undone: how statements are planned, how long locks are
# waited for, how rows are written. They are kept, shown, and change nothing.
IGNORED: Final[Mapping[str, str]] = {
    "backend_flush_after": "0",
    "check_function_bodies": "on",
    "client_connection_check_interval": "0",
    "commit_siblings": "5",
    "constraint_exclusion": "partition",
    "cpu_index_tuple_cost": "0.005",
    "cpu_operator_cost": "0.0025",
    "cpu_tuple_cost": "0.01",
    "cursor_tuple_fraction": "0.1",
    "default_statistics_target": "100",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_text_search_config": "pg_catalog.english",
    "default_toast_compression": "pglz",
    "default_transaction_deferrable": "off",
    "effective_cache_size": "4GB",
    "effective_io_concurrency": "1",
    "escape_string_warning": "on",
    "force_parallel_mode": "off",
    "from_collapse_limit": "8",
    "geqo": "on",
    "geqo_effort": "5",
    "geqo_generations": "0",
    "geqo_pool_size": "0",
    "geqo_seed": "0",
    "geqo_selection_bias": "2",
    "geqo_threshold": "12",
    "gin_fuzzy_search_limit": "0",
    "gin_pending_list_limit": "4MB",
    "hash_mem_multiplier": "2",
    "idle_session_timeout": "0",
    "jit": "on",
    "jit_above_cost": "100000",
    "jit_expressions": "on",
    "jit_inline_above_cost": "500000",
    "jit_optimize_above_cost": "500000",
    "jit_tuple_deforming": "on",
    "join_collapse_limit": "8",
    "lc_messages": "C",
    "maintenance_io_concurrency": "10",
    "maintenance_work_mem": "64MB",
    "max_parallel_maintenance_workers": "2",
    "max_parallel_workers": "8",
    "max_parallel_workers_per_gather": "2",
    "min_parallel_index_scan_size": "512kB",
    "min_parallel_table_scan_size": "8MB",
    "parallel_leader_participation": "on",
    "parallel_setup_cost": "1000",
    "parallel_tuple_cost": "0.1",
    "plan_cache_mode": "auto",
    "quote_all_identifiers": "off",
    "random_page_cost": "4",
    "recursive_worktable_factor": "10",
    "row_security": "on",
    "seq_page_cost": "1",
    "synchronize_seqscans": "on",
    "synchronous_commit": "on",
    "tcp_keepalives_count": "9",
    "tcp_keepalives_idle": "7200",
    "tcp_keepalives_interval": "75",
    "tcp_user_timeout": "0",
    "temp_buffers": "8MB",
    "temp_tablespaces": "",
    "transaction_deferrable": "off",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "transaction_timeout": "0",
    "work_mem": "4MB",
    "xmlbinary": "base64",
    "xmloption": "content",
    **{f"enable_{plan}": "on" for plan in _PLANS},
    "enable_partitionwise_aggregate": "off",
    "enable_partitionwise_join": "off",
}
CLIENT_SETTINGS: Final = frozenset({*SHOWN, *IGNORED})
# What cannot be set at all.
READ_ONLY: Final[Mapping[str, str]] = {
    "block_size": "8192",
    "data_checksums": "off",
    "debug_assertions": "off",
    "fsync": "on",
    "full_page_writes": "on",
    "hot_standby": "on",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "is_superuser": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "max_connections": "100",
    "max_function_args": "100",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "max_prepared_transactions": "0",
    "password_encryption": "scram-sha-256",
    "segment_size": "1GB",
    "server_encoding": "UTF8",
    "server_version": "15.0",
    "server_version_num": "150000",
    "wal_block_size": "8192",
    "wal_level": "replica",
}
_PHRASES: Final = (
    *("time zone", "session authorization", "session characteristics"),
    *("names", "transaction"),
)
_FORMS: Final = {
    "SET": "Write SET tacit.half_width = 50.",
    "RESET": "Write RESET tacit.half_width, or RESET ALL.",
    "SHOW": "Write SHOW tacit.half_width.",
}

# Short, so that no exponent makes an exact number of a billion digits.
_DECIMAL = re.compile(
    r"[+-]?([0-9]{1,20}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?", re.ASCII
)


SettingValue: TypeAlias = Fraction | Fallback | PosteriorMethod | bool | str


@dataclass(frozen=True, slots=True)
class SetSetting:
    """Give one of our settings a value; one that is local holds until the transaction ends."""

    name: str
    value: SettingValue
    is_local: bool = False
    verb: ClassVar[str] = "SET"


@dataclass(frozen=True, slots=True)
class ResetSetting:
    """Take the value of one of our settings away."""

    name: str
    is_local: bool = False
    verb: ClassVar[str] = "RESET"


@dataclass(frozen=True, slots=True)
class ResetAll:
    """Take the values of all our settings away."""

    verb: ClassVar[str] = "RESET"


@dataclass(frozen=True, slots=True)
class ShowSetting:
    """Show the value of one of Tacit's own settings."""

    name: str
    verb: ClassVar[str] = "SHOW"


@dataclass(frozen=True, slots=True)
class ClientSetting:
    """SET or RESET (without a value) of a setting that changes no answer."""

    name: str
    value: str | None = None
    is_local: bool = False
    verb: ClassVar[str] = "SET"


@dataclass(frozen=True, slots=True)
class ShowClientSetting:
    """Say what a setting is that changes no answer, or cannot be set."""

    name: str
    verb: ClassVar[str] = "SHOW"

    @property
    def value(self) -> str:
        """What it is where a session has not set it."""
        return default_of(self.name)


@dataclass(frozen=True, slots=True)
class ShowAll:
    """Say what every setting is."""

    verb: ClassVar[str] = "SHOW"


def default_of(name: str) -> str:
    """What one of the clients' settings is where a session has not set it."""
    return SHOWN.get(name) or IGNORED.get(name) or READ_ONLY.get(name, "")


def every_default() -> dict[str, str]:
    """Every setting whose name is one word, with its default value."""
    every = {**SHOWN, **IGNORED, **READ_ONLY}
    return {name: every[name] for name in sorted(every) if name not in _PHRASES}


SettingStatement: TypeAlias = (
    SetSetting | ResetSetting | ResetAll | ShowSetting | ClientSetting | ShowClientSetting | ShowAll
)


def read_setting(words: Sequence[Token]) -> SettingStatement | None:
    """The statement that begins with SET, RESET or SHOW; None if the words begin otherwise.

    Raises
    ------
    InvalidSql, UnsupportedSql, UnknownName, InvalidTarget, TooLarge
        If it is malformed, of no effect that could be meant, unknown or no number.
    """
    verb = keyword(words[0])
    if verb not in _FORMS:
        return None
    if len(words) > N_WORDS_MAX:
        raise TooLarge(
            f"A setting has more than {N_WORDS_MAX} words and signs.", hint="Shorten its value."
        )
    reader = WordReader(words[1:])
    if verb == "SET":
        return _set(reader)
    if verb == "RESET" and [keyword(word) for word in reader.rest] == ["ALL"]:
        return ResetAll()
    if verb == "SHOW" and [keyword(word) for word in reader.rest] == ["ALL"]:
        return ShowAll()
    name = _name(reader, verb)
    if reader.rest and not (verb == "SHOW" and name in _PHRASES):
        raise _malformed(verb, reader.rest)
    if verb == "RESET":
        return ClientSetting(name) if name in CLIENT_SETTINGS else ResetSetting(setting_named(name))
    return (
        ShowClientSetting(name)
        if name in CLIENT_SETTINGS or name in READ_ONLY
        else ShowSetting(setting_named(name))
    )


def setting_of(
    name: str, value: str | None, *, is_local: bool
) -> SetSetting | ResetSetting | ClientSetting:
    """The SET that gives any setting a value, or its default if there is none.

    >>> setting_of("JIT", "off", is_local=False)
    ClientSetting(name='jit', value='off', is_local=False)

    Raises
    ------
    UnknownName, InvalidTarget
        If there is no such setting, or it is one of ours and the value is none of it.
    """
    name = name.strip().lower()
    if name in CLIENT_SETTINGS:
        return ClientSetting(name, value, is_local)
    setting = setting_named(name)
    if value is None:
        return ResetSetting(setting, is_local)
    return SetSetting(setting, setting_value(setting, name, value), is_local)


def exact_setting(name: str, text: str) -> Fraction:
    """The number that a setting's text writes, exactly.

    Raises
    ------
    InvalidTarget
        If it is no decimal number; the message names the setting as the client wrote it.
    """
    if _DECIMAL.fullmatch(text.strip()) is None:
        raise InvalidTarget(
            f"{name} must be a decimal number, not {shortened(text)!a}.",
            hint="Write a number such as 0.25 or 1e-3.",
        )
    return Fraction(text.strip())


def setting_value(setting: str, name: str, text: str) -> SettingValue:
    """The value that a setting's text writes.

    Parameters
    ----------
    setting : str
        One of `SETTING_NAMES`.
    name : str
        The setting as the client wrote it, for messages.
    text : str

    Raises
    ------
    InvalidTarget
        If it is no value of that setting.
    """
    if setting == "fallback":
        return fallback_named(text.strip())
    if setting == POSTERIOR:
        return posterior_named(text.strip())
    if setting in SWITCHES:
        return switched(name, text.strip())
    if setting == AS_OF:
        return _moment(name, text.strip())
    return exact_setting(name, text)


def _moment(name: str, text: str) -> str:
    """The text of a day, a moment or a whole number."""
    if _MOMENT.fullmatch(text) is None:
        raise InvalidTarget(
            f"{name} must be a date, not {shortened(text)!a}.",
            hint="Write a date such as '2026-10-31', or a number for a table that grows by "
            "numbers.",
        )
    return text


def _set(reader: WordReader) -> SettingStatement:
    """What stands after SET."""
    is_local = reader.passed("LOCAL")
    if " ".join(keyword(word).lower() for word in reader.rest[:2]) not in _PHRASES:
        reader.passed("SESSION")
    name = _name(reader, "SET")
    if name in CLIENT_SETTINGS:
        return ClientSetting(name, _client_value(reader), is_local)
    setting = setting_named(name)
    if not (reader.passed("=") or reader.passed("TO")):
        raise _malformed("SET", reader.rest)
    if len(reader.rest) == 1 and reader.passed("DEFAULT"):
        return ResetSetting(setting, is_local)
    return SetSetting(setting, _value(setting, name, reader), is_local)


def _client_value(reader: WordReader) -> str | None:
    """The text of a value; None for the default."""
    if not reader.passed("TO"):
        reader.passed("=")
    if len(reader.rest) == 1 and (reader.passed("DEFAULT") or reader.passed("LOCAL")):
        return None
    items: list[list[str]] = [[]]
    for word in reader.rest:
        if keyword(word) == ",":
            items.append([])
        else:
            items[-1].append(word.text)
    return ", ".join(" ".join(item) for item in items).replace("- ", "-")


def _value(setting: str, name: str, reader: WordReader) -> SettingValue:
    sign = next((sign for sign in "+-" if reader.passed(sign)), "")
    match [(word.token_type, word.text, word.start) for word in reader.rest]:
        case [(TokenType.NUMBER, text, _)]:
            return setting_value(setting, name, sign + text)
        case [(TokenType.DOT, _, place), (TokenType.NUMBER, text, after)] if after == place + 1:
            return setting_value(setting, name, f"{sign}.{text}")
        case [(kind, text, _)] if not sign:
            is_word = kind == TokenType.STRING or is_name(reader.rest[0])
            if is_word or setting in SWITCHES:  # ON is a keyword
                return setting_value(setting, name, text)
    if setting == AS_OF:
        raise InvalidTarget(
            f"{name} must be one date, or DEFAULT.", hint=f"Write SET {name} = '2026-10-31'."
        )
    if setting in {"fallback", POSTERIOR}:
        word = "exact" if setting == POSTERIOR else "history"
        raise InvalidTarget(
            f"{name} must be one word, or DEFAULT.", hint=f"Write SET {name} = '{word}'."
        )
    raise InvalidTarget(f"{name} must be one number, or DEFAULT.", hint=f"Write SET {name} = 0.5.")


def _name(reader: WordReader, verb: str) -> str:
    """A dotted name in lower case."""
    for phrase in _PHRASES:
        if reader.passed(*phrase.upper().split()):
            return phrase
    parts: list[str] = []
    while (word := reader.next_word()) is not None and is_name(word):
        parts.append(word.text.lower())
        if not reader.passed("."):
            return ".".join(parts)
    raise _malformed(verb, [] if word is None else [word, *reader.rest])


def setting_named(name: str) -> str:
    """The part of a setting's full name that is behind the dot.

    Raises
    ------
    UnknownName
        If there is no such setting.
    """
    setting = name.removeprefix(NAMESPACE)
    if name.startswith(NAMESPACE) and setting in SETTING_NAMES:
        return setting
    known = [*(NAMESPACE + each for each in SETTING_NAMES), NOTICES]
    raise UnknownName(
        f"There is no setting {shortened(name)!a}.",
        hint=suggestion(name, known) or f"The settings are {settings_listed()}.",
    )


def settings_listed() -> str:
    """The full names of our settings, for a message."""
    return ", ".join(NAMESPACE + name for name in SETTING_NAMES)


def _malformed(verb: str, words: Iterable[Token]) -> InvalidSql:
    near = shortened(" ".join(word.text for word in words)) or "the end"
    return InvalidSql(f"{verb} has a syntax error near {near}.", hint=_FORMS[verb])
