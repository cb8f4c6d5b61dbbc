#!/usr/bin/env bash
# Builds the preset release and runs every check and test; ctest's summary comes last. Arguments go
# to ctest: ./test.sh -L unit, and leave out what runs under sanitizers.
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
# Address and undefined-behaviour sanitizers: half a minute of each fuzz target, and the unit tests of layers
# that read a user's bytes. Without optimization and LLVM, which nothing of it calls: a third of the time to build.
if [ $# = 0 ]; then
  sanitized="support_test target_test tensor_test record_test"
  cmake --preset asan -DCMAKE_BUILD_TYPE=None -DPRUNER_LLVM=OFF
  # shellcheck disable=SC2086
  cmake --build build/asan -j "$(nproc)" --target fuzz_targets $sanitized
  (
    ulimit -Ss 262144 || true # kB: frames are several times as large
    ctest --preset asan -j2 --no-tests=error -L fuzz
    for program in $sanitized; do "build/asan/$program" --gtest_brief=1 --gtest_filter="-*Public*"; done
  )
  # The pool of threads; tools/sanitize.sh has the rest.
  cmake --preset tsan -DCMAKE_BUILD_TYPE=None
  cmake --build build/tsan -j "$(nproc)" --target runtime_test
  ctest --preset tsan -j2 --no-tests=error -R '^(ThreadPool|GuardedBuffer)'
fi

# Who goes on from here compiles file by file; what is built once, several at a time.
unity=""
[ "${CI:-}" != true ] || [ -e build/release ] || unity=-DPRUNER_UNITY=ON
cmake --preset release -DPRUNER_PEERS_PYTHON="$python" $unity
cmake --build build/release -j "$(nproc)"
ctest --test-dir build/release --output-on-failure --no-tests=error -j2 "$@"
