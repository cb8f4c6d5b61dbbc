#!/usr/bin/env bash
# gpu_check.sh OUT [OPTIONS]: what this project does on the GPU of a machine that has no network and none of
# its packages, in less than nine minutes. Takes the folder that gpu_bundle.sh made: where this file lies,
# build/gpu_check, or $BUNDLE. Needs Python 3, and torch to compare with. Writes OUT/gpu_check.tsv,
# OUT/records.json and OUT/gpu_check.log; the steps and options are gpu_check.py's.
set -uo pipefail
[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0"; exit 2; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bundle=${BUNDLE:-$here}
[ -x "$bundle/pruner" ] || bundle=$here/../build/gpu_check
if [ ! -x "$bundle/pruner" ]; then
  echo "no pruner in $here or build/gpu_check: make the folder with bench/gpu_bundle.sh" >&2
  exit 2
fi
mkdir -p "$1"
python=${PYTHON:-$(command -v python3 || true)}
if [ -z "$python" ]; then
  echo "no python3 here: gpu_check.py cannot run" | tee "$1/gpu_check.log" >&2
  exit 2
fi
# Its own limit is lower; this one is for a driver that hangs.
timeout -k 5 535 "$python" -u "$here/gpu_check.py" "$@" --bundle "$bundle" 2>&1 | tee "$1/gpu_check.log"
exit "${PIPESTATUS[0]}"
