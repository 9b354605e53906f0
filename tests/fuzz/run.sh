#!/usr/bin/env bash
# Builds the fuzzers with clang (preset `fuzz`) and runs each for SECONDS (default 30), two at a time. They start from
# tests/fuzz/corpus and add new inputs to build/fuzz/corpus. A crash writes its input there and fails.
#   tests/fuzz/run.sh 3600            an hour each
#   tests/fuzz/run.sh 600 descr_fuzz  one of them
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../setup.sh"
seconds=${1:-30}
shift $(($# > 0))
fuzzers=("$@")
[ ${#fuzzers[@]} -gt 0 ] || fuzzers=(typestr_fuzz descr_fuzz descriptor_fuzz ptx_fuzz)
command -v clang++ >/dev/null || install_debian_packages clang
configure fuzz
ninja -C "$root/build/fuzz" -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" --quiet fuzzers || die "the build of build/fuzz failed"
found=$root/build/fuzz/corpus
mkdir -p "$found"
cd "$found" || exit 1

# The kernels of the emulated device's tests, and each entry and function separately: small programs are mutated best.
ptx_seeds() {
    mkdir -p seeds.ptx
    cp -n "$root"/tests/emulator/ptx/*.ptx seeds.ptx
    "$venv_python" "$root/tests/fuzz/split_ptx.py" seeds.ptx "$root"/tests/emulator/ptx/*.ptx
}

fuzz() {
    local fuzzer=$1 seeds=$root/tests/fuzz/corpus/${1%_fuzz} options=() status=0
    if [ "$fuzzer" = ptx_fuzz ]; then
        ptx_seeds || return
        seeds=seeds.ptx
        options=(-max_len=20000 -timeout=20 -dict="$root/tests/fuzz/ptx.dict")
    fi
    mkdir -p "$fuzzer"
    "$root/build/fuzz/tests/fuzz/$fuzzer" -max_total_time="$seconds" -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$fuzzer-" "${options[@]}" "$fuzzer" "$seeds" >"$fuzzer.log" 2>&1 || status=1
    say "$fuzzer, $seconds s: $(grep -E '^(Done|SUMMARY|==[0-9]+==ERROR)' "$fuzzer.log" | tail -2 | tr '\n' ' ')"
    [ $status = 0 ] || tail -40 "$fuzzer.log" >&2
    return $status
}

failed=0
running=0
for fuzzer in "${fuzzers[@]}"; do
    if [ $running -ge 2 ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    fuzz "$fuzzer" &
    running=$((running + 1))
done
while [ $running -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit $failed
