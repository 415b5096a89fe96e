"""The program and commands of docs/auditing.md work, on a real ledger and on a changed one."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from accountant.auditor import bodies
from accountant.auditor.signed_head import Head, sign_head
from accountant.auditor.transfer import exported
from accountant.ledger.entries import Entry

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "auditing.md").read_text(encoding="utf-8")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The program on the page."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    path = tmp_path / "check.py"
    path.write_text(code)
    return path


def run(script: Path, lines: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(script), str(lines)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours


def test_the_program_on_the_page_finds_a_ledger_good(
    script: Path, entries: tuple[Entry, ...], tmp_path: Path
) -> None:
    lines = tmp_path / "adult.jsonl"
    lines.write_text("".join(exported(entries)))
    ended = run(script, lines)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout == f"{len(entries)} {entries[-1].digest}\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('\\"units_before\\":0', '\\"units_before\\":1'), "entry 9 was changed"),
        (('"seq":3', '"seq":4'), "entry 3 is missing"),
        (('"n_entries":28', '"n_entries":29'), "the end is another"),
        (('{"head"', '{"heap"'), "the end is another"),
    ],
)
def test_the_program_on_the_page_finds_what_was_changed(
    script: Path, entries: tuple[Entry, ...], tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    text = "".join(exported(entries))
    assert change[0] in text
    lines = tmp_path / "adult.jsonl"
    lines.write_text(text.replace(*change, 1))
    ended = run(script, lines)
    assert ended.returncode == 1
    assert said in ended.stderr


def test_the_program_on_the_page_finds_a_file_that_was_cut_off(
    script: Path, entries: tuple[Entry, ...], tmp_path: Path
) -> None:
    lines = tmp_path / "adult.jsonl"
    lines.write_text("".join(list(exported(entries))[:-1]))
    assert "the file was cut off" in run(script, lines).stderr


@pytest.mark.skipif(
    not (shutil.which("openssl") and shutil.which("jq")), reason="there is no openssl, or no jq"
)
def test_openssl_checks_a_signed_head_as_the_page_says(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    head = Head(25, "ab" * 32, "2026-11-21T20:07:49.123+00:00")
    (tmp_path / "may.json").write_text(sign_head(key, head).to_json())
    (tmp_path / "owner.pub").write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    commands = re.findall(r"^    ((?:jq|openssl) .*)$", PAGE, flags=re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=True)  # noqa: S603 - ours


def test_the_page_names_every_kind_of_entry_and_every_field() -> None:
    kinds = set(re.findall(r"^\| `(\w+)` \| ", PAGE.split("### The kinds")[1], flags=re.MULTILINE))
    assert kinds == {"charge", *bodies._READERS}
