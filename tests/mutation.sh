#!/usr/bin/env bash
# Shows that the race detector sees what it should: planted races first (all must be reported, and programs without one
# must not be), then every record and wait of every scenario, left out one at a time. Arguments are names of scenarios.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
set_up
cd "$root" || exit 1
export BASCULE_DEVICE=emulated
"$venv_python" -m pytest -q tests/python/ordering/test_planted_races.py tests/python/ordering/test_no_races.py \
    tests/python/ordering/test_races_on_two_devices.py || exit 1
exec "$venv_python" tests/python/ordering/mutation.py "$@"
