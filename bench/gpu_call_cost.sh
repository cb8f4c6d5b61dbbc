#!/bin/bash
# Measures what a call of a module for CUDA costs the host, beyond the driver: the driver here is a
# stub whose calls return at once. No GPU is needed; NVRTC is.
#
#   [PRECISION=f16] bench/gpu_call_cost.sh PROGRAM [NETWORK ...]
#
# Prints, for each network, the kernel launches of a run and the microseconds of a call on tensors of
# the device in a stream: replayed (the same tensors each time), and launched (always others).
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1
shift
[ $# -gt 0 ] || set -- resnet_50 bert_base
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat > "$folder/stub.c" <<'C'
#include <stddef.h>
#include <stdint.h>
static uintptr_t next = 1 << 20;
#define SIMPLE(name) int name(void) { return 0; }
SIMPLE(cuInit) SIMPLE(cuDevicePrimaryCtxRelease_v2) SIMPLE(cuCtxPushCurrent_v2)
SIMPLE(cuStreamDestroy_v2) SIMPLE(cuStreamSynchronize) SIMPLE(cuStreamWaitEvent)
SIMPLE(cuMemFree_v2) SIMPLE(cuMemFreeHost) SIMPLE(cuModuleUnload) SIMPLE(cuFuncSetAttribute)
SIMPLE(cuMemcpyHtoDAsync_v2) SIMPLE(cuMemcpyDtoHAsync_v2) SIMPLE(cuMemcpyDtoDAsync_v2)
SIMPLE(cuMemsetD8Async) SIMPLE(cuEventDestroy_v2) SIMPLE(cuEventRecord) SIMPLE(cuEventSynchronize)
SIMPLE(cuStreamBeginCapture_v2) SIMPLE(cuGraphDestroy) SIMPLE(cuGraphLaunch) SIMPLE(cuGraphExecDestroy)
long launches;
int cuLaunchKernel(void) { launches++; return 0; }
static int give(void** to) { *to = (void*)(next += 4096); return 0; }
int cuDriverGetVersion(int* v) { *v = 12040; return 0; }
int cuGetErrorString(int s, const char** t) { *t = "none"; return s * 0; }
int cuDeviceGetCount(int* n) { *n = 1; return 0; }
int cuDeviceGet(int* d, int n) { *d = n; return 0; }
int cuDeviceGetName(char* n, int s, int d) { n[0] = 's'; n[s > 1] = 0; return d * 0; }
int cuDeviceGetPCIBusId(char* n, int s, int d) { n[0] = '0'; n[s > 1] = 0; return d * 0; }
int cuDeviceTotalMem_v2(size_t* b, int d) { *b = (size_t)1 << 36; return d * 0; }
int cuDeviceGetAttribute(int* v, int a, int d) {
  *v = a == 75 ? 9 : a == 76 ? 0 : a == 97 ? 232448 : 1024;
  return d * 0;
}
int cuDevicePrimaryCtxRetain(void** c, int d) { *c = (void*)64; return d * 0; }
int cuCtxPopCurrent_v2(void** c) { *c = (void*)64; return 0; }
int cuStreamCreate(void** s, unsigned f) { (void)f; return give(s); }
int cuStreamGetCtx(void* s, void** c) { (void)s; *c = (void*)64; return 0; }
int cuStreamIsCapturing(void* s, int* c) { (void)s; *c = 0; return 0; }
int cuMemAlloc_v2(uint64_t* a, size_t b) { *a = (next += 4096); next += (b + 511) / 512 * 512; return 0; }
int cuPointerGetAttribute(int* v, int a, uint64_t p) { (void)p; *v = a == 2 ? 2 : 0; return 0; }
int cuMemHostAlloc(void** m, size_t b, unsigned f) { extern void* calloc(size_t, size_t); (void)f; *m = calloc(b, 1); return 0; }
int cuModuleLoadData(void** m, const void* i) { (void)i; return give(m); }
int cuModuleGetFunction(void** f, void* m, const char* n) { (void)m, (void)n; return give(f); }
int cuEventCreate(void** e, unsigned f) { (void)f; return give(e); }
int cuEventElapsedTime(float* t, void* a, void* b) { (void)a, (void)b; *t = 1; return 0; }
int cuStreamEndCapture(void* s, void** g) { (void)s; return give(g); }
int cuGraphInstantiateWithFlags(void** e, void* g, unsigned long long f) { (void)g, (void)f; return give(e); }
C
cat > "$folder/call.c" <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "pruner/module.h"
extern long launches;
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static int by_value(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}
int main(int argc, char** argv) {
  enum { kCalls = 2001 };
  static double us[2][kCalls];
  PrunerOptions options = {.size = sizeof options};
  PrunerModule* module = pruner_module_create_with(&options);
  if (module == NULL) return puts(pruner_module_error()), 1;
  const PrunerPhase* phase = pruner_module_phase(0);
  const int64_t count = phase->num_inputs + phase->num_outputs;
  uint64_t tensors[64];
  uint8_t there[64];
  for (int64_t t = 0; t < count; t++) tensors[t] = (uint64_t)(t + 1) << 32, there[t] = 1;
  PrunerRun run = {.size = sizeof run, .flags = PRUNER_RUN_STREAM, .inputs = (void*)tensors,
                   .outputs = (void*)(tensors + phase->num_inputs), .inputs_on_device = there,
                   .outputs_on_device = there, .stream = (void*)4096};
  long once = launches;
  if (pruner_module_execute(module, &run)) return puts(pruner_module_error()), 1;
  once = launches - once;
  for (int moved = 0; moved < 2; moved++) {
    for (int i = 0; i < kCalls; i++) {
      if (moved) tensors[0] += 512;
      const double start = now();
      if (pruner_module_execute(module, &run)) return puts(pruner_module_error()), 1;
      us[moved][i] = 1e6 * (now() - start);
    }
    qsort(us[moved], kCalls, sizeof(double), by_value);
  }
  printf("%s\t%ld\t%.2f\t%.2f\n", argv[argc - 1], once, us[0][kCalls / 2], us[1][kCalls / 2]);
  return 0;
}
C
cc -O2 -shared -fPIC -w -Wl,-soname,libcuda.so.1 "$folder/stub.c" -o "$folder/libcuda.so.1"
printf 'network\tlaunches\treplayed_us\tlaunched_us\n'
for network in "$@"; do
  "$program" compile --network "$network" --target 'cuda --arch=sm_90' \
    --precision "${PRECISION:-f32}" -o "$folder/$network.so" > "$folder/log" 2>&1
  cc -O2 -w -Iinclude "$folder/call.c" "$folder/$network.so" "$folder/libcuda.so.1" -Wl,-rpath,"$folder" -o "$folder/call"
  "$folder/call" "$network"
done
