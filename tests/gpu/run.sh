#!/usr/bin/env bash
# On a machine with a GPU, unattended and without a network: the tests of the producers with whatever libraries are there
# (CuPy, PyTorch, JAX, Numba, mpi4py, ...), then every other Python test, on the real driver. Each command ends within nine
# minutes; one that fails or is stopped does not keep the others from running. What ran goes to tests/gpu/results/.
#   bash tests/gpu/run.sh [PYTHON]     PYTHON imports bascule (or build/dev/python has it), numpy, pytest and hypothesis;
#                                      default: .venv/bin/python, else python3
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
python=${1:-.venv/bin/python}
[ -n "${1:-}" ] || [ -x "$python" ] || python=python3
logs=build/gpu
rm -rf -- "$logs"
mkdir -p "$logs"

export BASCULE_DEVICE=cuda PYTHONUNBUFFERED=1
[ ! -d build/dev/python ] || export PYTHONPATH=$root/build/dev/python${PYTHONPATH:+:$PYTHONPATH}
"$python" -c 'import bascule; bascule.require_gpu()' || {
    echo "tests/gpu/run.sh: $python cannot import bascule, or finds no GPU; the line above says which" >&2
    exit 2
}

# The producers first; then the rest in pieces, because a piece must end in time. Packaging needs a network.
pieces=(tests/python/producers)
for piece in tests/python/*/ tests/python/test_*.py; do
    case $piece in
        */producers/ | */__pycache__/ | */test_packaging.py | */test_tree.py) ;;
        *) pieces+=("${piece%/}") ;;
    esac
done

failed=0
for piece in "${pieces[@]}"; do
    name=$(basename "$piece" .py)
    printf '\n=== %s\n' "$piece"
    timeout --kill-after=10 530 "$python" -m pytest "$piece" -q -rs -m "not slow" -p no:cacheprovider \
        --junitxml="$logs/$name.xml" 2>&1 | tee "$logs/$name.log"
    code=${PIPESTATUS[0]}
    printf '%s\n' "$code" >"$logs/$name.rc"
    [ "$code" -eq 0 ] || failed=1
done
"$python" tests/gpu/collect.py "$logs" tests/gpu/results || failed=1
exit $failed
