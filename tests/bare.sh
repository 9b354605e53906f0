#!/usr/bin/env bash
# Runs both commands of the README with the commit HEAD on a bare Debian: a chroot that debootstrap makes, with no compiler,
# Python or CUDA toolkit in it, and no variables but PATH, HOME and LANG. Prints for each command its exit status, wall
# time, CPU seconds, warnings and failed tests. Exits with 1 unless both exit with 0 without a warning or a failed test.
#   tests/bare.sh bookworm|trixie [--keep]   as root, with network; --keep leaves the chroot in build/bare/SUITE
#
# BASCULE_BARE_BASE  a tree that `debootstrap --variant=minbase` has made of the suite; it is copied, which takes seconds
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"

usage='usage: tests/bare.sh bookworm|trixie [--keep]'
suite=${1:-} keep=${2:-}
[[ $suite =~ ^(bookworm|trixie)$ && $keep =~ ^(--keep)?$ && $# -le 2 ]] || die "$usage"
[ "$(id -u)" = 0 ] || die "tests/bare.sh makes a chroot and mounts /proc and /dev in it; run it as root"
install_debian_packages debootstrap debian-archive-keyring

# In a separate mount namespace, so that no mount outlives this script, however it ends.
if [ -z "${BASCULE_BARE_NAMESPACE:-}" ]; then
    BASCULE_BARE_NAMESPACE=1 exec unshare --mount --propagation private bash "$0" "$@"
fi

logs=$root/build/bare
tree=$logs/$suite
home=/srv  # of the chroot's user
clone="a directory/bascule"  # below it

unmount_all() {
    local mounted
    for mounted in dev/shm dev/pts dev proc; do
        ! mountpoint -q "$tree/$mounted" || umount -l "$tree/$mounted"
    done
}

remove_tree() {
    unmount_all
    rm -rf --one-file-system -- "$tree"
}

finish() {
    if [ -n "$keep" ]; then unmount_all; else remove_tree; fi
}

mount_all() {
    mount -t proc proc "$tree/proc" &&
        mount -t tmpfs -o mode=755,nosuid tmpfs "$tree/dev" || return 1
    local device
    for device in null zero full random urandom tty; do
        touch "$tree/dev/$device" && mount --bind "/dev/$device" "$tree/dev/$device" || return 1
    done
    mkdir "$tree/dev/pts" "$tree/dev/shm" &&
        mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$tree/dev/pts" &&
        mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$tree/dev/shm" &&
        ln -s pts/ptmx "$tree/dev/ptmx" &&
        ln -s /proc/self/fd "$tree/dev/fd" &&
        ln -s fd/0 "$tree/dev/stdin" && ln -s fd/1 "$tree/dev/stdout" && ln -s fd/2 "$tree/dev/stderr"
}

# in_chroot COMMAND: runs a shell command with the variables of a login shell only.
in_chroot() {
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=$home LANG=C.UTF-8 \
        chroot "$tree" bash -c "$1" </dev/null
}

# A proxy that the host trusts may be between the chroot and the package index.
copy_certificates() {
    local bundle=/etc/ssl/certs/ca-certificates.crt
    [ -f "$bundle" ] || return 0
    cp -- "$bundle" "$tree$bundle" &&
        printf '[global]\ncert = %s\n' "$bundle" >"$tree/etc/pip.conf"
}

make_tree() {
    remove_tree
    mkdir -p "$logs"
    if [ -n "${BASCULE_BARE_BASE:-}" ]; then
        say "copying $BASCULE_BARE_BASE to build/bare/$suite"
        cp -a -- "$BASCULE_BARE_BASE" "$tree"
    else
        say "making a bare $suite in build/bare/$suite"
        debootstrap --variant=minbase "$suite" "$tree" >"$logs/$suite-debootstrap.log" 2>&1
    fi || die "the bare $suite could not be made; see build/bare/$suite-debootstrap.log"
    rm -f "$tree/etc/resolv.conf"
    cp -L /etc/resolv.conf "$tree/etc/resolv.conf" && mount_all || die "build/bare/$suite cannot be mounted"
    in_chroot 'export DEBIAN_FRONTEND=noninteractive
        apt-get update -q && apt-get install -y -q --no-install-recommends git ca-certificates' \
        >>"$logs/$suite-debootstrap.log" 2>&1 && copy_certificates ||
        die "git could not be installed there; see build/bare/$suite-debootstrap.log"
    git clone -q --no-hardlinks -- "$root" "$tree$home/$clone" && chown -R 0:0 "$tree$home/$clone" ||
        die "the clone could not be cloned"
}

# add_up PATTERN LOG: the sum of the numbers at the start of the matches in the log, such as `5 tests failed`.
add_up() { grep -oE -- "$1" "$2" | awk '{ total += $1 } END { print total + 0 }'; }

# run_command NAME: runs bash NAME/run.sh in the clone and adds a row to `rows`. Fails where the script should.
run_command() {
    local name=$1 log=$logs/$suite-$1.log wall user system status warnings failures
    say "$suite: bash $name/run.sh; its output is in build/bare/$suite-$name.log too"
    in_chroot "cd ~/'$clone' || exit
        TIMEFORMAT='bare: %0R %0U %0S'
        time bash $name/run.sh" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    read -r wall user system < <(sed -n 's/^bare: //p' "$log")
    # Warnings of compilers, linkers and pip; CMake; apt; pytest's summary. update-alternatives warns that minbase has
    # no manual pages, and the samples warn that there is no GPU, as an EmulatedDeviceWarning.
    warnings=$(($(grep -v '^update-alternatives:' "$log" | grep -ciE '\bwarning:|CMake (Deprecation )?Warning|^W: ') +
                $(add_up '[0-9]+ warnings? in ' "$log")))
    failures=$(($(add_up '[0-9]+ tests failed out of' "$log") + $(add_up '[0-9]+ (failed|errors?)\b.* in [0-9.]+s' "$log")))
    rows+=("$(printf '%-8s %-20s rc %d, %4d s, %4d s of CPU, %d warnings, %d failed tests' "$suite" "bash $name/run.sh" \
        "$status" "$wall" $((user + system)) "$warnings" "$failures")")
    [ "$status" = 0 ] && [ "$warnings" = 0 ] && [ "$failures" = 0 ]
}

trap finish EXIT
trap 'exit 130' INT TERM HUP
make_tree
rows=() verdict=0
run_command samples || verdict=1
run_command tests || verdict=1
printf '%s\n' "${rows[@]}"
[ -z "$keep" ] || say "the chroot stays in build/bare/$suite; enter it with: chroot build/bare/$suite"
exit $verdict
