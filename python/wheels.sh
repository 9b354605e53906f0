#!/usr/bin/env bash
# Builds wheels that install on every Linux with glibc 2.28 or newer (manylinux_2_28), into dist/: `bascule` for x86-64
# and aarch64 and for each CPython from 3.11 on that this machine has, and `bascule-cpp`, the CMake package for C++.
# auditwheel checks each. Runs on Debian 12 on x86-64. The same sources and tools give the same bytes.
#   python/wheels.sh [--arch x86_64|aarch64] [--out DIRECTORY] [PYTHON...]
#                    PYTHON: interpreters with headers (default: of each minor version the first on the PATH or of pyenv)
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../tests/setup.sh"

arches=(x86_64 aarch64) out=$root/dist pythons=()
while [ $# -gt 0 ]; do
    case $1 in
        --arch) arches=("${2:?"--arch takes x86_64 or aarch64"}"); shift ;;
        --out) out=$(realpath -m -- "${2:?"--out takes a directory"}"); shift ;;
        -*) die "usage: python/wheels.sh [--arch x86_64|aarch64] [--out DIRECTORY] [PYTHON...]" ;;
        *) pythons+=("$1") ;;
    esac
    shift
done
work=$root/build/wheels
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}  # 1980, where the dates of zip archives begin

# Prints minor versions and interpreters, one line each: the first of each version that has headers.
find_pythons() {
    local minor place python
    for minor in 11 12 13 14; do
        for place in ${PATH//:/ } "$HOME"/.pyenv/versions/3.$minor*/bin; do
            python=$place/python3.$minor
            if [ -x "$python" ] && "$python" - <<'PY' 2>/dev/null; then
import os, sys, sysconfig
sys.exit(sys.prefix != sys.base_prefix or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))
PY
                "$python" -c 'import sys; print(sys.executable)'  # pyenv's on the PATH are scripts
                continue 2
            fi
        done
        say "no python3.$minor with headers was found: there will be no wheel for it"
    done
}

compiler() {
    case $1 in
        x86_64) printf 'g++\n' ;;
        aarch64) printf 'aarch64-linux-gnu-g++\n' ;;
        *) die "no wheels are made for $1" ;;
    esac
}

# The headers that are compiled in, in a folder that has nothing of one processor.
collect_headers() {
    mkdir -p "$work/headers"
    local header
    for header in fmt nlohmann xxhash.h; do ln -sfn "/usr/include/$header" "$work/headers/$header"; done
}

# configure_for ARCH PYTHON: a build directory of its own for each processor. Changing the Python compiles the bindings
# again, and nothing else.
configure_for() {
    local arch=$1 python=$2 cxx include suffix prefix_map
    cxx=$(compiler "$arch")
    include=$("$venv_python" "$root/python/wheels/python_headers.py" "$python" "$cxx" "$work/$arch/python")
    suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
    prefix_map="\"-ffile-prefix-map=$work=build\" \"-ffile-prefix-map=$root=.\""  # a shell reads the quotes
    local options=(
        -G Ninja -U '*Python*' -U 'PYTHON_*' -U 'PYBIND11_*' -DCMAKE_BUILD_TYPE=Release
        -DBASCULE_PYTHON=ON -DBASCULE_TESTS=OFF -DBASCULE_SAMPLES=OFF -DBASCULE_BASELINE=ON -DBASCULE_LINKER=
        -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON  # else the length of this path is in the libraries
        "-DBASCULE_HEADERS=$work/headers" "-DBASCULE_CUDA_INCLUDE_DIR=$cuda_headers" -DBASCULE_NVRTC_DIRECTORY=
        "-Dpybind11_DIR=$pybind11" "-DCMAKE_C_COMPILER=${cxx%g++}gcc" "-DCMAKE_CXX_COMPILER=$cxx"
        "-DCMAKE_C_FLAGS=$prefix_map" "-DCMAKE_CXX_FLAGS=$prefix_map" "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG"
        "-DCMAKE_SHARED_LINKER_FLAGS=$(linker_flags "$arch") -Wl,--no-undefined"
        "-DCMAKE_MODULE_LINKER_FLAGS=$(linker_flags "$arch")"
        "-DPython3_EXECUTABLE=$python" "-DPython3_INCLUDE_DIR=$include" "-DPython_INCLUDE_DIR=$include"
        "-DPYTHON_MODULE_EXTENSION=${suffix/x86_64/$arch}" -DPYTHON_MODULE_DEBUG_POSTFIX=
    )
    [ "$arch" = x86_64 ] || options+=(-DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$arch"
                                      "-DBASCULE_STUB=$work/$(tag "$python").pyi")
    cmake -S "$root" -B "$work/$arch/build" "${options[@]}" >"$work/$arch/configure.log" \
        || die "CMake could not configure $work/$arch/build; see $work/$arch/configure.log"
}

