"""A server that is watched, on free loopback ports, and how its metrics are read."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from proxy.api.requests import QueryEngine
from proxy.monitoring.metrics import Metrics
from proxy.monitoring.service import Monitoring, Readiness, application, serving_metrics
from proxy.streams.feature import Streams
from proxy.streams.service import StreamService
from proxy.wire.server import SERVICES, start_server
from tests.support.serving import NO_STREAMS, EverybodyLocal

TABLES = ("people", "ad_hoc")
WAIT_SECONDS = 30.0
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series(text: str) -> Series:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def told(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return series(told(metrics))[name, frozenset(labels.items())]


@contextmanager
def watched(
    engine: QueryEngine, streams: StreamService = NO_STREAMS
) -> Iterator[tuple[Metrics, grpc.Channel, str]]:
    metrics = Metrics(TABLES)
    monitoring = Monitoring(metrics, Readiness(SERVICES, is_ready=True))
    server = start_server(
        engine,
        "127.0.0.1:0",
        authenticator=EverybodyLocal(),
        monitoring=monitoring,
        features=[Streams(streams)],
    )
    pages = application(metrics.registry, lambda: monitoring.readiness.is_ready)
    try:
        with (
            grpc.insecure_channel(server.address) as channel,
            serving_metrics("127.0.0.1:0", pages) as http,
        ):
            yield metrics, channel, f"http://{http}"
    finally:
        server.stop()


def page(address: str, path: str) -> str:
    with urllib.request.urlopen(address + path, timeout=WAIT_SECONDS) as reply:  # noqa: S310 - http
        body: bytes = reply.read()
    return body.decode()
