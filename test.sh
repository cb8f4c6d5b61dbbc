#!/usr/bin/env bash
# Builds the preset release and runs every check and test; ctest's summary comes last. Arguments go
# to ctest: ./test.sh -L unit
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/packages.sh

install_packages $build_packages $training_packages $test_packages
tools/check.sh

# The peers that networks are compared with; without them that test is left out.
python=""
if tools/venv.sh build/venv bench/requirements.txt; then
  python=$PWD/build/venv/bin/python
else
  echo "the Python packages of bench/requirements.txt cannot be installed: networks are not" \
    "compared with ONNX Runtime"
fi
cmake --preset release -DPRUNER_PEERS_PYTHON="$python"
cmake --build build/release -j "$(nproc)"
ctest --test-dir build/release --output-on-failure -j2 "$@"
