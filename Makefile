# Every target sets up what it needs in .venv and does nothing that is already done.
# Needed on the machine: Python 3.11 or newer (with venv), gcc, make.

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python,\
	$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
VENV := .venv
PY := $(VENV)/bin/python
# The frameworks that the benchmark compares with; their versions may not agree with ours.
PEERS := .venv-bench
# Most of a test's time goes into compiling, on one core. 0: in one process, for a debugger.
TEST_PROCESSES ?= 2
NEWEST ?= torch
# The constraints travel as a variable so that they also hold for what pip builds.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PACKAGES := core[compile] plugins/target_cpu plugins/target_nvgpu plugins/target_amdgpu \
	plugins/frontend_torch plugins/frontend_jax
# Depends on tensorflow; here requirements/test.txt brings tensorflow-cpu, the same modules for less.
WITHOUT_DEPENDENCIES := plugins/frontend_tf
PYPROJECTS := $(addsuffix /pyproject.toml,$(PACKAGES:[compile]=) $(WITHOUT_DEPENDENCIES))

.PHONY: help demo test test-extended test-all test-exhaustive lint bench cliffs bench-gpu docs tables opinfo opinfo-gpu jax-sweep tf-sweep
.PHONY: foreign random-programs random-launches random-sorts type-matrices
.PHONY: gpu-conformance gpu-resources gpu-static gpu-matrix models test-versions test-newest acceptance-users format clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    blur a photograph; writes before/after pictures and prints a table"
	@echo "make test    the tests, but for those marked slow or extended (up to 10 minutes on two cores)"
	@echo "make test-extended  programs on simulated GPUs, random ones, those of the documentation,"
	@echo "             benchmarks, bisection and sweeps (up to 6 minutes); all else is in make test"
	@echo "make test-all  all tests, of products of parameters each two values together (up to 40 minutes)"
	@echo "make test-exhaustive  all other combinations of three and more parameters"
	@echo "make test-newest  a part of the frontends' tests with the newest releases of their frameworks,"
	@echo "             where these are not those of development (up to 10 minutes)"
	@echo "make lint    ruff, formatting, types"
	@echo "make bench   times against eight peers, installed into .venv-bench (15 minutes or more);"
	@echo "             BENCH_ARGS='--group contractions --rounds 3' for products and convolutions,"
	@echo "             BENCH_ARGS='--group attention --rounds 3' for attention,"
	@echo "             BENCH_ARGS='--group pipelines --rounds 3' for image pipelines, with Halide,"
	@echo "             BENCH_ARGS='--group calls --rounds 9' for what the host spends on a call,"
	@echo "             BENCH_ARGS='--group keras --rounds 3' for networks of Keras, with training steps"
	@echo "make cliffs  some 700 single operations beside PyTorch, JAX and TensorFlow (25 minutes);"
	@echo "             CLIFFS_ARGS='--only topk' for those with this in their names"
	@echo "make bench-gpu  build, check and time on the GPU of this machine, into out/gpu"
	@echo "make docs    the documentation, into site/"
	@echo "make tables  the tables in docs/ and README.md that the code says"
	@echo "make opinfo  PyTorch's database of operators, every float32 entry (up to 30 minutes);"
	@echo "             OPINFO_ARGS='--dtype float16 --samples 4' for another type,"
	@echo "             OPINFO_ARGS='--gradients --samples 4' for gradients (an hour or more)"
	@echo "make opinfo-gpu  150 of these entries on a simulated GPU (10 minutes or more)"
	@echo "make gpu-conformance  the end-to-end tests on simulated GPUs (up to an hour)"
	@echo "make gpu-resources  what their kernels take of a multiprocessor (20 minutes or more)"
	@echo "make gpu-static  how fast kernels of matrix units can be, from their machine code (10 minutes);"
	@echo "             GPU_STATIC_ARGS='--arch sm_80 --groups resnet-50' for other chips and cases"
	@echo "make gpu-matrix  all that is checked of matrix units without a GPU (up to 40 minutes)"
	@echo "make jax-sweep  JAX's primitives, 3000 samples (up to 30 minutes)"
	@echo "make tf-sweep  TensorFlow's operations, against TensorFlow and its XLA (up to an hour)"
	@echo "make foreign  a thousand programs as users write them, in the three frameworks (15 minutes)"
	@echo "make random-programs  3000 random PyTorch programs over all dtypes, every third with gradients"
	@echo "             (an hour); RANDOM_ARGS='--programs 100 --shorten' for fewer"
	@echo "make random-launches  10,000 calls of a GPU program by several threads, without a GPU (10 minutes)"
	@echo "make random-sorts  sorts and selections of PyTorch and JAX, also on simulated GPUs (10 minutes)"
	@echo "make type-matrices  operations of the three frameworks x pairs of types (half an hour)"
	@echo "make models  about a hundred architectures, compiled whole (up to 15 minutes)"
	@echo "make test-versions  the frontends' tests with the lowest and newest frameworks (an hour);"
	@echo "             VERSIONS='jax --end low' for one of them"
	@echo "make acceptance-users  what users were promised, a row each (up to 30 minutes)"
	@echo "make format  let ruff rewrite the code"

demo: $(VENV)/.done-demo
	$(PY) examples/blur_demo.py

# Programs on simulated GPUs, random programs, benchmarks, bisection, examples of the docs; with
# them run the tests of other folders that are marked extended.
EXTENDED := tests/extended

