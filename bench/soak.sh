#!/usr/bin/env bash
# soak.sh [TIMES [BUILD]]: makes long runs, by hand. Modules are loaded, run and unloaded TIMES
# times. Then a search has as many trials. Each minute the script prints MB of memory, file
# descriptors and trials of the search; memory and descriptors must stay flat. A search of 10,000
# trials takes about 20 minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
times=${1:-10000} build=${2:-build/release}

PRUNER_SOAK=$times "$build/deploy_test_codegen" --gtest_filter='LongRun.*'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/pruner" tune --op 'matmul 256 256 256' --n-trials "$times" --work-dir "$work/run" \
  >"$work/out" 2>"$work/err" &
tuner=$!
while kill -0 "$tuner" 2>/dev/null; do
  megabytes=$(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$tuner/status" 2>/dev/null || true)
  descriptors=$(ls "/proc/$tuner/fd" 2>/dev/null | wc -l)
  trials=$(cat "$work/run/records.json" 2>/dev/null | wc -l)
  printf '%s\t%s\t%s\n' "${megabytes:-}" "$descriptors" "$trials"
  sleep 60
done
wait "$tuner"
tail -2 "$work/out"
