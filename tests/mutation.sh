#!/usr/bin/env bash
# Shows that the race detector sees what it should: first programs of which exactly those with a race must be reported,
# then every record and wait of every scenario, left out one at a time. Arguments are names of scenarios.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
set_up
cd "$root" || exit 1
export BASCULE_DEVICE=emulated
"$venv_python" -m pytest -q tests/python/ordering/test_races.py tests/python/ordering/test_race_reports.py || exit 1
exec "$venv_python" tests/python/ordering/mutation.py "$@"
