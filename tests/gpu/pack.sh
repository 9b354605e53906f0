#!/usr/bin/env bash
# Packs what a machine with a GPU, Python 3.12 and no network needs for tests/gpu/run.sh (included): a wheel of the
# package, Python packages that may be missing there, compiled test programs and helpers, and the tests.
#
#   bash tests/gpu/pack.sh [--quick] [--complete] [FOLDER]      default: build/gpu/pack, which git ignores; at most 52 MB
#
# --quick: without the C++ test programs, for rehearse.sh --quick. --complete: with NumPy, pytest and Hypothesis, which
# are otherwise expected there, as NVRTC is.
#
# The interpreter is BASCULE_GPU_PYTHON, else a python3.12 of the PATH or of pyenv. The first run compiles for it what
# differs from build/dev, which takes some minutes, and downloads wheels.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../setup.sh"
programs=(jit_tests runtime_tests file_faults exchange_native bench_native bench_pybind fake_profiler wrapped_driver
    thread_stacks count_allocations)
complete=''
while [ $# -gt 0 ]; do
    case $1 in
        --quick) programs=("${programs[@]:2}") ;;
        --complete) complete=1 ;;
        *) break ;;
    esac
    shift
done
pack=${1:-$root/build/gpu/pack}
case $pack in /*) ;; *) pack=$PWD/$pack ;; esac
environment=$root/build/gpu/python clone=$root/build/gpu/clone
tree=$clone/build/dev
python=$environment/bin/python
most_megabytes=52
memory_manager=(rmm-cu13==26.10.0 librmm-cu13==26.10.0 rapids-logger==0.3.0)  # a producer that only a GPU can test

# Prints the path of a Python 3.12 with its headers.
find_python() {
    local candidate
    for candidate in ${BASCULE_GPU_PYTHON:+"$BASCULE_GPU_PYTHON"} ${BASCULE_HOST_PYTHON:+"$BASCULE_HOST_PYTHON"} \
        python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3.12; do
        "$candidate" - <<'PY' >/dev/null 2>&1 && { printf '%s\n' "$candidate"; return; }
import ensurepip, os, sys, sysconfig, venv
sys.exit(not (sys.version_info[:2] == (3, 12) and os.path.exists(sysconfig.get_path("include") + "/Python.h")))
PY
    done
    die "no Python 3.12 with venv and headers was found; name one: BASCULE_GPU_PYTHON=/path/to/python3.12"
}

# Prints the lines of the pinned requirements for these packages.
pinned() {
    local name
    for name in "$@"; do
        grep -hiE "^$name==" "$root"/{samples,tests}/requirements.txt || die "no version of $name is fixed"
    done
}

make_environment() {
    local wanted
    mapfile -t wanted < <(pinned pybind11 scikit_build_core pathspec packaging)
    [ "$("$python" -c 'import pip, sys; print(*sys.version_info[:2])' 2>/dev/null)" = "3 12" ] \
        || "$(find_python)" -m venv --clear "$environment"
    "$python" -m pip install -q --disable-pip-version-check "${wanted[@]}"
}

# Builds a copy of the tracked files with the options, compiler and CUDA headers of build/dev, so that only the Python
# differs and ccache has nearly everything.
copy_clone() {
    mkdir -p "$clone"
    find "$clone" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf -- {} +
    copy_tracked "$clone"
}

# copy_tracked FOLDER [PATH...]: copies tracked files and new ones, with their times.
copy_tracked() {
    local to=$1 file
    shift
    (cd "$root" && git ls-files -z --cached --others --exclude-standard -- "$@" |
        while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done |
        tar --null -T - -cf - | tar -xf - -C "$to")
}

value_of() { sed -n "s/^$1:[A-Z]*=//p" "$root/build/dev/CMakeCache.txt"; }

build_wheel() {
    mkdir -p "$pack/wheels"
    local options=(-C "build-dir=$tree" -C cmake.build-type=RelWithDebInfo -C build.targets=bascule_python
        -C install.strip=true -C cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2\ -g1
        -C cmake.define.BASCULE_TESTS=ON
        -C "cmake.define.BASCULE_CUDA_INCLUDE_DIR=$(value_of BASCULE_CUDA_INCLUDE_DIR)"
        -C "cmake.define.CMAKE_CXX_COMPILER=$(value_of CMAKE_CXX_COMPILER)"
        -C "cmake.define.BASCULE_WERROR=$(value_of BASCULE_WERROR)")
    say "building the wheel for $("$python" --version)"
    "$python" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$pack/wheels" \
        "${options[@]}" "$clone" || die "the wheel could not be built; see the messages above"
}

# Packages that Bascule and the tests need and a machine with PyTorch may lack, in versions for that Python. They are
# installed only where missing. NVRTC is the machine's own, because it would be larger than all the rest.
add_wheels() {
    local wanted=() names=(cuda-pathfinder nvidia-cuda-cccl nvidia-cuda-runtime nvidia-cuda-crt apache-tvm-ffi)
    [ -z "$complete" ] || names+=(numpy pytest pluggy iniconfig packaging Pygments hypothesis sortedcontainers)
    mapfile -t wanted < <(pinned "${names[@]}")
    "$python" -m pip download -q --disable-pip-version-check --only-binary=:all: --no-deps -d "$pack/wheels" \
        "${wanted[@]}" "${memory_manager[@]}"
}

# Adds the stripped programs and libraries at the paths where the tests look for them.
add_programs() {
    ninja -C "$tree" -j "$CMAKE_BUILD_PARALLEL_LEVEL" --quiet "${programs[@]}"
    local file
    while IFS= read -r file; do
        mkdir -p "$pack/build/dev/$(dirname "$file")"
        strip --strip-unneeded -o "$pack/build/dev/$file" "$tree/$file"
        chmod +x "$pack/build/dev/$file"
    done < <(cd "$tree" && find tests -type f \( -name jit_tests -o -name runtime_tests -o -name '*.so' \))
    # A program looks for the stand-ins for host headers in its own directory.
    [ ! -d "$pack/build/dev/tests/jit" ] || cp -r "$tree/bascule_host_headers" "$pack/build/dev/tests/jit/"
}

add_sources() {
    copy_tracked "$pack" tests samples interface/CONFORMANCE.md interface/arrays/dlpack_abi.h \
        runtime/driver/driver.hpp README.md pyproject.toml
    rm -rf -- "$pack"/tests/emulator "$pack"/tests/fuzz/corpus
    # Keeps only the records of other GPUs that are compared with this one.
    find "$pack"/tests/gpu/results/20* -type f \
        ! -name captures.json ! -name opcodes.json ! -name textures.json ! -name tensor_maps.json -delete
    git -C "$root" describe --always --dirty --abbrev=12 >"$pack/commit" 2>/dev/null || echo unknown >"$pack/commit"
}

export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
make_virtual_environment tests
configure dev -DBASCULE_TESTS=ON
make_environment
rm -rf -- "$pack"
mkdir -p "$pack"
copy_clone
build_wheel
add_wheels
add_programs
add_sources
needed=$(find "$pack/build" -type f \( -perm -u+x -o -name '*.so' \) -exec objdump -T {} + |
    grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
megabytes=$(($(du -sb "$pack" | cut -f1) / 1000000))
say "packed $pack: $megabytes MB, commit $(cat "$pack/commit"), needs $needed"
[ "$megabytes" -lt $most_megabytes ] || die "$pack has $megabytes MB, more than $most_megabytes"
