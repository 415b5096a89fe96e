"""Rows kept in a file of their own on disk, encrypted: chunks, what is on its way, and the file."""

from proxy.sources.extract.cells_on_disk import CellsOnDisk
from proxy.sources.extract.chunks import Chunks, Damaged, Spill, write_all

__all__ = ["CellsOnDisk", "Chunks", "Damaged", "Spill", "write_all"]
