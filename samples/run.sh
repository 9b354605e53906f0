#!/usr/bin/env bash
# Runs a sample: the main one, or `samples/run.sh NAME [ARG...]`. The first time it installs and builds what it needs. A
# notebook becomes a page, ./out/NAME.html.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../tests/setup.sh"

name=${1:-edges}
[ $# -eq 0 ] || shift
if [ -f "$root/samples/$name.py" ]; then
    set_up_sample bascule_python
    exec "$venv_python" "$root/samples/$name.py" "$@"
elif [ -f "$root/samples/cpp/$name.cpp" ]; then
    set_up_sample "$name"
    exec "$root/build/dev/samples/$name" "$@"
elif [ -f "$root/samples/notebooks/$name.ipynb" ]; then
    set_up_sample bascule_python
    make_virtual_environment tests  # which has nbconvert
    exec "$venv_python" -m nbconvert --execute --to html --output-dir out "$root/samples/notebooks/$name.ipynb" "$@"
fi
samples=$(cd "$root/samples" && for file in *.py cpp/*.cpp notebooks/*.ipynb; do
    [ -f "$file" ] && printf ' %s' "$(basename "${file%.*}")"
done)
die "there is no sample '$name'; there are:$samples"
