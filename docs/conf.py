"""The documentation site: `make docs` builds it into build/docs.

Its source folder is the whole repository, so that the proofs beside the code, the packages' READMEs
and ARCHITECTURE.md are pages too, and every link between Markdown files is checked where it stands.
Five parts of the reference are written at each build, into docs/generated: the command line's by
typer, the protocol's by `proto_reference`, SQL by task and the refusals by modules of `tests.sql`,
and the Python packages' by `python_reference` and autodoc. Pages load nothing from elsewhere: no
font, script or picture.
"""

import subprocess
import sys
from importlib.metadata import version as installed_version
from itertools import groupby
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
GENERATED = DOCS / "generated"
PACKAGES = (
    "cube",
    "accountant",
    "inference",
    "synthesis",
    "local_dp",
    "streams",
    "planner",
    "tacit_client",
)
sys.path.insert(0, str(ROOT))

from docs.proto_reference import reference_page  # noqa: E402 - found by the line above
from docs.python_reference import write_python_reference  # noqa: E402 - the same

project = "Tacit"
author = "the authors of Tacit"
release = version = installed_version("tacit-dp")
language = "en"
smartquotes = False  # or --option would become a dash and a word

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/howto/*.md",
    "docs/generated/**",
    "*/README.md",
    "*/*/README.md",
    "accountant/proofs/*.md",
    "local_dp/proofs/*.md",
    "streams/proofs/*.md",
    "cube/exponential.md",
    "inference/*/*.md",
]
exclude_patterns = ["build", "dist", "tests", ".*"]
# A page of refusals shows SQL that is wrong on purpose, which no highlighter can read.
suppress_warnings = ["misc.highlighting_failure"]
myst_heading_anchors = 4

autodoc_inherit_docstrings = False
autodoc_mock_imports = ["superset"]  # is installed in an environment of its own
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
toc_object_entries = False  # the navigation of every page would have 1,500 names more

html_theme = "furo"
html_title = f"Tacit {release}"
html_extra_path = ["start"]  # index.html, which leads to docs/index.html
html_copy_source = False
html_show_sphinx = False


def generate(_: Sphinx) -> None:
    """Write the pages that are made from code."""
    GENERATED.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "typer", "proxy.cli.app", "utils", "docs"]
    options = [
        "--name",
        "tacit",
        "--title",
        "The command line",
        "--output",
        "docs/generated/cli.md",
    ]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)  # noqa: S603 - our own command
    text = (ROOT / "proxy" / "protocol" / "tacit.proto").read_text(encoding="utf-8")
    (GENERATED / "protocol.md").write_text(reference_page(text), encoding="utf-8")
    for name, module in (("refusals", "refusal_list"), ("sql_by_task", "by_task")):
        command = [sys.executable, "-m", f"tests.sql.{module}"]
        page = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)  # noqa: S603 - our own modules
        (GENERATED / f"{name}.md").write_bytes(page.stdout)
    write_python_reference(ROOT, PACKAGES, GENERATED / "python")


def plain_text(_: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001 - the signature is Sphinx's
    """Read a module's docstring as plain text: only those of classes and functions have markup."""
    if what != "module":
        return
    paragraphs = [
        list(lines) for blank, lines in groupby(lines, lambda line: not line) if not blank
    ]
    lines.clear()
    for paragraph in paragraphs:
        if any(line.startswith(" ") for line in paragraph):  # a drawing or a table
            lines += ["::", "", *(f"    {line}" for line in paragraph), ""]
        else:
            lines += [line.replace("|", r"\|").replace("]_", r"]\_") for line in paragraph]
            lines += [""]


def setup(app: Sphinx) -> None:
    """Write generated pages before Sphinx looks for them, and read module docstrings as text."""
    app.connect("builder-inited", generate)
    app.connect("autodoc-process-docstring", plain_text, priority=400)  # numpydoc comes at 500
