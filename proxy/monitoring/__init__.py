"""Structured logs, metrics and health, for operators. Never SQL, a result or an exact count."""

from proxy.monitoring.background import UNEXPECTED, Background
from proxy.monitoring.events import (
    CANCELLED_CODE,
    INTERNAL_CODE,
    NO_METHOD_CODE,
    OK_CODE,
    POSTGRES_METHOD,
    UNWATCHED,
    AnswerKind,
    Stage,
    Watcher,
    leave_no_trace,
    leaves_trace,
)
from proxy.monitoring.logs import write_log
from proxy.monitoring.loopback_http import serving_http
from proxy.monitoring.metrics import counted, edge_of, summed
from proxy.monitoring.service import Monitoring, Readiness

__all__ = [
    "CANCELLED_CODE",
    "INTERNAL_CODE",
    "NO_METHOD_CODE",
    "OK_CODE",
    "POSTGRES_METHOD",
    "UNEXPECTED",
    "UNWATCHED",
    "AnswerKind",
    "Background",
    "Monitoring",
    "Readiness",
    "Stage",
    "Watcher",
    "counted",
    "edge_of",
    "leave_no_trace",
    "leaves_trace",
    "serving_http",
    "summed",
    "write_log",
]
