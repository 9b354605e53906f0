# Sourced by samples/run.sh, tests/run.sh and .ci/run: prepares a clone so that everything can run. Existing parts are
# kept, so the second time takes seconds.
#
# A sample's requirements are a part of those of the tests: `set_up_sample` prepares the former, `set_up` both.
#
# BASCULE_CMAKE_ARGS   further arguments for CMake's first configuration, split at spaces
# BASCULE_HOST_PYTHON  the interpreter to make .venv with (default: Debian's own, else the first python3 >= 3.11 found)
# CI                   if set and not empty, warnings are errors

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
venv_python=$root/.venv/bin/python
sample_packages=(g++ cmake ninja-build libfmt-dev libxxhash-dev nlohmann-json3-dev python3 python3-venv python3-dev)
test_packages=("${sample_packages[@]}" doctest-dev libmpfr-dev pkg-config ccache mold git valgrind chromium fonts-dejavu-core)

# Container images set it. The tests start thousands of processes, and each would compile NumPy's modules again.
unset PYTHONDONTWRITEBYTECODE

# Debian's ninja 1.11 cuts the names of included files at an apostrophe, and therefore rebuilds everything each time.
case $root in
    *\'*) mkdir -p "$root/build/ninja"
          ln -sfn ../../.venv/bin/ninja "$root/build/ninja/ninja"
          export PATH="$root/build/ninja:$PATH" ;;
esac

say() { printf 'bascule: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Installs those of the named Debian packages that are missing.
install_debian_packages() {
    command -v dpkg-query >/dev/null || { say "no Debian or Ubuntu: expecting to find what $* provide"; return; }
    local package missing=() as_root=()
    for package in "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "missing Debian packages; as root: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing Debian packages: ${missing[*]}"
    "${as_root[@]}" apt-get update -q >/dev/null || say "apt-get update failed; trying with the lists at hand"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null \
        || die "apt-get could not install ${missing[*]}; see its message above"
}

# Prints the first Python that is new enough and can make virtual environments and extension modules. Debian's own is
# the one whose packages have just been installed; one that precedes it in PATH differs among machines.
find_host_python() {
    local candidate
    for candidate in ${BASCULE_HOST_PYTHON:+"$BASCULE_HOST_PYTHON"} /usr/bin/python3 python3 python3.{14,13,12,11}; do
        "$candidate" - <<'PY' >/dev/null 2>&1 && { printf '%s\n' "$candidate"; return; }
import ensurepip, os, sys, sysconfig, venv
sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))))
PY
    done
    die "no Python >= 3.11 with venv and headers was found; name one: BASCULE_HOST_PYTHON=/path/to/python3"
}

# Makes .venv with exactly samples/requirements.txt or, for `tests`, tests/requirements.txt, which contains it.
make_virtual_environment() {
    if ! "$venv_python" -c '' 2>/dev/null; then
        local host
        host=$(find_host_python) || exit 1
        say "making the virtual environment .venv with $("$host" --version)"
        "$host" -m venv --clear "$root/.venv" || die "python -m venv failed; see its message above"
    fi
    local of_samples wanted installed=$root/.venv/installed-requirements
    of_samples="samples $(sha256sum <"$root/samples/requirements.txt")"
    wanted=$of_samples
    [ "$1" = samples ] || wanted="$1 $(cat "$root"/{samples,tests}/requirements.txt | sha256sum)"
    grep -qsxF "$wanted" "$installed" && return
    say "installing $1/requirements.txt into .venv (downloads some 300 MB the first time)"
    # Python compiles modules when they are imported, and only a small part is.
    "$venv_python" -m pip install -q --no-compile --disable-pip-version-check -r "$root/$1/requirements.txt" \
        || die "pip could not install $1/requirements.txt; see its message above"
    printf '%s\n' "$of_samples" "$wanted" >"$installed"
}

