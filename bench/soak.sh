#!/usr/bin/env bash
# Long runs, by hand: modules that are loaded, run and unloaded TIMES times, and a search of as many
# trials, whose memory and descriptors are printed each minute (MB, descriptors, trials) and must
# stay flat. soak.sh [TIMES [BUILD]]; a search takes about 20 minutes for 10,000 trials.
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
