"""Logs: one line per event, JSON for machines and colours for a terminal, through an allow-list.

A field passes if its name is listed here and its value is of the listed type; anything else that a
caller adds, above all an exception's text, is dropped before anything is written. The listed fields
are public: names in the schema, codes, costs and times, never SQL, never a result.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from io import TextIOBase
from typing import Any, Final, TextIO, cast

import structlog

ALLOWED_FIELDS: Mapping[str, tuple[type, ...]] = {
    "address": (str,),
    "analyst": (str,),  # chosen by the owner when the credential was issued
    "code": (str,),
    "epsilon": (int, float),
    "epsilon_left": (int, float),
    "error": (str,),
    "incident": (str,),
    "level": (str,),
    "method": (str,),
    "milliseconds_max": (int, float),
    "role": (str,),
    "signal": (str,),
    "stage": (str,),
    "table": (str,),
    "timestamp": (str,),
    "worker": (int,),
}
# A sentence could contain a value; a fixed event name cannot.
EVENT_NAME = re.compile(r"[a-z]+(_[a-z]+)*", re.ASCII)
TEXT_LENGTH_MAX = 200
_LEVELS: Final = {logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}
WITHHELD = "event_withheld"
_ENCODER: Final = json.JSONEncoder(sort_keys=True)  # made once: every call leaves a line


def configure_logs(stream: TextIO | TextIOBase | None = None, worker: int | None = None) -> None:
    """Send the process's logs to `stream` (standard error unless given).

    If the process is one of several workers, each line says which.
    """
    out = sys.stderr if stream is None else stream
    show: structlog.types.Processor = structlog.processors.JSONRenderer(serializer=_json)
    if out.isatty():
        show = structlog.dev.ConsoleRenderer()
    said_by: list[structlog.types.Processor] = [] if worker is None else [_said_by(worker)]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *said_by,
            keep_allowed,
            show,
        ],
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", out)),
        cache_logger_on_first_use=False,
    )


def write_log(level: int, event: str, **fields: str | float) -> None:
    """Write one line of the log, with the configuration in force at that time.

    A log that cannot be written (the disk is full, the pipe is closed) is no reason to withhold an
    answer that was paid for, nor to send the client the text of the logging error.
    """
    with suppress(Exception, structlog.DropEvent):
        # What a logger of structlog does, without making one: every call of a client leaves a line.
        config, name = structlog.get_config(), _LEVELS[level]
        line: Any = {**fields, "event": event}
        for processor in config["processors"]:
            line = processor(None, name, line)
        getattr(config["logger_factory"](), name)(line)


def keep_allowed(
    _logger: Any, _method: str, fields: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """The event, reduced to listed fields of listed types.

    >>> keep_allowed(None, "info", {"event": "request", "code": "ok", "sql": "SELECT 1"})
    {'event': 'request', 'code': 'ok'}
    """
    kept: dict[str, Any] = {"event": WITHHELD}
    event = fields.get("event")
    if isinstance(event, str) and EVENT_NAME.fullmatch(event):
        kept["event"] = event
    for name, value in fields.items():
        # Exactly these types: a subclass may print whatever it likes.
        if type(value) in ALLOWED_FIELDS.get(name, ()):
            kept[name] = value[:TEXT_LENGTH_MAX] if isinstance(value, str) else value
    return kept


def _json(line: Mapping[str, Any], **_options: Any) -> str:
    """A line whose fields were allowed: texts and numbers, for which there are no options."""
    return _ENCODER.encode(line)


def _said_by(worker: int) -> structlog.types.Processor:
    def add(
        _logger: Any, _method: str, fields: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        return {**fields, "worker": worker}

    return add
