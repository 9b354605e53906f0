#!/usr/bin/env bash
# Builds, then runs every test but the slow ones: C++ by ctest, Python by pytest. The first time it installs what it needs.
#   tests/run.sh [ARG...]            the arguments go to pytest
#   tests/run.sh --slow [ARG...]     only the slow tests: packages, documentation, notebooks, samples, faults of
#                                    files, another NVRTC
#   tests/run.sh --as-cuda [ARG...]  the Python tests with the emulated device in the place of a GPU's driver, so that
#                                    Bascule takes it for one
#   tests/run.sh --python PYTHON [ARG...]  the Python tests with another Python (a path, or a name on the PATH or in
#                                    pyenv), in an environment and a build of their own: build/python-VERSION
set -uo pipefail
if [ "${1:-}" = --help ]; then
    sed -n '2,/^set /{/^set /!s/^# \?//p}' "${BASH_SOURCE[0]}"
    exit
fi
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
which='not slow' report=pytest.xml cpp_report=ctest.xml
cpp_tests=(-E '^jit_wheel$' --no-tests=error)  # the JIT's tests again, with another NVRTC
if [ "${1:-}" = --slow ]; then
    which=slow report=pytest-slow.xml cpp_report=ctest-slow.xml
    cpp_tests=(-R '^jit_wheel$' --no-tests=ignore)
    [ -n "${LONG_TESTS:-}" ] || cpp_tests+=(-E .)  # it takes a minute and a half: without LONG_TESTS none
    shift
fi
as_cuda=''
if [ "${1:-}" = --as-cuda ]; then
    as_cuda=yes report=pytest-as-cuda.xml
    shift
fi
if [ "${1:-}" = --python ]; then
    python=$(find_named_python "${2:?"--python takes an interpreter"}") || exit 1
    shift 2
    set_up_for_python "$python"
    say "running the Python tests with $("$other_environment/bin/python" --version)"
    cd "$root" && exec "$other_environment/bin/python" -m pytest -n "$(nproc)" --max-worker-restart 0 --dist loadfile \
        -m "$which" --junitxml="$other_environment/../$report" "$@"
fi
set_up

if [ -n "$as_cuda" ]; then
    # The loader finds it by the driver's name.
    mkdir -p "$root/build/dev/as-cuda"
    ln -sfn "$root/build/dev/python/bascule/libbascule_emulator.so" "$root/build/dev/as-cuda/libcuda.so.1"
    export LD_LIBRARY_PATH=$root/build/dev/as-cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} BASCULE_DEVICE=cuda
    export BASCULE_EMULATED_LAZY_LOADING=${BASCULE_EMULATED_LAZY_LOADING-1}  # as drivers do by default
    export BASCULE_EMULATED_FREES_WAIT=${BASCULE_EMULATED_FREES_WAIT-0}    # no free of memory may be relied on to wait
    say "running the Python tests with the emulated device in the driver's place"
    cd "$root" && exec "$venv_python" -m pytest -n "$(nproc)" --max-worker-restart 0 --dist loadfile -m "$which" \
        --junitxml="$root/build/dev/$report" "$@"
fi

say "running the C++ tests"
run_cpp_tests() {
    ctest --test-dir "$root/build/dev" --output-on-failure -j "$(nproc)" --test-output-size-passed 65536 "${cpp_tests[@]}" \
        --output-junit "$root/build/dev/$cpp_report"
}
cpp=0
if [ "$which" = slow ]; then  # a single-threaded program, run in parallel with the others
    run_cpp_tests >"$root/build/dev/ctest-slow.log" 2>&1 &
else
    run_cpp_tests
    cpp=$?
fi
say "running the Python tests"
(cd "$root" && "$venv_python" -m pytest -n "$(nproc)" --max-worker-restart 0 --dist loadfile -m "$which" \
    --junitxml="$root/build/dev/$report" "$@")
python=$?
if [ "$which" = slow ]; then
    wait $!
    cpp=$?
    cat "$root/build/dev/ctest-slow.log"
fi
[ $cpp -eq 0 ] || say "C++ tests failed; run one by: ctest --test-dir build/dev -R NAME --output-on-failure"
exit $((cpp || python))
