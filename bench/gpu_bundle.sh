#!/usr/bin/env bash
# gpu_bundle.sh [FOLDER]: builds the preset portable and collects what gpu_check.sh takes to a machine with a GPU
# into FOLDER (build/gpu_check), at most 64 MiB: programs, scripts, data of the tests, the plug-in's source.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/gpu_check}

cmake --preset portable >/dev/null
cmake --build build/portable --target pruner device_test -j "$(nproc)"
tools/check_portable.sh build/portable/pruner build/portable/device_test

rm -rf "$folder"
mkdir -p "$folder/tests" "$folder/plugin/model/nn/torch"
cp build/portable/pruner build/portable/device_test bench/gpu_check.sh bench/gpu_check.py bench/gpu_peers.py "$folder"
cp src/model/nn/torch/plugin.* "$folder/plugin/model/nn/torch"
cp -r tests/deploy tests/codegen tests/golden "$folder/tests"
git describe --always --dirty >"$folder/version" 2>/dev/null || echo unknown >"$folder/version"

mib=$(($(du -s --apparent-size -B1 "$folder" | cut -f1) >> 20))
echo "$folder: $mib MiB"
[ "$mib" -lt 64 ]
