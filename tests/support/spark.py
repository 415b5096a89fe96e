"""A Spark Connect server of Apache Spark itself, in Java, as the package `pyspark` has it.

TACIT_SPARK=FOLDER names an environment that it is installed in, or is to be (400 MB, a minute; it
needs Java): `make test-spark`. Without it the tests of the fixture `java_spark` are skipped.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tests.support.postgres import missing, wait_until
from tests.support.sail import SailServer, free_port, listens

FOLDER = os.environ.get("TACIT_SPARK")
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
MEMORY = "1g"
SECONDS = 300  # that it may take to start


@pytest.fixture(scope="session")
def java_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SailServer]:
    """A server on two threads that runs for all tests of a session."""
    if FOLDER is None:
        pytest.skip("TACIT_SPARK names no folder")
    if shutil.which("java") is None:
        missing("there is no Java on this machine")
    home = installed(Path(FOLDER).resolve())
    port, work = free_port(), tmp_path_factory.mktemp("spark")
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(work),
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [
        str(home / "bin" / "spark-submit"),
        *("--master", "local[2]", "--driver-memory", MEMORY, *options),
        *("--class", SERVER, "spark-internal"),
    ]
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (work / "log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - what was installed
            command, stdout=log, stderr=log, cwd=work, env=environment
        )
    try:
        wait_until(lambda: listens(port), SECONDS)
        yield SailServer(port, process)
    finally:
        process.kill()
        process.wait()


def installed(folder: Path) -> Path:
    """Where Spark is, of the release of the client; installed if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        release = f"pyspark=={metadata.version('pyspark-client')}"
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)  # noqa: S603
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", release], check=True)  # noqa: S603
    (home,) = folder.glob("lib/python*/site-packages/pyspark")
    return home
