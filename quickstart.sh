#!/usr/bin/env bash
# From a fresh Debian 12 to a tuned ResNet-50: installs what is missing, LibTorch for the learned
# model included, builds, tunes for three minutes, and times the module that comes out. Everything
# it makes lies in build/ and out/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/packages.sh

install_packages $build_packages $training_packages
cmake --preset release
cmake --build build/release --target pruner -j "$(nproc)"

pruner=build/release/pruner
"$pruner" tune --network resnet_50 --budget "${BUDGET:-3m}" --work-dir out
"$pruner" compile --network resnet_50 --records out/records.json -o out/resnet_50.so
"$pruner" bench --module out/resnet_50.so
