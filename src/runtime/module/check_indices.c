#include "runtime/module/check_indices.h"

#include <stdint.h>

#include "runtime/module/fail.h"

static int64_t element(const PlanIndices* indices, const void* data, int64_t i) {
  return indices->element_bytes == 8 ? ((const int64_t*)data)[i] : ((const int32_t*)data)[i];
}

int pruner_check_indices(const PlanStep* step, const PlanIndices* indices, const void* data) {
  const int64_t elements = indices->range.bytes / indices->element_bytes;
  for (int64_t i = 0; i < elements; i++) {
    const int64_t index = element(indices, data, i);
    if (index >= -indices->bound && index < indices->bound) continue;
    return pruner_fail("%s: \"%s\" holds the index %lld, expected one in [%lld, %lld]",
                       step->spec.name,
                       indices->name,
                       (long long)index,
                       (long long)-indices->bound,
                       (long long)indices->bound - 1);
  }
  return 1;
}
