#!/usr/bin/env bash
# Runs a sample: the main job, or `samples/run.sh NAME [ARG...]`. The first time it installs and builds what it needs.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../tests/setup.sh"
set_up

name=${1:-edges}
[ $# -eq 0 ] || shift
if [ -f "$root/samples/$name.py" ]; then
    exec "$venv_python" "$root/samples/$name.py" "$@"
elif [ -x "$root/build/dev/samples/$name" ]; then
    exec "$root/build/dev/samples/$name" "$@"
fi
samples=$(cd "$root/samples" && for file in *.py cpp/*.cpp; do [ -f "$file" ] && printf ' %s' "$(basename "${file%.*}")"; done)
die "there is no sample '$name'; there are:$samples"
