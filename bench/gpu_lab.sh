#!/usr/bin/env bash
# gpu_lab.sh SECONDS OUT [ROW...]: the next rows of the ledger that fit, on a machine with a GPU; what came of them is in
# OUT/gpu_ledger.tsv. Runs in the folder that `gpu_lab.py pack` made, or in build/gpu_lab beside it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lab=$here
[ -x "$lab/pruner" ] || lab=$here/../build/gpu_lab
if [ ! -x "$lab/pruner" ]; then
  echo "no pruner in $here or build/gpu_lab: make the folder with bench/gpu_lab.py pack" >&2
  exit 2
fi
exec "${PYTHON:-python3}" -u "$lab/gpu_lab.py" run "$@"
