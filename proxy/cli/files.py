"""Tables and drawings as files, written to the path that `-o` names."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from cube.refusals import ConfigurationInvalid
from proxy.api.clean_arrow import clean_table

_WRITERS: Final[dict[str, Callable[[pa.Table, Path], object]]] = {
    ".parquet": pq.write_table,
    ".csv": pa_csv.write_csv,
}


def table_writer(output: Path) -> Callable[[pa.Table], None]:
    """The function that writes a file; chosen before anything is queried and paid for.

    Raises
    ------
    ConfigurationInvalid
        If the format is unknown or the directory does not exist; when called, if writing fails.
    """
    write_table = _WRITERS.get(output.suffix.lower())
    if write_table is None:
        raise ConfigurationInvalid(
            f"The name {output} does not end in .parquet or .csv.", hint="Choose one of them."
        )
    check_folder(output)

    def write(data: pa.Table) -> None:
        try:
            write_table(clean_table(data), output)
        except OSError as error:
            raise not_written(output, error) from None

    return write


def write_bytes(output: Path, content: bytes) -> None:
    """Write a file, or raise ConfigurationInvalid with the reason why it cannot be."""
    try:
        output.write_bytes(content)
    except OSError as error:
        raise not_written(output, error) from None


def check_folder(output: Path) -> None:
    """Raise ConfigurationInvalid if there is no directory to write a file to."""
    if not output.parent.is_dir():
        raise ConfigurationInvalid(
            f"There is no directory {output.parent}.", hint="Create it first."
        )


def not_written(output: Path, error: OSError) -> ConfigurationInvalid:
    """The error for a file that could not be written."""
    reason = error.strerror or type(error).__name__
    return ConfigurationInvalid(f"{output} cannot be written: {reason}.")
