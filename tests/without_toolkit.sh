#!/usr/bin/env bash
# Runs a command as on a machine without a CUDA toolkit: in a separate mount namespace, in which the directories of
# toolkits are empty, and with only PATH, HOME and LANG in the environment.
#
#   bash tests/without_toolkit.sh COMMAND [ARG...]
#
# Needs root, or user namespaces that the kernel allows.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
[ $# -gt 0 ] || die "usage: bash tests/without_toolkit.sh COMMAND [ARG...]"

# The directories of toolkits, links resolved, each once.
mapfile -t toolkits < <(for directory in /usr/local/cuda* /opt/cuda* ${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"}; do
    [ ! -d "$directory" ] || readlink -f -- "$directory"
done | sort -u)
as_root=(unshare --mount)
[ "$(id -u)" = 0 ] || as_root=(unshare --mount --map-root-user)
"${as_root[@]}" true 2>/dev/null || die "this machine allows no mount namespace: run it as root"

empty=$(mktemp -d)
trap 'rmdir "$empty"' EXIT
"${as_root[@]}" bash -c '
    empty=$1 count=$2
    shift 2
    for toolkit in "${@:1:$count}"; do mount --bind "$empty" "$toolkit"; done
    shift "$count"
    for library in $(ldconfig -p | sed -n "s/.*libnvrtc\.so.* => //p"); do
        [ ! -e "$library" ] || { echo "bascule: this machine has NVRTC outside a toolkit too: $library" >&2; exit 1; }
    done
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$HOME" LANG="${LANG:-C.UTF-8}" "$@"
' bash "$empty" ${#toolkits[@]} "${toolkits[@]}" "$@"
