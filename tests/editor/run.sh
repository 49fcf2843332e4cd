#!/usr/bin/env bash
# Installs what is missing, and runs the flows in a real VS Code.
# usage: run.sh [FLOW ...]   (names of files in flows/, without .test.mjs, or core; all by default)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bash setup.sh
exec .bin24/node run.mjs "$@"
