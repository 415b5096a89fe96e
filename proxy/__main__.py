"""``python -m proxy`` is the ``tacit`` command."""

from proxy.cli import main

main()
