#!/usr/bin/env bash
# Passes hostile Python objects (hostile_objects.py) to the Python module of the preset `asan`: COUNT of them (default a
# million) from SEED (default 1). Fails on the first report of a sanitizer and on any outcome that is not ordinary.
#   tests/fuzz/hostile.sh 1000000 7
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../setup.sh"
make_virtual_environment tests
configure asan -DBASCULE_PYTHON=ON
ninja -C "$root/build/asan" -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" --quiet bascule_python \
    || die "the build of build/asan failed"
# A sanitizer's dlopen looks for NVRTC's builtins on the loader's path, not in NVRTC's directory.
nvrtc=$("$venv_python" -c 'import nvidia; print(*(path + "/cu13/lib" for path in nvidia.__path__), sep=":")')
export LD_LIBRARY_PATH=$nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# The interpreter is not instrumented: the sanitizer's library must come before it, with libstdc++, whose __cxa_throw it
# needs. Python's own pools would hide what is freed; leaks are ignored, because the interpreter frees little at its
# end.
export LD_PRELOAD="$(clang++ -print-file-name=libclang_rt.asan-$(uname -m).so) $(g++ -print-file-name=libstdc++.so.6)"
export PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
export PYTHONPATH=$root/build/asan/python BASCULE_DEVICE=emulated
exec "$venv_python" "$root/tests/fuzz/hostile_objects.py" --count "${1:-1000000}" --seed "${2:-1}"
