/* The binary interface between generated kernels, the thread pool and whoever runs them. */
#ifndef PRUNER_KERNEL_H_
#define PRUNER_KERNEL_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs body over [0, n): each call covers [begin, end); calls may run at the same time. */
typedef void (*PrunerBody)(void* closure, int64_t begin, int64_t end);

typedef struct PrunerPool PrunerPool;
struct PrunerPool {
  /* Returns when all of [0, n) is done. With one thread or n == 1 the caller does everything. */
  void (*parallel_for)(PrunerPool* pool, PrunerBody body, void* closure, int64_t n);
  int32_t threads;
};

/* args: inputs (packed as the kernel says), then outputs; workspace: 64-byte aligned, as many bytes
   as the kernel says. */
typedef void (*PrunerKernel)(void* const* args, void* workspace, PrunerPool* pool);

/* A pool of `threads` threads, the caller included; NULL when it cannot be made. Its workers are
   started at once, spin briefly between calls and then sleep. Not reentrant: one caller at a time.
 */
PrunerPool* pruner_pool_create(int32_t threads, int32_t pin);
void pruner_pool_destroy(PrunerPool* pool);

#ifdef __cplusplus
}
#endif

#endif /* PRUNER_KERNEL_H_ */