# Of products of parameters each pair of values, see docs/contributing.md.
SELECTION := -m "not exhaustive"

# The prerequisite has it, too.
test: SELECTION := --without=$(EXTENDED) -m "not slow and not extended"
test: test-all

test-extended: SELECTION := --extended=$(EXTENDED) -m "extended and not slow"
test-extended: test-all

test-exhaustive: SELECTION := -m exhaustive
test-exhaustive: test-all

test-all: $(VENV)/.done-test $(VENV)/.done-demo $(VENV)/.done-docs $(VENV)/.done-bench
	$(PY) tests/run.py --processes=$(TEST_PROCESSES) $(SELECTION) $(PYTEST_ARGS)

lint: $(VENV)/.done-lint
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(VENV)/.done-lint
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(VENV)/.done-bench $(PEERS)/.done-peers
	$(PY) -m bench $(BENCH_ARGS)

cliffs: $(VENV)/.done-bench
	$(PY) -m bench --group cliffs --rounds 3 $(CLIFFS_ARGS)

bench-gpu: $(VENV)/.done-bench
	$(PY) -m bench.gpu all $(BENCH_ARGS)

docs: $(VENV)/.done-docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet
	@echo "open site/index.html"

tables: $(VENV)/.done-packages
	$(PY) docs/_generate.py

opinfo: $(VENV)/.done-test
	$(PY) tests/opinfo/run.py $(OPINFO_ARGS)

opinfo-gpu: $(VENV)/.done-test
	$(PY) tests/opinfo/run.py --target nvgpu --arch sm_90a --simulate --sample 150 --samples 5

GPU_PROGRAMS := build/gpu-programs

gpu-conformance: $(VENV)/.done-test
	$(PY) tests/gpu_conformance/run.py --programs $(GPU_PROGRAMS)

$(GPU_PROGRAMS):
	$(PY) tests/gpu_conformance/run.py --arch sm_90a --programs $@

gpu-resources: $(VENV)/.done-test $(GPU_PROGRAMS)
	$(PY) tests/gpu_conformance/assemble.py $(GPU_PROGRAMS)

gpu-static: $(VENV)/.done-test $(VENV)/.done-bench
	$(PY) -m bench.gpu_static $(GPU_STATIC_ARGS)

gpu-matrix: $(VENV)/.done-test $(VENV)/.done-bench
	$(PY) tests/gpu_matrix/run.py

jax-sweep: $(VENV)/.done-test
	$(PY) tests/jax_sweep/run.py

tf-sweep: $(VENV)/.done-test
	$(PY) tests/tf_sweep/run.py

foreign: $(VENV)/.done-test
	$(PY) tests/slow/foreign/run.py $(FOREIGN_ARGS)

RANDOM_ARGS ?= --programs 3000 --json build/random-programs.json --resume

random-programs: $(VENV)/.done-test
	@mkdir -p build
	$(PY) tests/slow/random_programs.py $(RANDOM_ARGS)

random-launches: $(VENV)/.done-test
	$(PY) tests/slow/random_launches.py $(RANDOM_LAUNCHES_ARGS)

random-sorts: $(VENV)/.done-test
	$(PY) tests/slow/random_sorts.py
	$(PY) tests/slow/random_sorts_jax.py
	$(PY) tests/slow/random_sorts.py --arch sm_90a --count 60
	$(PY) tests/slow/random_sorts.py --arch gfx1100 --count 60

type-matrices: $(VENV)/.done-test
	$(PY) tests/slow/type_matrix.py
	$(PY) tests/slow/type_matrix_jax.py
	$(PY) tests/slow/type_matrix_tf.py

# Development uses releases that are in the ranges; pip gives users the newest.
test-newest: $(VENV)/.done-test
	$(PY) tests/versions/run.py $(NEWEST) --end high --brief --processes=$(TEST_PROCESSES)

test-versions: $(VENV)/.done-test
	$(PY) tests/versions/run.py $(VERSIONS)

models: $(VENV)/.done-test
	$(PY) tests/models/run.py $(MODELS)

acceptance-users: $(VENV)/.done-test $(VENV)/.done-demo $(VENV)/.done-docs $(VENV)/.done-bench
	$(PY) tests/users/acceptance.py

clean:
	rm -rf $(VENV) $(PEERS) site build dist

# --- set-up -----------------------------------------------------------------------------------

$(PY):
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found; make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What is uninstalled is what the core was called once, now the name of another project only.
$(VENV)/.done-packages: requirements/build.txt constraints.txt $(PYPROJECTS) | $(PY)
	$(PY) -m pip install --quiet --requirement requirements/build.txt
	$(PY) -m pip uninstall --quiet --quiet --yes polyblocks
	$(PY) -m pip install --quiet --no-build-isolation $(addprefix --editable ./,$(PACKAGES))
	$(PY) -m pip install --quiet --no-build-isolation --no-deps \
		$(addprefix --editable ./,$(WITHOUT_DEPENDENCIES))
	@touch $@

$(VENV)/.done-%: requirements/%.txt $(VENV)/.done-packages
	$(PY) -m pip install --quiet --requirement $<
	@touch $@

$(PEERS)/.done-peers: requirements/peers.txt constraints.txt | $(PY)
	$(PY) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --requirement $<
	$(PEERS)/bin/python -m pip check
	@touch $@
