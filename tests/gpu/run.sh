#!/usr/bin/env bash
# On a machine with a GPU, unattended and without a network: everything that can be right or wrong there, on the real
# driver. Each command ends within nine minutes; one that fails or is stopped does not keep the others from running.
#
#   bash tests/gpu/run.sh [--only STEP[,STEP...]] [PYTHON]
#
#     producers  the tests with whatever libraries are there (CuPy, PyTorch, JAX, Numba, mpi4py, ...)
#     race       tests/gpu/race.py: 100,000 rounds against slow producers; no wrong value, and some with sync=False
#     gpu        tests/gpu/test_on_a_gpu.py: clusters, programmatic launches, graphs that others capture
#     cpp        the C++ tests of build/dev that do not look into the emulated device
#     python     every other Python test, a directory or file at a time
#     bench      tests/bench/gpu.py on the driver; tests/bench/all.py beside it, which needs none
#
# PYTHON imports bascule (or build/dev/python has it), numpy, pytest and hypothesis; default: .venv/bin/python, else
# python3. What ran goes to tests/gpu/results/DATE-DEVICE/: results.json with versions, and what the measurements printed.
# To try the script itself where there is no GPU: BASCULE_DEVICE=emulated bash tests/gpu/run.sh --only race,gpu,cpp
# (what it finds then stays in build/gpu/results/).
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
only=producers,race,gpu,cpp,python,bench
if [ "${1:-}" = --only ]; then
    only=${2:?"--only takes the names of steps"}
    shift 2
fi
python=${1:-.venv/bin/python}
[ -n "${1:-}" ] || [ -x "$python" ] || python=python3
logs=build/gpu/logs
rm -rf -- "$logs"
mkdir -p "$logs"

export BASCULE_DEVICE=${BASCULE_DEVICE:-cuda} PYTHONUNBUFFERED=1
[ ! -d build/dev/python ] || export PYTHONPATH=$root/build/dev/python${PYTHONPATH:+:$PYTHONPATH}
results=tests/gpu/results
if [ "$BASCULE_DEVICE" = emulated ]; then
    results=build/gpu/results
    check='import bascule'
else
    check='import bascule; bascule.require_gpu()'
fi
"$python" -c "$check" || {
    echo "tests/gpu/run.sh: $python cannot import bascule, or finds no GPU; the line above says which" >&2
    exit 2
}

failed=0
wanted() { case ",$only," in *",$1,"*) true ;; *) false ;; esac; }

# attempt NAME COMMAND...: within nine minutes; what it prints and its exit status stay in $logs.
attempt() {
    local name=$1
    shift
    printf '\n=== %s: %s\n' "$name" "$*"
    timeout --kill-after=10 530 "$@" 2>&1 | tee "$logs/$name.log"
    local code=${PIPESTATUS[0]}
    printf '%s\n' "$code" >"$logs/$name.rc"
    [ "$code" -eq 0 ] || failed=1
}

pytest() {
    local piece=$1 name
    name=$(basename "$piece" .py)
    attempt "$name" "$python" -m pytest "$piece" -q -rs -m "not slow" -p no:cacheprovider --junitxml="$logs/$name.xml"
}

cpp_tests() {
    local name files
    for name in interface jit runtime; do
        [ -x "build/dev/tests/$name/${name}_tests" ] || continue
        files=$name/
        if [ "$name" = runtime ]; then
            # The others count the emulated device's calls, or start processes on it.
            files=$(grep -LE '\bTrace\b|calls_of|emulated|child' tests/runtime/*_test.cpp | sed 's|.*/|*|' | paste -sd,)
        fi
        attempt "cpp-$name" "build/dev/tests/$name/${name}_tests" --source-file="*$files*"
    done
}

python_tests() {
    local piece
    for piece in tests/python/*/ tests/python/test_*.py; do
        case $piece in
            */producers/ | */__pycache__/ | */packaging/* | */test_tree.py) ;;  # the third needs a network
            *) pytest "${piece%/}" ;;
        esac
    done
}

benchmarks() {
    local smoke=()
    [ "$BASCULE_DEVICE" != emulated ] || smoke=(--smoke)
    attempt bench-gpu "$python" tests/bench/gpu.py --json "$logs/bench-gpu.json" "${smoke[@]}"
    attempt bench-host "$python" tests/bench/all.py --json "$logs/bench-host.json"
}

if wanted producers; then pytest tests/python/producers; fi
if wanted race; then attempt race "$python" tests/gpu/race.py --result "$logs/race.json"; fi
if wanted gpu; then pytest tests/gpu/test_on_a_gpu.py; fi
if wanted cpp; then cpp_tests; fi
if wanted python; then python_tests; fi
if wanted bench; then benchmarks; fi
"$python" tests/gpu/collect.py "$logs" "$results" || failed=1
exit $failed
