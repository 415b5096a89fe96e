# Everything a fresh machine needs: Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
PACKAGES := cube accountant inference synthesis local_dp streams planner proxy tacit_client

.PHONY: demo test doctest quick mutations test-slow test-spark test-superset check docs format protocol release clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/python -m examples.adult.demo

test: doctest $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The examples in docstrings, in one process: their modules are loaded once, and not by each worker.
doctest: $(READY)
	$(BIN)/python -m pytest --doctest-modules $(PACKAGES)

# The tests of what differs from main, nearest first, in a minute and a half.
quick: $(READY)
	$(BIN)/python -m tests.quick

# Faults that are put into a copy of the last commit, and which test catches each.
mutations: $(READY)
	$(BIN)/python -m tests.mutations

# The long statistical tests, and every example of every property, part by part; `make test-slow PARTS=core`.
test-slow: $(READY)
	$(BIN)/python -m tests.slow $(PARTS)

# Every level through Apache Spark itself, which needs Java; installs pyspark into TACIT_SPARK at first.
test-spark: export TACIT_SPARK ?= build/spark
test-spark: $(READY)
	$(BIN)/python -m pytest -m spark tests/proxy/sources/conformance

# Superset and headless Chromium, over both wires; installs Superset into TACIT_SUPERSET at first.
test-superset: export TACIT_SUPERSET ?= build/superset
test-superset: $(READY)
	$(BIN)/python -m pytest -m superset tests/end_to_end/test_superset.py

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The site, in build/docs. A warning is an error: a link or an anchor that leads nowhere is one.
docs: $(READY)
	$(BIN)/python -m sphinx -b html -c docs -d build/doctrees -j 2 -W --keep-going -q . build/docs

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Regenerates proxy/protocol/*_pb2*; only needed after editing a .proto file.
# In an environment of its own: the generator wants an older protobuf than the server runs on.
protocol:
	$(PYTHON) -m venv $(VENV)-protocol
	$(VENV)-protocol/bin/python -m pip install --quiet 'grpcio-tools==1.76.0'
	$(VENV)-protocol/bin/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. \
	  --grpc_python_out=. proxy/protocol/tacit.proto proxy/protocol/flight.proto \
	  proxy/protocol/flight_sql.proto

# The wheel and the source, in dist; the wheel tried in an empty environment outside of the checkout.
release: $(READY)
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m tests.release dist/*.whl

clean:
	rm -rf $(VENV) $(VENV)-protocol build docs/generated dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
