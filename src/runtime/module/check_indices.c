#include "runtime/module/check_indices.h"

#include <stdint.h>

#include "runtime/module/fail.h"

static int64_t element(const PlanIndices* indices, const void* data, int64_t i) {
  return indices->element_bytes == 8 ? ((const int64_t*)data)[i] : ((const int32_t*)data)[i];
}

int pruner_check_indices(const PlanStep* step,
                         const PlanIndices* indices,
                         const int64_t* values,
                         const void* data) {
  const int64_t elements = plan_number(values, indices->range.bytes) / indices->element_bytes;
  for (int64_t i = 0; i < elements; i++) {
    const int64_t index = element(indices, data, i);
    const int64_t extent = plan_number(values, indices->extents[i % indices->num_extents]);
    if (index >= -extent && index < extent) continue;
    return pruner_fail("%s: \"%s\" holds the index %lld, expected one in [%lld, %lld]",
                       step->spec.name,
                       indices->name,
                       (long long)index,
                       (long long)-extent,
                       (long long)extent - 1);
  }
  return 1;
}