# The libraries to link against. Their folder is named by what makes them, so that a change of it links everything again.
libraries() {
    printf '%s\n' "$work/$1/libraries-$(cat "$root"/python/wheels/older_* | sha256sum | head -c 8)"
}

linker_flags() {
    printf '"-L%s" -Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,--build-id=none\n' "$(libraries "$1")"
}

# The tag of an interpreter in names of wheels: cp311-cp311, cp313-cp313t.
tag() {
    "$1" - <<'PY'
import sys, sysconfig
version = f"cp{sys.version_info.major}{sys.version_info.minor}"
print(f"{version}-{version}{'t' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''}")
PY
}

# install_component COMPONENT DIRECTORY BUILD: into an empty directory, without debug information.
install_component() {
    rm -rf -- "$2"
    mkdir -p "$(dirname -- "$2")"
    cmake --install "$3" --component "$1" --prefix "$2" --strip >"$3/install.log" \
        || die "could not install; see $3/install.log"
}

# pack KIND STAGE TAG: makes the wheel, and checks that auditwheel finds nothing newer than glibc 2.28 in it.
pack() {
    local wheel shown glibc
    wheel=$("$venv_python" "$root/python/wheels/pack.py" "$1" "$2" "$3" "$out")
    shown=$("$venv_python" -m auditwheel show "$wheel" | tr -s '\n ' ' ')
    glibc=$(grep -oP 'following platform tag: "manylinux_2_\K[0-9]+' <<<"$shown") && [ "$glibc" -le 28 ] \
        || die "$wheel is not a manylinux_2_28 wheel; auditwheel: $shown"
    say "$(stat -c %s "$wheel") bytes, needs glibc 2.$glibc: $wheel"
}

build_wheels() {
    local arch=$1 python name platform=manylinux_2_28_$1
    mkdir -p "$work/$arch"
    "$venv_python" "$root/python/wheels/older_libraries.py" "$(compiler "$arch")" "$(libraries "$arch")"
    for python in "${pythons[@]}"; do
        name=$(tag "$python")
        configure_for "$arch" "$python"
        say "building for $arch and $name"
        ninja -C "$work/$arch/build" -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" --quiet
        install_component python "$work/$arch/$name" "$work/$arch/build"
        [ "$arch" != x86_64 ] || cp "$work/$arch/$name/bascule/_bascule.pyi" "$work/$name.pyi"
        pack bascule "$work/$arch/$name" "$name-$platform"
    done
    rm -rf -- "$work/$arch/cpp"
    install_component development "$work/$arch/cpp/bascule_cpp" "$work/$arch/build"
    pack bascule-cpp "$work/$arch/cpp" "py3-none-$platform"
}

[ "$(uname -m)" = x86_64 ] || die "python/wheels.sh runs on x86-64"
packages=("${sample_packages[@]}")
[[ " ${arches[*]} " != *aarch64* ]] || packages+=(g++-aarch64-linux-gnu)
install_debian_packages "${packages[@]}"
make_virtual_environment tests
[ ${#pythons[@]} -gt 0 ] || mapfile -t pythons < <(find_pythons)
site_packages=$("$venv_python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cuda_headers=$site_packages/nvidia/cu13/include pybind11=$site_packages/pybind11/share/cmake/pybind11
mkdir -p "$out" "$work"
collect_headers
for arch in "${arches[@]}"; do
    for python in "${pythons[@]}"; do  # the stubs of aarch64 are those of x86-64, whose modules run here
        [ "$arch" = x86_64 ] || [ -f "$work/$(tag "$python").pyi" ] || die "build the wheels for x86_64 first"
    done
    build_wheels "$arch"
done
