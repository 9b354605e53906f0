#!/usr/bin/env bash
# Tests and measures everything on a machine with a GPU, with the real driver, unattended and without a network. Runs from
# the folder that tests/gpu/pack.sh made, and installs the packages in it; or from a clone in which build/dev is built.
#
#   bash tests/gpu/run.sh --first            some 5 minutes; the most important: costs of all libraries, then what
#                                            can hang or lose a context, and what failed the last time
#   bash tests/gpu/run.sh --second           some 8 minutes, at once or later: a soak, then all the rest
#   bash tests/gpu/run.sh [--only PIECE[,PIECE...]] [--resume]
#   options of all: [--seconds SECONDS] [--jobs COUNT] [--logs FOLDER] [PYTHON]
#
# Pieces of the first command, in its order; until bench-gpu has ended each is alone on the GPU:
#     first             the most informative checks in half a minute (first.py): each step is a process
#     assumptions       costs of driver calls, and driver behaviour that Bascule relies on (assumptions.py)
#     thread_exit       whether waits return after a thread with a default stream has ended (thread_exit.py)
#     bench-gpu         tests/bench/gpu.py: launches, memory, compiling and starting, compared with other libraries
#     captures          the effects of driver calls on captures (captures.py)
#     memcheck, racecheck   compute-sanitizer over Bascule's own device code (sanitizer.py)
#     library_captures  the effects of Bascule's operations on captures of PyTorch and CuPy (library_captures.py)
#     endless           Ctrl-C and process exit while a kernel runs forever (endless.py)
#     gpu               test_on_a_gpu.py: clusters, programmatic launches, cooperative grids, graphs that others capture
#     the files of tests that failed or hung the last time
#     driver            tests/python/driver, as far as they can use the real driver
# Pieces of the second:
#     bench-gpu-again   parts of bench-gpu once more: Bascule, cuda.core, numba-cuda, starting
#     race              race.py: 100,000 rounds against slow producers; no wrong value, and some with sync=False
#     textures, opcodes results of textures and instructions, for comparison with the emulated device
#     tensor_maps       the driver's verdicts on random tensor maps, for comparison with the rules
#     planted           the planted bugs of tests/python/checks under compute-sanitizer (planted.py)
#     counters          Nsight Compute's counters beside the emulated device's counts (counters.py)
#     cpp               the C++ tests that need nothing of the emulated device itself
#     python            every Python test, or one of its directories or files by name: ordering, lifetime, test_errors, ...
#     soak              soak.py: launches by many threads with arrays of PyTorch, CuPy and JAX; memory stays flat
#     bench-host        tests/bench/all.py
#
# --only: default all. --seconds stops the run after this time; the results have what has ended. --resume continues the last
# run with these logs, as --second always does: pieces that ended are skipped, and of the others the tests that ended. A test
# that ends its process, destroys the context or hangs is a failure, and the rest of its file runs in another
# process. --logs: default build/gpu/logs. BASCULE_GPU_TIME_SCALE=4 makes all limits four times as long.
#
# Results: tests/gpu/results/DATE-DEVICE/results.json, rewritten after every piece; tests/gpu/results/README.md describes
# it. With OUT set, also at most 8 files in OUT/DATE-DEVICE; logs.tar.gz has everything. PYTHON: default
# .venv/bin/python of a clone, else python3.12, else python3.
# Without a GPU: BASCULE_DEVICE=emulated tries the script; tests/gpu/rehearse.sh puts the emulated device in the driver's place.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
options=() python=''
while [ $# -gt 0 ]; do
    case $1 in
        --only | --seconds | --jobs) options+=("$1" "${2:?"$1 takes a value"}"); shift ;;
        --logs) mkdir -p "${2:?"$1 takes a folder"}"; BASCULE_GPU_LOGS=$(cd -- "$2" && pwd); export BASCULE_GPU_LOGS; shift ;;
        --resume | --first | --second) options+=("$1") ;;
        -*) echo "tests/gpu/run.sh: no option $1; the head of the file lists them" >&2; exit 2 ;;
        *) python=$1 ;;
    esac
    shift
done
for candidate in .venv/bin/python python3.12 python3; do
    [ -n "$python" ] || ! command -v "$candidate" >/dev/null || python=$candidate
done
[ -n "$python" ] || { echo "tests/gpu/run.sh: no Python was found; name one as the last argument" >&2; exit 2; }

export BASCULE_DEVICE=${BASCULE_DEVICE:-cuda} PYTHONUNBUFFERED=1
if [ -d wheels ]; then
    # Also the user site directory, because cuda-pathfinder looks there for headers.
    export PYTHONUSERBASE=$root/site
    site=$root/site/lib/$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')/site-packages
    export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
    "$python" tests/gpu/install.py wheels "$site" || exit 2
else
    export PYTHONPATH=$root/build/dev/python${PYTHONPATH:+:$PYTHONPATH}
fi
exec "$python" tests/gpu/pieces.py "${options[@]}"
