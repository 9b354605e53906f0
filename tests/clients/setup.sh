#!/usr/bin/env bash
# Makes .venv-clients from PyPI: programs of others that use the emulated device, their tests, and `import bascule` from the
# build tree. What is there already is left alone. Needs some 500 MB the first time.
#
# numba-cuda's and NumPy's wheels have their tests. Sources of other packages are unpacked under build/clients; nothing of
# theirs is committed. cuda-core publishes its tests only in its repository: name a clone of that by BASCULE_CUDA_PYTHON.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../setup.sh"
clients=$root/.venv-clients

set_up_sample bascule_python

# The extension module is for the Python that has built it.
if ! "$clients/bin/python" -c '' 2>/dev/null; then
    say "making the virtual environment .venv-clients"
    "$(readlink -f -- "$venv_python")" -m venv --clear "$clients" || die "python -m venv failed; see its message above"
fi
wanted=$(cat "$root"/{samples,tests/clients}/requirements.txt | sha256sum)
if ! grep -qsxF "$wanted" "$clients/installed-requirements"; then
    say "installing tests/clients/requirements.txt into .venv-clients"
    "$clients/bin/python" -m pip install -q --no-compile --disable-pip-version-check -r "$root/tests/clients/requirements.txt" \
        || die "pip could not install tests/clients/requirements.txt; see its message above"
    printf '%s\n' "$wanted" >"$clients/installed-requirements"
fi
import_from_build_tree "$clients"

# unpack_source NAME VERSION: the package's source in build/clients/NAME-VERSION.
unpack_source() {
    local directory=$root/build/clients name=$1-$2
    [ ! -d "$directory/$name" ] || return 0
    say "fetching the source of $1 $2"
    mkdir -p "$directory/fetched"
    "$clients/bin/python" -m pip download -q --disable-pip-version-check --no-deps --no-binary "$1" -d "$directory/fetched" \
        "$1==$2" && tar -xzf "$directory/fetched/$name.tar.gz" -C "$directory" ||
        say "no source of $1 $2; its tests will be left out"
}

unpack_source cupy 14.2.0
