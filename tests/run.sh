#!/usr/bin/env bash
# Builds, then runs every test: C++ by ctest, Python by pytest. Arguments go to pytest: `tests/run.sh -m "not slow"`
# leaves out the tests that take minutes. The first time it installs what it needs.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
set_up

say "running the C++ tests"
ctest --test-dir "$root/build/dev" --output-on-failure --no-tests=error -j "$(nproc)" --test-output-size-passed 65536 \
    --output-junit "$root/build/dev/ctest.xml"
cpp=$?
say "running the Python tests"
(cd "$root" && "$venv_python" -m pytest -n "$(nproc)" --dist loadfile \
    --junitxml="$root/build/dev/pytest.xml" "$@")
python=$?
[ $cpp -eq 0 ] || say "C++ tests failed; run one by: ctest --test-dir build/dev -R NAME --output-on-failure"
exit $((cpp || python))
