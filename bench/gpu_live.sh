#!/usr/bin/env bash
# gpu_live.sh FOLDER: what the live comparison on a GPU takes: in FOLDER, weights that moa-pruner starts from
# (pam_k80.safetensors, of the published checkpoint in PRUNER_SHARED, as the packed program reads them), and in
# FOLDER/pruner the cubins of each mode's first programs (PROGRAMS: so many of each mode). Takes build/release/pruner,
# which trains.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# = 1 ] || { sed -n '2,5s/^# //p' "$0"; exit 2; }
pruner=build/release/pruner
weights=$1/pam_k80.safetensors
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# There is no command that only converts weights: a training whose steps are smaller than a float's last bit does.
"$pruner" dataset collect --op 'matmul 128 128 128' --programs-per-task 32 -o "$scratch/records.json"
"$pruner" dataset make --records "$scratch/records.json" --min-sample-size 32 -o "$scratch/programs.ds"
"$pruner" fine-tune --dataset "$scratch/programs.ds" --epochs 1 --lr 1e-12 -o "$weights" \
  --load-model "${PRUNER_SHARED:-../shared}/data/pruner-checkpoints/pam_k80_1500.pth"
rm -f "${weights%.safetensors}".training.*
XDG_CACHE_HOME=$1 "$pruner" compare --network resnet_50 --target 'cuda --arch=sm_90' --modes ansor,pruner,moa-pruner \
  --load-model "moa-pruner=$weights" --seeds 1 --n-trials "${PROGRAMS:-64}" \
  --build-only "$scratch/first.bundle"
