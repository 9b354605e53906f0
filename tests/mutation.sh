#!/usr/bin/env bash
# Checks that tests detect errors. For the race detector: first programs of which exactly those with a race must be
# reported, then every record and wait of every scenario, omitted one at a time; arguments are names of scenarios. For
# conformance: every check of a descriptor, removed one at a time from a copy of the sources.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
set_up
cd "$root" || exit 1
export BASCULE_DEVICE=emulated
"$venv_python" -m pytest -q tests/python/ordering/test_races.py tests/python/ordering/test_race_reports.py || exit 1
"$venv_python" tests/python/ordering/mutation.py "$@" || exit 1
[ $# -gt 0 ] || PYTHONPATH=tests/python "$venv_python" -m conformance.mutation
