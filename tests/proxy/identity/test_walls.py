"""Who may say who calls, and that nobody is let in by default."""

import ast
import inspect
from functools import cache
from pathlib import Path

from proxy.identity.authenticate import LedgerAuthenticator
from proxy.wire.server import start_server

PROXY = Path(__file__).resolve().parents[3] / "proxy"


@cache
def modules() -> dict[str, ast.Module]:
    paths = [path for path in sorted(PROXY.rglob("*.py")) if "_pb2" not in path.name]
    return {str(path.relative_to(PROXY)): ast.parse(path.read_text()) for path in paths}


def naming(name: str) -> set[str]:
    """The modules that import, or speak of, a name; not the faces, which pass it on."""
    found = set()
    for module, tree in modules().items():
        if module.endswith("__init__.py"):
            continue
        for node in ast.walk(tree):
            names = {alias.name for alias in getattr(node, "names", ()) if hasattr(alias, "name")}
            if name in names or (isinstance(node, ast.Name) and node.id == name):
                found.add(module)
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == name:
                found.add(module)
    return found


def test_only_the_door_says_who_calls() -> None:
    assert naming("note_caller") == {"identity/interceptor.py"}


def test_only_one_module_reads_a_header_and_one_a_certificate() -> None:
    assert naming("presented_by") == {"identity/interceptor.py"}
    assert naming("presented_token") == {"wire/flight/service.py"}
    own = {"wire/tls.py"}  # reads the server's
    enciphers = {
        "sources/extract/chunks.py",
        "sources/extract_file.py",
        "sources/rows_digest.py",
    }  # nobody's certificate
    assert naming("cryptography") - own - enciphers == {"identity/presented.py"}
    assert naming("names_in") == {"identity/presented.py", "wire/postgres/login.py"}


def test_only_one_module_opens_what_is_sealed() -> None:
    assert naming("opened_verifier") == {"identity/authenticate.py"}


def test_a_server_is_told_who_may_come_in() -> None:
    authenticator = inspect.signature(start_server).parameters["authenticator"]
    assert authenticator.default is inspect.Parameter.empty
    anonymous = inspect.signature(LedgerAuthenticator).parameters["allow_anonymous"]
    assert anonymous.default is False
