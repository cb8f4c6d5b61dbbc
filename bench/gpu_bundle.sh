#!/usr/bin/env bash
# gpu_bundle.sh [FOLDER]: builds the preset portable, and collects in FOLDER (build/gpu_check) the
# files that gpu_check.sh needs on a machine with a GPU, at most 64 MiB. The files are programs,
# scripts, data of the tests, and the source of the plug-in. lib/ has xgboost, which the mode
# metaschedule needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/gpu_check}

cmake --preset portable >/dev/null
cmake --build build/portable --target pruner device_test -j "$(nproc)"

rm -rf "$folder"
mkdir -p "$folder/lib" "$folder/tests"
xgboost=$(ldconfig -p | awk '$1 == "libxgboost.so.0" {path = $NF} END {print path}')
[ -n "$xgboost" ] || { echo "no libxgboost.so.0 here: apt-get install libxgboost-dev" >&2; exit 2; }
for library in "$xgboost" $(ldd "$xgboost" | awk '$1 ~ /^lib(gomp|dmlc)\./ {print $3}'); do
  strip -o "$folder/lib/$(basename "$library")" "$library"
done
cp build/portable/pruner build/portable/device_test bench/gpu_check.sh bench/gpu_check.py bench/gpu_peers.py "$folder"
cmake --install build/portable --component plugin_source --prefix "$folder" >/dev/null
cp -r tests/deploy tests/codegen tests/golden "$folder/tests"
tools/check_portable.sh "$folder/pruner" "$folder/device_test" "$folder"/lib/*
git describe --always --dirty >"$folder/version" 2>/dev/null || echo unknown >"$folder/version"

mib=$(($(du -s --apparent-size -B1 "$folder" | cut -f1) >> 20))
echo "$folder: $mib MiB"
[ "$mib" -lt 64 ]