# Configures build/PRESET with further arguments for CMake: once, and again if the clone was moved or an argument is
# new. Earlier arguments stay.
configure() {
    local preset=$1 build=$root/build/$1 stamp=$root/build/$1/configured-with argument asked=() new=()
    shift
    read -ra asked <<<"${BASCULE_CMAKE_ARGS:-}"
    [ -z "${CI:-}" ] || asked+=(-DBASCULE_WERROR=ON)
    asked+=("$@")
    if is_configured "$preset"; then
        for argument in "${asked[@]}"; do
            grep -qsxF -e "$argument" "$stamp" || new+=("$argument")
        done
        [ ${#new[@]} -gt 0 ] || return 0
    else
        rm -rf -- "$build"
        new=("${asked[@]}")
    fi
    say "configuring build/$preset ${new[*]}"
    (cd "$root" && cmake --preset "$preset" "${new[@]}") >/dev/null || die "CMake could not configure build/$preset"
    printf '%s\n' "${new[@]}" >>"$stamp"
}

is_configured() {
    [ -f "$root/build/$1/build.ninja" ] &&
        grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$root/build/$1/CMakeCache.txt"
}

# Builds targets of build/PRESET (none: everything) and shows the progress. Silent if there is nothing to do.
build() {
    local preset=$1 steps jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
    shift
    steps=$(ninja -C "$root/build/$preset" -n "$@" 2>/dev/null | grep -c '^\[')
    [ "$steps" -gt 0 ] || return 0
    say "building build/$preset: $steps steps, $jobs at a time"
    NINJA_STATUS='[%f/%t] ' ninja -C "$root/build/$preset" -j "$jobs" "$@" | show_progress >&2 \
        || die "the build of build/$preset failed; see its message above"
}

# Shows ninja's lines `[STEP/STEPS] ...` as one updated line in a terminal, and as a line every 10 % elsewhere. Passes
# on the compiler's messages.
show_progress() {
    local line tenth last=0
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
            tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
            if [ -t 2 ]; then
                printf '\r\033[Kbascule: %d of %d steps done' "${BASH_REMATCH[@]:1:2}"
                [ "${BASH_REMATCH[1]}" != "${BASH_REMATCH[2]}" ] || printf '\n'
            elif [ $tenth -gt $last ]; then
                say "${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps done"
            fi
            last=$tenth
        elif [[ $line != "ninja: Entering directory"* ]]; then
            [ ! -t 2 ] || printf '\r\033[K'
            printf '%s\n' "$line"
        fi
    done
}

# Prepares what one sample needs, by its target: `bascule_python` gives a .venv/bin/python that can `import bascule`
# from the build tree. Builds no tests.
set_up_sample() {
    install_debian_packages "${sample_packages[@]}"
    make_virtual_environment samples
    if is_configured dev; then configure dev; else configure dev -DBASCULE_TESTS=OFF; fi
    build dev "$1"
    import_from_build_tree
}

# Prepares all of that, and everything that the tests need.
set_up() {
    install_debian_packages "${test_packages[@]}"
    make_virtual_environment tests
    configure dev -DBASCULE_TESTS=ON
    build dev
    import_from_build_tree
}

# Prints the path of a Python that is named by a path, or by a name on the PATH or in pyenv.
find_named_python() {
    local candidate
    for candidate in "$1" "$HOME"/.pyenv/versions/*/bin/"$1"; do
        if "$candidate" -c '' 2>/dev/null; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    die "$1 was not found, or does not start; name a Python with headers"
}

# Prepares everything that the Python tests need, for a second Python: its environment, and a build of Bascule and of the
# tests' libraries. Sets other_environment.
set_up_for_python() {
    local python=$1 version place of_tests
    version=$("$python" -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}{sys.abiflags}")')
    place=$root/build/python-$version other_environment=$place/venv
    install_debian_packages "${test_packages[@]}"
    make_virtual_environment tests
    of_tests=$(cat "$root"/{samples,tests}/requirements.txt | sha256sum)
    if ! grep -qsxF "$of_tests" "$place/installed-requirements"; then
        say "installing tests/requirements.txt into build/python-$version/venv"
        "$python" -m venv --clear "$other_environment" || die "$python -m venv failed; see its message above"
        "$other_environment/bin/python" -m pip install -q --no-compile --disable-pip-version-check \
            -r "$root/tests/requirements.txt" || die "pip could not install tests/requirements.txt for Python $version"
        printf '%s\n' "$of_tests" >"$place/installed-requirements"
    fi
    (cd "$root" && cmake --preset dev -B "$place/build" -DBASCULE_TESTS=ON \
        "-DPython3_EXECUTABLE=$other_environment/bin/python" >/dev/null) || die "CMake could not configure $place/build"
    build "python-$version/build" bascule_python tests/python/{cache,dlpack,driver,trace}/all
    configure dev -DBASCULE_TESTS=ON
    build dev tests/bench/all tests/python/cache/all  # libraries that tests preload, for any Python
    import_from_build_tree "$other_environment" "$place/build"
}

# In .venv, or in another virtual environment, from build/dev or another build for the environment's Python.
import_from_build_tree() {
    local environment=${1:-$root/.venv} built=${2:-$root/build/dev} site_packages
    site_packages=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$built/python" >"$site_packages/bascule-build-dev.pth"
    # The script that pip would make of [project.scripts]. -P: the current directory has no modules of the command.
    printf '%s\n' '#!/bin/sh' '# PYTHON_ARGCOMPLETE_OK' \
        'exec "$(dirname -- "$(readlink -f -- "$0")")/python" -P -m bascule "$@"' >"$environment/bin/bascule"
    chmod +x "$environment/bin/bascule"
}
