#!/usr/bin/env bash
# Builds, then runs every test but the slow ones: C++ by ctest, Python by pytest. The first time it installs what it needs.
#   tests/run.sh [ARG...]            the arguments go to pytest
#   tests/run.sh --slow [ARG...]     the slow tests alone: packages, documentation, notebooks, samples
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
which='not slow' report=pytest.xml
if [ "${1:-}" = --slow ]; then
    which=slow report=pytest-slow.xml
    shift
fi
set_up

cpp=0
if [ "$which" != slow ]; then
    say "running the C++ tests"
    ctest --test-dir "$root/build/dev" --output-on-failure --no-tests=error -j "$(nproc)" --test-output-size-passed 65536 \
        --output-junit "$root/build/dev/ctest.xml"
    cpp=$?
fi
say "running the Python tests"
(cd "$root" && "$venv_python" -m pytest -n "$(nproc)" --dist loadfile -m "$which" \
    --junitxml="$root/build/dev/$report" "$@")
python=$?
[ $cpp -eq 0 ] || say "C++ tests failed; run one by: ctest --test-dir build/dev -R NAME --output-on-failure"
exit $((cpp || python))
