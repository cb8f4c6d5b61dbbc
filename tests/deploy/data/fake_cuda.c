/* A CUDA driver of which a launch computes nothing, and checks what it is given: memory that was
   allocated, 16-byte aligned, in a context that is current. FAKE_SM: its arch (80); FAKE_MEMORY: its
   bytes; FAKE_GPUS: how many devices (1). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kInvalid = 1, kOutOfMemory = 2, kNoContext = 201, kMaxBlocks = 256 };

static struct {
  char* at;
  size_t bytes;
} blocks[kMaxBlocks];
static int num_blocks, depth, streams, retained;
static size_t used;

static long setting(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text != NULL ? atol(text) : otherwise;
}

static int is_inside(uint64_t address, size_t bytes) {
  const char* at = (const char*)(uintptr_t)address;
  for (int i = 0; i < num_blocks; i++) {
    const char* begin = blocks[i].at;
    if (begin != NULL && at >= begin && at + bytes <= begin + blocks[i].bytes) return 1;
  }
  return 0;
}

int cuInit(unsigned flags) { return flags == 0 ? 0 : kInvalid; }
int cuGetErrorString(int status, const char** text) {
  *text = status == kOutOfMemory ? "out of memory" : "what a fake says";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = (int)setting("FAKE_GPUS", 1);
  return 0;
}
int cuDeviceGet(int* device, int number) {
  *device = 7;
  return number == 0 ? 0 : kInvalid;
}
int cuDeviceGetName(char* name, int size, int device) {
  snprintf(name, (size_t)size, "Fake GPU");
  return device == 7 ? 0 : kInvalid;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const int sm = (int)setting("FAKE_SM", 80);
  *value = attribute == 75 ? sm / 10 : sm % 10;
  return device == 7 && (attribute == 75 || attribute == 76) ? 0 : kInvalid;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &retained;
  retained++;
  return device == 7 ? 0 : kInvalid;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  if (device != 7 || --retained != 0 || depth != 0 || streams != 0 || used != 0) abort();
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  depth++;
  return context == &retained ? 0 : kInvalid;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = &retained;
  return --depth >= 0 ? 0 : kInvalid;
}
int cuStreamCreate(void** stream, unsigned flags) {
  *stream = &streams;
  streams++;
  return depth > 0 && flags == 1 ? 0 : kNoContext;
}
int cuStreamDestroy_v2(void* stream) {
  streams--;
  return depth > 0 && stream == &streams ? 0 : kNoContext;
}
int cuStreamSynchronize(void* stream) { return depth > 0 && stream == &streams ? 0 : kNoContext; }
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  if (depth == 0 || bytes == 0 || num_blocks == kMaxBlocks) return kInvalid;
  if (used + bytes > (size_t)setting("FAKE_MEMORY", 1L << 40)) return kOutOfMemory;
  char* at = aligned_alloc(512, (bytes + 511) / 512 * 512);
  blocks[num_blocks].at = at;
  blocks[num_blocks++].bytes = bytes;
  used += bytes;
  *address = (uint64_t)(uintptr_t)at;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  for (int i = 0; i < num_blocks; i++) {
    if (blocks[i].at == NULL || (uint64_t)(uintptr_t)blocks[i].at != address) continue;
    used -= blocks[i].bytes;
    free(blocks[i].at);
    blocks[i].at = NULL;
    return depth > 0 ? 0 : kNoContext;
  }
  return kInvalid;
}
int cuModuleLoadData(void** program, const void* image) {
  *program = (void*)image;
  return depth > 0 && memcmp(image, "\177ELF", 4) == 0 ? 0 : 200;
}
int cuModuleUnload(void* program) { return program != NULL ? 0 : kInvalid; }
int cuModuleGetFunction(void** kernel, void* program, const char* name) {
  *kernel = program;
  return strncmp(name, "kernel_", 7) == 0 ? 0 : 500;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  if (depth == 0 || stream != &streams || !is_inside(to, bytes)) return kInvalid;
  memcpy((void*)(uintptr_t)to, from, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  if (depth == 0 || stream != &streams || !is_inside(from, bytes)) return kInvalid;
  memcpy(to, (const void*)(uintptr_t)from, bytes);
  return 0;
}
int cuLaunchKernel(void* kernel,
                   unsigned blocks_x,
                   unsigned blocks_y,
                   unsigned blocks_z,
                   unsigned threads_x,
                   unsigned threads_y,
                   unsigned threads_z,
                   unsigned shared_bytes,
                   void* stream,
                   void** arguments,
                   void** extra) {
  if (depth == 0 || kernel == NULL || stream != &streams || extra != NULL) return kInvalid;
  if (blocks_x == 0 || blocks_y != 1 || blocks_z != 1 || shared_bytes != 0) return kInvalid;
  if (threads_x == 0 || threads_x > 1024 || threads_y != 1 || threads_z != 1) return kInvalid;
  const uint64_t first = *(const uint64_t*)arguments[0];
  return is_inside(first, 1) && first % 16 == 0 ? 0 : kInvalid;
}
