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
)
from proxy.monitoring.logs import GatheredLines, configure_logs, write_log
from proxy.monitoring.loopback_http import serving_http
from proxy.monitoring.metrics import Metrics, counted, edge_of, summed
from proxy.monitoring.service import Monitoring, Readiness, application, serving_metrics, watching

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
    "GatheredLines",
    "Metrics",
    "Monitoring",
    "Readiness",
    "Stage",
    "Watcher",
    "application",
    "configure_logs",
    "counted",
    "edge_of",
    "serving_http",
    "serving_metrics",
    "summed",
    "watching",
    "write_log",
]
