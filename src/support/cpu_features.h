// Asks whether this CPU has the features that code was made for. In C, because modules ask, too.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* The first word of `features` ("avx512f fma ...", LLVM's names) that this CPU lacks, its length in
 * length; NULL when it has all. The question for AMX's tiles asks the operating system for their
 * state, which must come before the first instruction on them. */
const char* pruner_missing_cpu_feature(const char* features, int* length);

#ifdef __cplusplus
}
#endif
