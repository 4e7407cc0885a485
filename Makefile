# Every target sets up all it needs in .venv and is quick the second time.
PYTHON ?= python3
BIN := .venv/bin
# Tests run in two processes; threads inside them would only get in each other's way.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# torch's CPU build; a plain `torch` would bring gigabytes of CUDA.
TORCH := torch==2.13.0

.PHONY: demo test slow mutate bench bench-self validity calibration reliability lint docs pictures clean \
	dist matrix prove release-check bump
.DELETE_ON_ERROR:

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

.venv/dev: .venv/core
	$(BIN)/python -m pip install -q $(TORCH)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@

demo: .venv/core
	$(BIN)/covaria demo --out covaria-demo

test: .venv/dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

slow: .venv/dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m slow --timeout 7200

# How many small errors, put into a module one at a time, its own tests find.
mutate: .venv/dev
	$(BIN)/python tools/mutate.py --jobs 2

.venv-rivals/done:
	$(PYTHON) -m venv .venv-rivals
	.venv-rivals/bin/pip install -q hidimstat vimpy dowhy pygam lightgbm
	touch $@

validity: .venv/dev .venv-rivals/done
	$(BIN)/python tools/validity.py

calibration: .venv/dev
	$(BIN)/python tools/calibration.py

# Random tables, odd options and damaged files; tools/fuzz.py --show SEED:CASE tells of one.
reliability: .venv/dev
	$(BIN)/python tools/fuzz.py

bench: .venv/dev .venv-rivals/done
	$(BIN)/python benchmarks/run.py

bench-self: .venv/dev
	$(BIN)/python benchmarks/self.py

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/check_layers.py

.venv/docs: .venv/core
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[docs]'
	touch $@

# Warnings are errors; the examples of the gallery are run.
docs: .venv/docs
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python tools/links.py docs/_build/html
	@echo docs/_build/html/index.html

# What a release uploads, checked as the index will; .venv-release holds the tools.
.venv-release/done:
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install -q --upgrade pip
	.venv-release/bin/pip install -q uv build twine check-wheel-contents pip-audit bandit
	touch $@

dist: .venv-release/done
	rm -rf dist
	.venv-release/bin/python -m build -o dist .
	.venv-release/bin/twine check --strict dist/*
	.venv-release/bin/check-wheel-contents dist/*.whl

# The wheel in empty environments: every Python of this machine, oldest and newest packages.
matrix: .venv-release/done
	.venv-release/bin/python tools/matrix.py

# Every promise of docs/reliability.md, tried small (LARGE=1: at the sizes of a release).
prove: .venv/dev
	$(BIN)/python -m pip install -q bandit pip-audit coverage
	$(BIN)/python tools/prove.py $(PARTS) $(if $(LARGE),--large)

# The next version, in every place that says it: make bump TO=1.0.0
bump:
	$(PYTHON) tools/bump.py $(TO)

# All that a release needs and can be seen here, as one table.
release-check: .venv/dev .venv-release/done
	$(BIN)/python tools/release_check.py $(CHECKS)

# The pictures of the README, from the demo; needs chromium.
pictures: .venv/dev
	$(BIN)/python tools/pictures.py

clean:
	rm -rf .venv .venv-rivals .venv-release dist covaria-demo docs/_build docs/gallery
