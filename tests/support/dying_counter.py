"""Processes that count answers of numbered respondents in a file, and come to a bad end."""

import os
import resource
import threading
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from cube.refusals import StoreUnavailable
from proxy.collections.store import CountStore, Outcome

COLLECTION = "survey"
N_PLACES = 150  # in three chunks
N_THREADS = 8
N_MAX = 10**6


def token(number: int) -> bytes:
    return sha256(str(number).encode()).digest()


def places(number: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Where the answer of a respondent counts: in one combination of three."""
    return ((number % 3, (number % N_PLACES, (7 * number + 1) % N_PLACES)),)


def sent(store: CountStore, number: int) -> Outcome:
    return store.count(COLLECTION, token(number), places(number), n_respondents_max=N_MAX)


def live(path: str, acknowledged: str, first: int) -> None:
    """Count the answers of respondents from a number on, and note who got an acknowledgement."""
    noted = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with closing(CountStore(Path(path))) as store:

        def respond(thread: int) -> None:
            for number in range(first + thread, N_MAX, N_THREADS):
                while True:
                    try:
                        sent(store, number)
                        break
                    except StoreUnavailable:  # another process has the file: as a client would
                        continue
                os.write(noted, f"{number}\n".encode())

        threads = [threading.Thread(target=respond, args=(one,)) for one in range(N_THREADS)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()


def live_in(path: str, acknowledged: str, n_bytes_max: int) -> None:
    """Count answers until a file may not grow; exits 0 if that, and all after it, is refused."""
    noted = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with closing(CountStore(Path(path))) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes_max, n_bytes_max))
        refused: list[str] = []

        def respond(thread: int) -> None:
            for number in range(thread, N_MAX, N_THREADS):
                try:
                    sent(store, number)
                except StoreUnavailable as error:
                    refused.append(error.explain())
                    return
                os.write(noted, f"{number}\n".encode())

        threads = [threading.Thread(target=respond, args=(one,)) for one in range(N_THREADS)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    is_clear = all("Nothing is lost: send the same answer" in one for one in refused)
    raise SystemExit(0 if len(refused) == N_THREADS and is_clear else 1)


def close_in(path: str, n_bytes_max: int) -> None:
    """Close a collection where no file may be longer; exits 0 if it is closed all the same."""
    with closing(CountStore(Path(path))) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes_max, n_bytes_max))
        store.close_collection(COLLECTION)
        store.forget_order()
        late, early = sent(store, N_MAX), sent(store, 0)
    raise SystemExit(0 if (late, early) == (Outcome.CLOSED, Outcome.COUNTED_BEFORE) else 1)
