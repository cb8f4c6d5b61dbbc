/* The control register of a thread that says how it rounds, which exceptions trap, and whether
   subnormal numbers are computed with or taken for zeros: MXCSR on x86-64, FPCR on AArch64. An
   operation on a subnormal number costs many cores a hundred cycles more, so kernels flush such
   numbers. Reading and writing the register takes some nanoseconds. */
#ifndef PRUNER_RUNTIME_FLOAT_MODE_H_
#define PRUNER_RUNTIME_FLOAT_MODE_H_

#include <stdint.h>

/* Returns the calling thread's register; 0 on other processors. */
static inline uint64_t pruner_float_mode(void) {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

/* Sets the calling thread's register. */
static inline void pruner_set_float_mode(uint64_t mode) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr((uint32_t)mode);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
#else
  (void)mode;
#endif
}

/* Returns `mode` with subnormal numbers of float32 and float64 taken for zeros, as operands and as
   results. float16 keeps its subnormal numbers, which are as large as 6e-5: conversions on x86-64
   ignore the register, and on AArch64 the bit FZ16 stays as the caller has it. */
static inline uint64_t pruner_flushing(uint64_t mode) {
#if defined(__x86_64__)
  return mode | 0x8040; /* FTZ and DAZ */
#elif defined(__aarch64__)
  return mode | 1 << 24; /* FZ */
#else
  return mode;
#endif
}

/* Gives the calling thread the mode of another thread, without its sticky exception flags. A write
   is slower than a read, so an equal mode is not written. */
static inline void pruner_adopt_float_mode(uint64_t mode) {
#if defined(__x86_64__)
  const uint64_t flags = 0x3f;
#else
  const uint64_t flags = 0;
#endif
  const uint64_t own = pruner_float_mode();
  if (((own ^ mode) & ~flags) != 0) pruner_set_float_mode((mode & ~flags) | (own & flags));
}

#endif /* PRUNER_RUNTIME_FLOAT_MODE_H_ */
