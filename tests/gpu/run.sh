#!/usr/bin/env bash
# On a machine with a GPU, unattended and without a network: everything that can be right or wrong there, on the real
# driver. Runs from the folder that tests/gpu/pack.sh made, and there installs what it brought; or from a clone in which
# build/dev is built.
#
#   bash tests/gpu/run.sh [--only PIECE[,PIECE...]] [--seconds SECONDS] [--jobs COUNT] [--resume] [PYTHON]
#
#     first      within a minute what tells the most (first.py): each step a process of its own
#     race       race.py: 100,000 rounds against slow producers; no wrong value, and some with sync=False
#     gpu        test_on_a_gpu.py: clusters, programmatic launches, graphs that others capture; and what the emulated
#                device is compared with: what each instruction gives (record.py), what textures give (textures.py), and
#                what calls of the driver do to captures (captures.py)
#     cpp        the C++ tests that do not look into the emulated device
#     python     every Python test, or one of its directories or files by name: ordering, lifetime, test_errors, ...
#     bench      tests/bench/gpu.py on the driver, alone; tests/bench/all.py after it
#
# Default: all of them. --seconds stops what runs then; what has ended is in the results. --resume goes on where the last
# run in this folder stopped: pieces that ended are left out, and of the others the tests that ended. A test that ends its
# process, loses the context or hangs is a failure, and the rest of its file goes on in another process.
#
# Results: ${OUT:-tests/gpu/results}/DATE-DEVICE/results.json, written again after every piece; tests/gpu/results/README.md
# says what is in it. PYTHON: default .venv/bin/python of a clone, else python3.12, else python3.
# Without a GPU: BASCULE_DEVICE=emulated tries the script; tests/gpu/rehearse.sh puts the emulated device in the driver's place.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
options=() python=''
while [ $# -gt 0 ]; do
    case $1 in
        --only | --seconds | --jobs) options+=("$1" "${2:?"$1 takes a value"}"); shift ;;
        --resume) options+=("$1") ;;
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
    # As the site directory of users, too: there cuda-pathfinder looks for headers.
    export PYTHONUSERBASE=$root/site
    site=$root/site/lib/$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')/site-packages
    export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
    "$python" tests/gpu/install.py wheels "$site" || exit 2
else
    export PYTHONPATH=$root/build/dev/python${PYTHONPATH:+:$PYTHONPATH}
fi
exec "$python" tests/gpu/pieces.py "${options[@]}"
