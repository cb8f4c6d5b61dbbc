#!/usr/bin/env bash
# Tunes a ResNet-50 on a fresh Debian 12. The script installs missing packages, also LibTorch for
# the learned model, builds the program, tunes for three minutes, and times the module. All results
# lie in build/ and out/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/packages.sh

install_packages $build_packages $training_packages
cmake --preset release
cmake --build build/release --target pruner -j "$(nproc)"

pruner=build/release/pruner
"$pruner" tune --network resnet_50 --budget "${BUDGET:-3m}" --work-dir out
"$pruner" bench --module out/resnet_50.so
