#!/usr/bin/env bash
# gpu_check.sh OUT [OPTIONS]: checks this project on a GPU in less than nine minutes. The machine needs Python 3,
# but no network and no packages of this project; torch is compared if it is there. The folder of gpu_bundle.sh is
# the folder of this file, build/gpu_check, or $BUNDLE. The script writes OUT/gpu_check.tsv, OUT/records.json and
# OUT/gpu_check.log. gpu_check.py describes the steps and options.
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
# gpu_check.py has a lower limit of its own; the limit here is for a driver that hangs.
timeout -k 5 535 "$python" -u "$here/gpu_check.py" "$@" --bundle "$bundle" 2>&1 | tee "$1/gpu_check.log"
exit "${PIPESTATUS[0]}"
