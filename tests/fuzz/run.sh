#!/usr/bin/env bash
# Builds the fuzzers with clang in build/fuzz and runs each for SECONDS (default 30). A crash leaves its input in
# build/fuzz/tests/fuzz and fails.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../setup.sh"
seconds=${1:-30}
build=$root/build/fuzz
command -v clang++ >/dev/null || install_debian_packages clang
if [ ! -f "$build/build.ninja" ]; then
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DBASCULE_FUZZ=ON \
        -DBASCULE_SAMPLES=OFF -DPython3_EXECUTABLE="$venv_python" >/dev/null || die "CMake could not configure build/fuzz"
fi
ninja -C "$build" --quiet typestr_fuzz descriptor_fuzz ptx_fuzz || die "the build of build/fuzz failed"
cd "$build/tests/fuzz" || exit 1
mkdir -p corpus.ptx
cp -n "$root"/tests/emulator/ptx/*.ptx corpus.ptx
# The fuzzer changes small programs best: each entry and function of the kernels alone, too.
"$venv_python" "$root/tests/fuzz/split_ptx.py" corpus.ptx "$root"/tests/emulator/ptx/*.ptx || exit 1
failed=0
for fuzzer in typestr_fuzz descriptor_fuzz; do
    say "$fuzzer for $seconds s"
    ./$fuzzer -max_total_time="$seconds" -print_final_stats=1 >$fuzzer.log 2>&1 || failed=1
    grep -E "Done|SUMMARY|ERROR|stat::number_of_executed" $fuzzer.log
done
say "ptx_fuzz for $seconds s"
./ptx_fuzz -max_total_time="$seconds" -max_len=20000 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -dict="$root/tests/fuzz/ptx.dict" corpus.ptx >ptx_fuzz.log 2>&1 || failed=1
grep -E "Done|SUMMARY|ERROR|stat::number_of_executed" ptx_fuzz.log
exit $failed
