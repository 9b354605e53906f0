#!/usr/bin/env bash
# Rehearses a run on a GPU, with the emulated device in the driver's place: copies what tests/gpu/pack.sh made out of
# the clone, and runs tests/gpu/run.sh there in a bare Python 3.12 without a network.
#
#   bash tests/gpu/rehearse.sh [--quick] [OPTION...]     the options go to tests/gpu/run.sh
#
# The device claims to be an H100, so that kernels for compute capability 9.0 run too. Without options both commands run,
# --first and then --second, with their limits four times as long: this device is slower. --quick: the first piece and the
# tests of conformance and of graphs. Every test must pass or say why it is skipped; of the tests of order, conformance and
# graphs, at least two thirds of those that a GPU used to skip must run.
set -uo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../setup.sh"
options=()
for argument in "$@"; do
    if [ "$argument" = --quick ]; then options+=(--only first,conformance,graphs); else options+=("$argument"); fi
done
pack=$root/build/gpu/pack
[ -d "$pack/wheels" ] || die "there is no $pack: bash tests/gpu/pack.sh makes it"
place=$(mktemp -d "${TMPDIR:-/tmp}/bascule-rehearsal-XXXXXX")
trap 'rm -rf -- "$place"' EXIT

# A Python 3.12 with the usual packages of such machines: among them NVRTC with its headers, and the linker of its version.
bare=$root/build/gpu/bare
wanted=$(grep -hiE '^(numpy|pytest|hypothesis|nvidia-cuda-(nvrtc|runtime|crt|cccl))==' "$root"/{samples,tests}/requirements.txt)
wanted+=$'\n'nvidia-nvjitlink==$(sed -n 's/^nvidia-cuda-nvrtc==//p' "$root/samples/requirements.txt")
if [ "$(cat "$bare/installed" 2>/dev/null)" != "$wanted" ]; then
    "$root/build/gpu/python/bin/python" -m venv --clear "$bare" &&
        mapfile -t names <<<"$wanted" && "$bare/bin/python" -m pip install -q --disable-pip-version-check "${names[@]}" &&
        printf '%s\n' "$wanted" >"$bare/installed" || die "the bare environment could not be made"
fi

# Copies the pack outside of the clone, to a directory whose name has a space.
cp -r -- "$pack" "$place/unpacked pack"
mkdir "$place/driver"
# Keeps the current user if that is allowed: the loop takes the first form that works.
for alone in 'unshare --net' 'unshare --net --map-root-user' ''; do
    read -ra alone <<<"$alone"
    "${alone[@]}" true 2>/dev/null && break
done
[ ${#alone[@]} -gt 0 ] || say "unshare makes no namespace here: the network stays within reach"
say "rehearsing in $place with $("$bare/bin/python" --version), ${alone[*]:+without a network, }the emulated device as the driver"

# Uses the emulated device of the wheel as the driver; the loader looks for its name.
"$bare/bin/python" - "$place" <<'PY' || die "the pack has no emulated device"
import sys, zipfile
from pathlib import Path
place = Path(sys.argv[1])
(wheel,) = place.glob("unpacked pack/wheels/bascule-*.whl")
(place / "driver" / "libcuda.so.1").write_bytes(zipfile.ZipFile(wheel).read("bascule/libbascule_emulator.so"))
PY
# rehearse OPTION...: runs what a machine with a GPU would run.
rehearse() {
    env -u PYTHONPATH -u PYTHONHOME -u CUDA_HOME -u CUDA_PATH PATH="$bare/bin:/usr/bin:/bin" HOME="$place" \
        LD_LIBRARY_PATH="$place/driver" BASCULE_DEVICE=cuda BASCULE_EMULATED_ARCH=90a BASCULE_EMULATED_SCHEDULE=threads \
        OUT="$place/results" BASCULE_GPU_TIME_SCALE="${BASCULE_GPU_TIME_SCALE:-4}" ${alone[@]+"${alone[@]}"} \
        bash "$place/unpacked pack/tests/gpu/run.sh" --logs "$place/logs" "$@" "$bare/bin/python"
}
status=0
if [ ${#options[@]} -gt 0 ]; then
    rehearse "${options[@]}" || status=1
else
    rehearse --first || status=1
    rehearse --second || status=1
fi
files=$(find "$place/results" -type f | wc -l)
[ "$files" -le 8 ] || { say "$files files would go home, more than 8"; status=1; }
rm -rf -- "$root/build/gpu/results"
cp -r -- "$place/results" "$root/build/gpu/results" || die "the run has left no results"
# The first command alone has none of the directories whose skipped tests are counted.
[ "${options[0]:-}" = --first ] || "$venv_python" "$root/tests/check_results.py" --gpu "$root"/build/gpu/results/*/results.json || status=1
exit $status
