#!/usr/bin/env bash
# Makes .venv with everything that requirements.lock names and ShapeLens itself, editable. Nothing is done when the stamp is newer than the lock.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

stamp=.venv/.shapelens-installed
key=$(cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1)
[ "$(cat "$stamp" 2>/dev/null || true)" = "$key" ] && exit 0

find_python() {
  local name
  for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10 python3.14 python; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  return 1
}

if ! [ -x .venv/bin/python ] || ! .venv/bin/python -c '' 2>/dev/null; then
  python=$(find_python) || fail "ShapeLens needs Python 3.10 to 3.14, and none is on PATH. Install one, or name it: make setup PYTHON=/path/to/python3"
  "$python" -c 'import venv, ensurepip' 2>/dev/null \
    || fail "$python cannot make virtual environments. On Debian and Ubuntu: sudo apt-get install python3-venv"
  printf 'setup: making .venv with %s (%s)\n' "$("$python" -V)" "$python"
  "$python" -m venv .venv
fi

printf 'setup: installing the packages of requirements.lock into .venv (a minute or two)\n'
mkdir -p test-output
log=test-output/setup.log
if ! .venv/bin/python -m pip install --disable-pip-version-check --no-input -r requirements.lock >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  fail "pip could not install the packages (all it said is in $log)"
fi
# hatchling is one of them, so building the editable install asks no registry for anything.
if ! .venv/bin/python -m pip install --disable-pip-version-check --no-input --no-deps --no-build-isolation --editable . >>"$log" 2>&1; then
  tail -n 20 "$log" >&2
  fail "ShapeLens itself could not be installed (all pip said is in $log)"
fi
.venv/bin/shapelens --version
printf '%s\n' "$key" >"$stamp"
