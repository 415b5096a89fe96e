"""Superset's REST interface, as far as the example uses it."""

import http.cookiejar
import json
import time
import urllib.error
import urllib.request
from typing import Any, Final

READY_SECONDS: Final = 120.0
SECONDS: Final = 120.0


class Superset:
    """A session of one user.

    Parameters
    ----------
    address : str
        Such as ``http://127.0.0.1:8088``.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies)
        self._headers = {"Content-Type": "application/json", "Referer": address}

    def wait(self) -> None:
        """Wait until Superset answers."""
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                self._opener.open(f"{self.address}/health", timeout=SECONDS)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)
            else:
                return

    def log_in(self, user: str, password: str) -> None:
        """Log in."""
        told = {"username": user, "password": password, "provider": "db", "refresh": True}
        token = self.post("security/login", told)["access_token"]
        self._headers["Authorization"] = f"Bearer {token}"
        self._headers["X-CSRFToken"] = self.get("security/csrf_token/")["result"]

    def get(self, path: str) -> Any:
        """GET a path, and return the reply."""
        return self._said("GET", path, None)

    def post(self, path: str, body: Any) -> Any:
        """POST a body to a path, and return the reply."""
        return self._said("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        """PUT a body to a path, and return the reply."""
        return self._said("PUT", path, body)

    def _said(self, method: str, path: str, body: Any) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the example's own server
            f"{self.address}/api/v1/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers=self._headers,
            method=method,
        )
        try:
            with self._opener.open(request, timeout=SECONDS) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")[:2000]
            raise RuntimeError(f"{method} {path}: {error.code} {said}") from None
