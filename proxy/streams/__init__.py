"""The streams of a server: who may begin, observe and drop one, their files, and their answers.

The law of a stream, its state and its interval belong in the package `streams`; what a ledger notes
of them in `accountant/ledger`. Here is no SQL text.
"""

from proxy.streams.feature import Streams
from proxy.streams.service import StreamService

__all__ = ["StreamService", "Streams"]
