#!/usr/bin/env bash
# Runs the flows in a real VS Code, one file after the other: two of them at once would fight for the machine.
# usage: run.sh [FLOW ...]   (names of files in flows/, without .test.mjs; all by default)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bash setup.sh
files=()
for name in "$@"; do files+=("flows/$name.test.mjs"); done
[ $# -gt 0 ] || files=(flows/*.test.mjs)
exec .bin24/node --test --test-concurrency=1 --test-reporter=spec "${files[@]}"
