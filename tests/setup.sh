# Sourced by samples/run.sh, tests/run.sh and .ci/run: brings a clone to the state in which everything can run.
# Whatever is there already is left alone, so the second time takes seconds.
#
# BASCULE_CMAKE_ARGS   further arguments for CMake's first configuration, split at spaces
# BASCULE_HOST_PYTHON  the interpreter to make .venv with (default: the first python3 >= 3.11 found)
# CI                   set and not empty: warnings are errors

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
venv_python=$root/.venv/bin/python
debian_packages=(g++ cmake ninja-build pkg-config nlohmann-json3-dev doctest-dev libfmt-dev libmpfr-dev libxxhash-dev
                 python3 python3-venv python3-dev git)

say() { printf 'bascule: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Installs those of the named Debian packages that are missing.
install_debian_packages() {
    command -v dpkg-query >/dev/null || { say "no Debian or Ubuntu: expecting to find what ${debian_packages[*]} provide"; return; }
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

# Prints the first Python that is new enough and can make virtual environments and extension modules.
find_host_python() {
    local candidate
    for candidate in ${BASCULE_HOST_PYTHON:+"$BASCULE_HOST_PYTHON"} python3 python3.{14,13,12,11} /usr/bin/python3; do
        "$candidate" - <<'PY' >/dev/null 2>&1 && { printf '%s\n' "$candidate"; return; }
import ensurepip, os, sys, sysconfig, venv
sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))))
PY
    done
    die "no Python >= 3.11 with venv and headers was found; name one: BASCULE_HOST_PYTHON=/path/to/python3"
}

# .venv with exactly what tests/requirements.txt says.
make_virtual_environment() {
    if ! "$venv_python" -c '' 2>/dev/null; then
        local host
        host=$(find_host_python) || exit 1
        say "making the virtual environment .venv with $("$host" --version)"
        "$host" -m venv --clear "$root/.venv" || die "python -m venv failed; see its message above"
    fi
    local wanted installed=$root/.venv/installed-requirements
    wanted=$(sha256sum <"$root/tests/requirements.txt")
    [ "$wanted" = "$(cat "$installed" 2>/dev/null)" ] && return
    say "installing tests/requirements.txt into .venv"
    "$venv_python" -m pip install -q --disable-pip-version-check -r "$root/tests/requirements.txt" \
        || die "pip could not install tests/requirements.txt; see its message above"
    printf '%s\n' "$wanted" >"$installed"
}

# Configures build/PRESET once (again when the clone was moved, or when other arguments are asked for).
configure() {
    local preset=$1 build=$root/build/$1 arguments=()
    read -ra arguments <<<"${BASCULE_CMAKE_ARGS:-}"
    [ -z "${CI:-}" ] || arguments+=(-DBASCULE_WERROR=ON)
    local stamp=$build/configured-with
    if [ -f "$build/build.ninja" ] && grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
        [ ${#arguments[@]} -gt 0 ] && [ "${arguments[*]}" != "$(cat "$stamp" 2>/dev/null)" ] || return 0
    else
        rm -rf -- "$build"
    fi
    say "configuring build/$preset ${arguments[*]}"
    (cd "$root" && cmake --preset "$preset" "${arguments[@]}") >/dev/null || die "CMake could not configure build/$preset"
    printf '%s\n' "${arguments[*]}" >"$stamp"
}

# Builds build/PRESET; silent when nothing has changed.
build() {
    local preset=$1 jobs
    jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
    configure "$preset"
    local todo
    todo=$(ninja -C "$root/build/$preset" -n 2>/dev/null | grep -c '^\[')
    [ "$todo" -gt 0 ] || return 0
    say "building build/$preset ($todo steps)"
    ninja -C "$root/build/$preset" -j "$jobs" $([ -t 2 ] || echo --quiet) >&2 || die "the build of build/$preset failed"
}

# Everything up to a .venv/bin/python that can `import bascule` from the build tree.
set_up() {
    install_debian_packages "${debian_packages[@]}"
    make_virtual_environment
    build dev
    local site_packages
    site_packages=$("$venv_python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$root/build/dev/python" >"$site_packages/bascule-build-dev.pth"
}
