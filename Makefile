# Everything works from a fresh clone with Python 3.10 or later, Node 20 or later, make and git, and at once the second time.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-changed lint docs vsix vscode screenshots bench matrix lock clean

PY := .venv/bin/python
SHAPELENS := .venv/bin/shapelens

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## .venv with ShapeLens (editable) and all of its tools
	@tools/setup.sh

demo: setup vsix  ## set everything up, then show the recipe network with its shapes, and what ShapeLens says about a wrong number
	@printf '\n1. The network of the PyTorch recipe "Reasoning about Shapes", with the shape of every tensor in the margin:\n\n   $$ shapelens show fixtures/recipe/recipe.py\n\n'
	@$(SHAPELENS) show fixtures/recipe/recipe.py
	@printf '\n2. The same network with a wrong number in fc1:\n\n   $$ shapelens show fixtures/recipe/wrong_in_features.py\n\n'
	@$(SHAPELENS) show fixtures/recipe/wrong_in_features.py || [ $$? -eq 1 ]  # 1: it found what is wrong
	@printf '\n3. The extension for VS Code, with the server inside: %s\n   `make vscode` opens the file in a real VS Code in the browser; `code --install-extension` puts it into yours.\n\n' "$$(ls vscode-extension/*.vsix)"

test: setup  ## before a commit: lint, unit, worker, fixtures, the core of language server, command line and VS Code; ends with the counts
	@$(PY) tools/run_tests.py

test-all: setup  ## all tests, as CI runs them: language server, attacks, packages of users, all flows in a real VS Code, Neovim
	@$(PY) tools/run_tests.py --all

test-changed: setup  ## the tests that what differs from SINCE (HEAD unless given) has to do with
	@$(PY) tools/run_tests.py --changed $(SINCE)

lint: setup  ## ruff and mypy --strict
	@.venv/bin/ruff check .
	@.venv/bin/mypy

docs: setup  ## the site of the documentation, into site/; a dead link is a failure
	@$(PY) tools/docs_site.py

.PHONY: extension-setup editor-setup
extension-setup:
	@tools/node_packages.sh vscode-extension

editor-setup:
	@bash tests/editor/setup.sh

vsix: extension-setup  ## the VS Code extension with the server inside, as one .vsix
	@npm --prefix vscode-extension run --silent package

vscode: setup vsix editor-setup  ## open the recipe network in a real VS Code in the browser, with the extension installed
	@npm --prefix tests/editor run --silent open

screenshots: setup vsix editor-setup  ## take the README's screenshots again
	@npm --prefix tests/editor run --silent screenshots

bench: setup  ## milliseconds from an edit to what ShapeLens says about it, bursts of edits, memory
	@$(PY) benchmarks/session.py

matrix: setup  ## the tests with other versions of Python and torch, PARTS="worker-3.9-2.1 …" for some of them; hours, and GBs of downloads
	@$(PY) tests/matrix.py $(PARTS)
	@$(PY) tests/test_readme.py

lock: setup  ## write requirements.lock from pyproject.toml
	@{ head -n 2 requirements.lock; \
	   env -u UV_FIND_LINKS .venv/bin/uv pip compile --universal --quiet --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	     --python-version 3.10 --group dev --extra torch pyproject.toml | grep -Ev '^(nvidia-|cuda-|triton)'; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock

clean:  ## remove what the other commands made
	rm -rf .venv .user-environment .matrix test-output build dist vscode-extension/{node_modules,out,dist,bundled,.setup} vscode-extension/*.vsix tests/editor/{node_modules,.setup,.bin24,.older} \
	  .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find server tests fixtures -name __pycache__ -type d -prune -exec rm -rf {} +
