"""Logs: one line for each event, and streams whose lines are written together.

Logs: one line per event, JSON for machines and colours for a terminal, through an allow-list.

A field passes if its name is listed here and its value is of the listed type; anything else that a
caller adds, above all an exception's text, is dropped before anything is written. The listed fields
are public: names in the schema, codes, costs and times, never SQL, never a result.

A text stream whose lines are written together, a twentieth of a second after the first of them.

Every call leaves a line in the log. Written one by one, each costs a system call during which the
thread that answers gives the interpreter away; a busy server writes a batch instead. What is
gathered is written when the process ends, too; a process that is killed loses the lines of its last
moments, and nothing else: what was charged and measured is in the ledger.
"""

import atexit
import json
import logging
import os
import re
import sys
import threading
import time
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


GATHER_SECONDS: Final = 0.05


class GatheredLines(TextIOBase):
    """A stream that gathers what is written to another. Thread-safe.

    A process that was forked writes its own lines, by a thread of its own.

    Parameters
    ----------
    out : TextIO
        Where the lines go.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begin()
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self.write_out)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._gathered: list[str] = []
        self._came = threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, text: str) -> int:
        """Take text in; it is written soon."""
        with self._lock:
            self._gathered.append(text)
            is_first = len(self._gathered) == 1
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._write_all, name="tacit-log", daemon=True
                )
                self._thread.start()
        if is_first:
            self._came.set()
        return len(text)

    def flush(self) -> None:
        """Nothing: a line is asked to be flushed when it is gathered."""

    def isatty(self) -> bool:
        """Whether people read along."""
        return self._out.isatty()

    def write_out(self) -> None:
        """Write what was gathered; a stream that cannot be written withholds no answer."""
        with self._lock:
            text, self._gathered = "".join(self._gathered), []
        if text:
            with suppress(Exception):
                self._out.write(text)
                self._out.flush()

    def _write_all(self) -> None:
        while True:
            self._came.wait()
            self._came.clear()
            time.sleep(GATHER_SECONDS)  # lines that come meanwhile are written with the first
            self.write_out()
