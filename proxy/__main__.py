"""``python -m proxy`` is the ``tacit`` command."""

from proxy.cli.app import main

main()
