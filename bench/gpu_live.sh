#!/usr/bin/env bash
# gpu_live.sh FOLDER: makes the files for the live comparison on a GPU. FOLDER/pam_k80.safetensors has the weights that
# moa-pruner starts from: the published checkpoint in PRUNER_SHARED, in the format that the packed program reads.
# FOLDER/pruner has the cubins of each mode's first programs; PROGRAMS is the number of programs of a mode. The script
# needs build/release/pruner with training.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# = 1 ] || { sed -n '2,5s/^# //p' "$0"; exit 2; }
pruner=build/release/pruner
weights=$1/pam_k80.safetensors
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# No command only converts weights. A training with steps below the last bit of a float leaves the
# weights unchanged.
"$pruner" dataset collect --op 'matmul 128 128 128' --programs-per-task 32 -o "$scratch/records.json"
"$pruner" dataset make --records "$scratch/records.json" --min-sample-size 32 -o "$scratch/programs.ds"
"$pruner" fine-tune --dataset "$scratch/programs.ds" --epochs 1 --lr 1e-12 -o "$weights" \
  --load-model "${PRUNER_SHARED:-../shared}/data/pruner-checkpoints/pam_k80_1500.pth"
rm -f "${weights%.safetensors}".training.*
XDG_CACHE_HOME=$1 "$pruner" compare --network resnet_50 --target 'cuda --arch=sm_90' --modes ansor,pruner,moa-pruner \
  --load-model "moa-pruner=$weights" --seeds 1 --n-trials "${PROGRAMS:-64}" \
  --build-only "$scratch/first.bundle"
