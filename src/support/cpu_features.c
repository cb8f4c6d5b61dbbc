/* Asks this CPU for the features that a module's code was made for, by LLVM's names. Words that are
 * not in the table (tuning flags, what no kernel uses) count as there. */
#include "support/cpu_features.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Feature::word: the register of CPUID's answer that has the bit. Feature::state: registers that
   the operating system must save, without which the feature must not be used. */
enum { kEax, kEbx, kEcx, kEdx };
enum { kYmm = 0x06, kZmm = 0xe6, kTiles = 0x60000 }; /* XCR0: SSE, AVX; AVX-512's three; AMX */

typedef struct {
  const char* name;
  uint32_t leaf, subleaf; /* EAX and ECX of the question to CPUID */
  uint8_t word, bit;
  uint32_t state;
} Feature;

static const Feature kFeatures[] = {
    {"sse3", 1, 0, kEcx, 0, 0},
    {"ssse3", 1, 0, kEcx, 9, 0},
    {"fma", 1, 0, kEcx, 12, kYmm},
    {"sse4.1", 1, 0, kEcx, 19, 0},
    {"sse4.2", 1, 0, kEcx, 20, 0},
    {"movbe", 1, 0, kEcx, 22, 0},
    {"popcnt", 1, 0, kEcx, 23, 0},
    {"avx", 1, 0, kEcx, 28, kYmm},
    {"f16c", 1, 0, kEcx, 29, kYmm},
    {"bmi", 7, 0, kEbx, 3, 0},
    {"avx2", 7, 0, kEbx, 5, kYmm},
    {"bmi2", 7, 0, kEbx, 8, 0},
    {"avx512f", 7, 0, kEbx, 16, kZmm},
    {"avx512dq", 7, 0, kEbx, 17, kZmm},
    {"adx", 7, 0, kEbx, 19, 0},
    {"avx512ifma", 7, 0, kEbx, 21, kZmm},
    {"avx512cd", 7, 0, kEbx, 28, kZmm},
    {"avx512bw", 7, 0, kEbx, 30, kZmm},
    {"avx512vl", 7, 0, kEbx, 31, kZmm},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmm},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmm},
    {"gfni", 7, 0, kEcx, 8, 0},
    {"avx512vnni", 7, 0, kEcx, 11, kZmm},
    {"avx512bitalg", 7, 0, kEcx, 12, kZmm},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kZmm},
    {"amx-bf16", 7, 0, kEdx, 22, kTiles},
    {"avx512fp16", 7, 0, kEdx, 23, kZmm},
    {"amx-tile", 7, 0, kEdx, 24, kTiles},
    {"amx-int8", 7, 0, kEdx, 25, kTiles},
    {"avxvnni", 7, 1, kEax, 4, kYmm},
    {"avx512bf16", 7, 1, kEax, 5, kZmm},
    {"amx-fp16", 7, 1, kEax, 21, kTiles},
    {"lzcnt", 0x80000001, 0, kEcx, 5, 0},
};

/* Linux gives a process the state of tiles when it asks (arch_prctl(2): 0x1023 is
   ARCH_REQ_XCOMP_PERM, 18 the component); what it forks inherits that. */
static int may_use_tiles(void) { return syscall(SYS_arch_prctl, 0x1023, 18) == 0; }

/* The low half of XCR0, bit i for state component i; 0 where the operating system does not let
   XGETBV be called (OSXSAVE, CPUID.1:ECX bit 27). */
static uint32_t saved_state(void) {
  uint32_t r[4];
  if (!__get_cpuid(1, &r[kEax], &r[kEbx], &r[kEcx], &r[kEdx]) || !(r[kEcx] >> 27 & 1)) return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/* A leaf that this CPU does not know means that it lacks the feature. */
static int has(const Feature* f) {
  uint32_t r[4];
  if (!__get_cpuid_count(f->leaf, f->subleaf, &r[kEax], &r[kEbx], &r[kEcx], &r[kEdx])) return 0;
  if (!(r[f->word] >> f->bit & 1) || (saved_state() & f->state) != f->state) return 0;
  return f->state != kTiles || may_use_tiles();
}

static int has_word(const char* word, size_t length) {
  for (size_t i = 0; i < sizeof kFeatures / sizeof kFeatures[0]; i++) {
    const char* name = kFeatures[i].name;
    if (strlen(name) == length && memcmp(name, word, length) == 0) return has(&kFeatures[i]);
  }
  return 1;
}
#elif defined(__aarch64__)
#include <sys/auxv.h>

/* Bits of the first two words that the kernel says of the hardware (its <asm/hwcap.h>). */
typedef struct {
  const char* name;
  uint8_t word, bit;
} Feature;

static const Feature kFeatures[] = {
    {"fp-armv8", 0, 0},
    {"neon", 0, 1},
    {"aes", 0, 3},
    {"sha2", 0, 6},
    {"crc", 0, 7},
    {"lse", 0, 8},
    {"rdm", 0, 12},
    {"fullfp16", 0, 10},
    {"rcpc", 0, 15},
    {"dotprod", 0, 20},
    {"sve", 0, 22},
    {"fp16fml", 0, 23},
    {"sve2", 1, 1},
    {"i8mm", 1, 13},
    {"bf16", 1, 14},
};

static int has_word(const char* word, size_t length) {
  const unsigned long words[] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  for (size_t i = 0; i < sizeof kFeatures / sizeof kFeatures[0]; i++) {
    const Feature* f = &kFeatures[i];
    if (strlen(f->name) == length && memcmp(f->name, word, length) == 0)
      return words[f->word] >> f->bit & 1;
  }
  return 1;
}
#else
static int has_word(const char* word, size_t length) {
  (void)word, (void)length;
  return 1;
}
#endif

const char* pruner_missing_cpu_feature(const char* features, int* length) {
  while (*features != '\0') {
    const size_t n = strcspn(features, " ");
    *length = (int)n;
    if (n > 0 && !has_word(features, n)) return features;
    features += n + (features[n] != '\0');
  }
  return NULL;
}
