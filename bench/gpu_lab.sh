#!/usr/bin/env bash
# gpu_lab.sh SECONDS OUT [ROW...]: runs the next rows of the ledger that fit, on a machine with a
# GPU. The script lies in part1 of the folder that `gpu_lab.py pack` made, and also takes the parts
# beside part1 that have arrived. OUT gets gpu_ledger.tsv with the rows that ran, and visit.tar.xz
# with all that the rows wrote.
set -euo pipefail
lab=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
if [ ! -f "$lab/part1/tools.tar.xz" ]; then
  echo "no tools.tar.xz in $lab/part1: make the parts with bench/gpu_lab.py pack" >&2
  exit 2
fi
here=$lab/here # folder of the unpacked archives
for packed in "$lab"/part[0-9]*/*.tar.xz; do
  name=$(basename "$packed" .tar.xz)
  folder=$here/prepared/$name
  [ "$name" != tools ] || folder=$here
  [ ! "$folder/.arrived" -nt "$packed" ] || continue
  mkdir -p "$folder"
  "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$packed" "$folder"
  touch "$folder/.arrived"
done
exec "$python" -u "$here/gpu_lab.py" run "$@"
