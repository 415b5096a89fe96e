"""The gRPC service `tacit.v1`: requests and answers as its messages."""

from proxy.wire.tacit.service import TacitService

__all__ = ["TacitService"]
