#!/usr/bin/env bash
# Makes .venv-clients from PyPI: other projects' programs that use the emulated device, their tests, and `import bascule` from
# the build tree. Existing parts are kept. Needs some 500 MB the first time.
#
# numba-cuda's and NumPy's wheels have their tests. Sources of other packages are unpacked under build/clients and not
# committed. cuda-core publishes its tests only in its repository:
#
# BASCULE_CUDA_PYTHON  a clone of NVIDIA/cuda-python, or of a fork of it; the tests of one release are extracted from it,
#                      with that release
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../setup.sh"
clients=$root/.venv-clients

set_up_sample bascule_python

# The extension module works only with the Python that it was built for.
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

# unpack_source NAME VERSION: unpacks the package's source into build/clients/NAME-VERSION.
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
unpack_source pycuda 2026.1

# The tests of cuda-core 1.1.0 at this commit, and that release in addition to the one that Bascule's own tests use.
cuda_core_tests=8eb9dc2ba180394a763d40405be4cf8865b5f8eb
unpack_cuda_core() {
    local clone=${BASCULE_CUDA_PYTHON:-} target=$root/build/clients/cuda-python
    [ -n "$clone" ] && [ ! -d "$target" ] || return 0
    say "taking the tests of cuda-core out of $clone"
    mkdir -p "$target.new" || return 1
    git -C "$clone" archive "$cuda_core_tests" cuda_core/tests cuda_python_test_helpers | tar -x -C "$target.new" &&
        "$clients/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
            --target "$root/build/clients/cuda-core-1.1.0" cuda-core==1.1.0 &&
        mv "$target.new" "$target" && return
    rm -rf "$target.new"
    die "$clone is no clone of cuda-python, or of a fork of it, that has commit $cuda_core_tests; or cuda-core 1.1.0 could" \
        "not be installed; see the message above"
}
unpack_cuda_core
