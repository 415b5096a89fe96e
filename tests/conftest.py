"""What every test run has in common."""

import os
import sys

import numpy as np  # noqa: F401 - loads the libraries whose threads are limited below
import scipy.linalg  # noqa: F401 - and these
from hypothesis import settings
from threadpoolctl import threadpool_limits

from tests.support.costs import (  # noqa: F401 - hooks of every test
    pytest_addoption,
    pytest_configure,
    pytest_runtest_call,
    pytest_runtest_makereport,
    pytest_runtest_setup,
)
from tests.support.examples import N_USUAL, examples
from tests.support.postgres import postgres_server  # noqa: F401 - a fixture for every test
from tests.support.sail import sail  # noqa: F401 - the same
from tests.support.spark import java_spark  # noqa: F401 - the same

# Tests start many processes. Without bytecode each of them would compile the product anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# As in the served process; with one pool of threads a worker, they would fight over the cores.
threadpool_limits(limits=1)

# A shared machine stalls now and then; how long a case takes is the business of benchmarks.
settings.register_profile("tacit", deadline=None, max_examples=examples(N_USUAL))
settings.load_profile("tacit")
