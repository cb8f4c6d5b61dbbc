#!/usr/bin/env bash
# Runs the tests of all layers under the address and undefined-behaviour sanitizers. Then runs the
# tests of threaded code under the thread sanitizer. The script is run by hand, and takes about an
# hour on two cores; test.sh runs a part of these tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/packages.sh
install_packages $build_packages $training_packages $test_packages
failed=""

# Stack frames are several times as large under sanitizers.
ulimit -Ss 262144 || true # kB
layers="support target tensor record graph lower space analysis codegen measure runtime deploy search tune cli
  model ansor dataset report transfer fleet"
programs="codegen_test_codegen measure_test_codegen deploy_test_codegen cli_test_codegen"
for layer in $layers; do programs="$programs ${layer}_test"; done
cmake --preset asan -DCMAKE_BUILD_TYPE=None -DPRUNER_LLVM=ON
# shellcheck disable=SC2086
cmake --build build/asan -j "$(nproc)" --target $programs
# A sanitizer's report is a failure; a failed test is not. Some tests measure memory or time, or
# need parts that this build leaves out.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in $programs; do
  echo "$program"
  ASAN_OPTIONS=handle_segv=0 timeout 1800 "build/asan/$program" --gtest_brief=1 >"$log" 2>&1 || true
  if grep -E 'ERROR: (Address|Leak)Sanitizer|runtime error:' "$log"; then
    tail -40 "$log"
    failed="$failed asan:$program"
  elif ! grep -qE '^\[==========\] [1-9][0-9]* tests? from .* ran' "$log"; then
    tail -40 "$log"
    failed="$failed unfinished:$program" # the program ran no test, or not all tests
  fi
done

# Tests that the thread sanitizer cannot follow are left out: a fork of a process with threads,
# tests that need the sanitizer's own memory, and kernels of the emulated driver that leave by a
# signal.
programs="support_test runtime_test measure_test deploy_test_codegen runtime_test_cuda_fake measure_test_cuda_fake
  deploy_test_cuda_fake fakes_test_cuda_fake fleet_test fleet_test_cuda_fake"
cmake --preset tsan -DCMAKE_BUILD_TYPE=None -DPRUNER_LLVM=ON
# shellcheck disable=SC2086
cmake --build build/tsan -j "$(nproc)" --target $programs
ctest --preset tsan -j2 --no-tests=error -R '^(ThreadPool|ParallelFor|LocalMeasurer|CudaMeasurer|FleetMeasurer|LocalBroker|OwnWorkers|Runner|Frame|Timing|KernelCheck|BuildModule|LoadModule|LoadedModule|LongRun|Languages|VerifyTest|Fake)' \
  -E 'LongRun.(LoadsRunsAndUnloads|AfterFork)|FakeDriver.FindsWhatIs|FakeCuda.*Candidates' || failed="$failed tsan"

[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
