#!/usr/bin/env bash
# Installs the packages that FOLDER/package-lock.json names. Nothing is done when the lock is the one that was installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../$1"

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

command -v node >/dev/null && command -v npm >/dev/null || fail "Node 20 or later and npm are needed, and they are not on PATH. On Debian and Ubuntu: sudo apt-get install nodejs npm"
node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' || fail "Node 20 or later is needed; this one is $(node --version)"

key=$(cat package-lock.json package.json | sha256sum | cut -d' ' -f1)
[ "$(cat node_modules/.shapelens-installed 2>/dev/null || true)" = "$key" ] && exit 0
printf 'setup: installing the Node packages of %s\n' "$1"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null || fail "npm ci failed in $1"
printf '%s\n' "$key" >node_modules/.shapelens-installed
