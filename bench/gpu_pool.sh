#!/usr/bin/env bash
# gpu_pool.sh uniform|drafted f32|f16 BUNDLE: builds programs of the pool's tasks for sm_90: 15 tasks in float32 on CUDA
# cores, or 9 tasks in float16 on tensor cores. Each task has 400 programs that are drawn uniformly, or 100 that the
# draft chooses; PROGRAMS changes the number. NVRTC compiles a few programs a second on two cores, and has a cache.
set -euo pipefail
usage() { sed -n '2,4s/^# //p' "$0"; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pruner=${PRUNER:-build/release/pruner}
tasks=()
case ${2:-} in
  f32)
    tasks=(
      # The operators of the paper.
      "matmul 1024 1024 1024" "batch_matmul 32 512 512 64" "conv2d 1 64 112 112 3 7 7 stride=2 padding=3 +bias +relu"
      "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu" "softmax 4096 1024"
      # ResNet-50.
      "conv2d 1 256 56 56 64 1 1 +bias +residual +relu" "conv2d 1 128 28 28 128 3 3 padding=1 +bias +relu"
      "conv2d 1 512 28 28 128 1 1 +bias +residual +relu" "conv2d 1 256 14 14 256 3 3 padding=1 +bias +relu"
      "conv2d 1 512 7 7 512 3 3 padding=1 +bias +relu"
      # BERT-base.
      "dense 128 768 768 +bias" "dense 128 3072 768 +bias +gelu" "layernorm 128 768"
      # MobileNet-v2.
      "depthwise_conv2d 1 144 56 56 3 3 padding=1 +bias +relu" "conv2d 1 24 56 56 144 1 1 +bias"
    ) ;;
  f16)
    tasks=(
      "matmul 1024 1024 1024" "batch_matmul 32 512 512 64" "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu"
      "conv2d 1 256 14 14 256 3 3 padding=1 +bias +relu" "conv2d 1 512 7 7 512 3 3 padding=1 +bias +relu"
      "conv2d 1 256 14 14 1024 1 1 +bias +relu" "dense 128 768 768 +bias" "dense 128 3072 768 +bias +gelu"
      "dense 128 768 3072 +bias"
    )
    for i in "${!tasks[@]}"; do
      case ${tasks[i]} in *" +"*) tasks[i]=${tasks[i]/ +/ bits=16 +} ;; *) tasks[i]+=" bits=16" ;; esac
      tasks[i]+=" +f16" # results are float16, like torch's
    done ;;
esac
if [ ${#tasks[@]} = 0 ] || [ $# != 3 ]; then usage; fi
operators=()
for task in "${tasks[@]}"; do operators+=(--op "$task"); done
records=$(mktemp -d)
trap 'rm -rf "$records"' EXIT
case ${1:-} in
  uniform)
    "$pruner" dataset collect "${operators[@]}" --target 'cuda --arch=sm_90' --eps-greedy 1 \
      --programs-per-task "${PROGRAMS:-400}" -o "$records/records.json" --build-only "$3" ;;
  drafted)
    "$pruner" tune "${operators[@]}" --target 'cuda --arch=sm_90' --psa h100 --cost-model draft-only \
      --n-trials $((${PROGRAMS:-100} * ${#tasks[@]})) --work-dir "$records/out" --build-only "$3" ;;
  *) usage ;;
esac
