"""The server signs how far its ledger has come, where its owner gave it a key for that.

Each time the ledger has grown, a signed head replaces the one before in a file. Whoever copies that
file elsewhere now and then can show later that no tail is missing. A key that lies on the server
protects against accidents and against who has the ledger and not the key; an owner who wants to
prove more keeps the key and runs `tacit audit sign` himself.
"""

from pathlib import Path

from accountant.auditor.signed_head import Head, read_private_key, sign_head
from accountant.ledger import utc_now


class HeadSigner:
    """Signs the heads of one ledger.

    Parameters
    ----------
    key : Path
        The private key, as `tacit audit keygen` made it.
    output : Path
        The file of the latest signed head.

    Raises
    ------
    CannotStart
        If the key cannot be read, or others may read it.
    """

    def __init__(self, key: Path, output: Path) -> None:
        self._key = read_private_key(key)
        self._output = output
        self._signed: tuple[int, str] | None = None

    def sign(self, position: tuple[int, str]) -> None:
        """Sign how many entries there are and the last digest, unless that was signed already."""
        if position == self._signed:
            return
        signed = sign_head(self._key, Head(*position, utc_now()))
        draft = self._output.with_name(f"{self._output.name}.new")
        draft.write_text(signed.to_json(), encoding="ascii")
        draft.replace(self._output)
        self._signed = position
