#!/usr/bin/env bash
# Builds the preset release and runs every check and test; ctest's summary comes last. Arguments go
# to ctest, for example ./test.sh -L unit. With arguments no tests run under sanitizers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/packages.sh

install_packages $build_packages $training_packages $test_packages
tools/check.sh

# Networks are compared with the peers in these packages. Without the packages that test is left
# out.
python=""
if tools/venv.sh build/venv bench/requirements.txt; then
  python=$PWD/build/venv/bin/python
else
  echo "the Python packages of bench/requirements.txt cannot be installed: networks are not" \
    "compared with ONNX Runtime"
fi
# Fuzz targets (half a minute each) and the unit tests of layers that read a user's bytes run under
# the address and undefined-behaviour sanitizers. The build is without optimization and without
# LLVM, which these tests do not call. The build then takes a third of the time.
if [ $# = 0 ]; then
  sanitized="support_test target_test tensor_test record_test"
  cmake --preset asan -DCMAKE_BUILD_TYPE=None -DPRUNER_LLVM=OFF
  # shellcheck disable=SC2086
  cmake --build build/asan -j "$(nproc)" --target fuzz_targets $sanitized
  (
    ulimit -Ss 262144 || true # in kB; stack frames are several times as large under sanitizers
    ctest --preset asan -j2 --no-tests=error -L fuzz
    for program in $sanitized; do "build/asan/$program" --gtest_brief=1 --gtest_filter="-*Public*"; done
  )
  # The thread pool is tested here; tools/sanitize.sh runs the other tests under tsan.
  cmake --preset tsan -DCMAKE_BUILD_TYPE=None
  cmake --build build/tsan -j "$(nproc)" --target runtime_test
  ctest --preset tsan -j2 --no-tests=error -R '^(ThreadPool|GuardedBuffer)'
fi

# A fresh build of CI compiles several files at a time (unity). Other builds compile file by file,
# because developers change single files next.
unity=""
[ "${CI:-}" != true ] || [ -e build/release ] || unity=-DPRUNER_UNITY=ON
cmake --preset release -DPRUNER_PEERS_PYTHON="$python" $unity
cmake --build build/release -j "$(nproc)"
ctest --test-dir build/release --output-on-failure --no-tests=error -j2 "$@"
