#!/usr/bin/env bash
# Makes .user-environment: an interpreter with the packages that programs around models import, for the tests that need them. It sees the
# packages of .venv behind its own, so torch is there once. Nothing is done when the stamp says that all of it is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { printf 'user environment: %s\n' "$*" >&2; exit 1; }

folder=.user-environment
stamp=$folder/.installed
key=$(cat requirements.lock tools/user_environment.* tools/declare_torchvision_operators.py | sha256sum | cut -d' ' -f1)
[ "$(cat "$stamp" 2>/dev/null || true)" = "$key" ] && exit 0

printf 'user environment: installing the packages of tools/user_environment.txt into %s\n' "$folder"
mkdir -p test-output
log=test-output/user-environment.log
rm -rf "$folder"
.venv/bin/python -m venv --without-pip "$folder"
site=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
.venv/bin/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_paths()["purelib"])' >"$site/behind.pth"
if ! .venv/bin/python -m pip --python "$folder/bin/python" install --disable-pip-version-check --no-input --no-deps --ignore-installed \
  -r tools/user_environment.txt >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  fail "pip could not install the packages (all it said is in $log)"
fi

# The registry's torchvision is built for CUDA. Beside a CPU torch its compiled operators cannot be loaded, so they are declared.
cp tools/declare_torchvision_operators.py "$site/"
sed -i.original '0,/^from \. import extension/s//import declare_torchvision_operators  # noqa\nfrom . import extension/' "$site/torchvision/__init__.py"
# So is torchaudio, which does without its own.
rm -f "$site"/torchaudio/lib/*.so
"$folder/bin/python" -c 'import torchaudio, torchvision' >>"$log" 2>&1 || fail "torchaudio or torchvision cannot be imported (see $log)"
printf '%s\n' "$key" >"$stamp"
