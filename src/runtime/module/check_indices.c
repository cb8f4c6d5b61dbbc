#include "runtime/module/check_indices.h"

#include <stdint.h>

#include "runtime/module/fail.h"

static int64_t element(const PlanIndices* indices, const void* data, int64_t i) {
  return indices->element_bytes == 8 ? ((const int64_t*)data)[i] : ((const int32_t*)data)[i];
}

enum { kBlock = 256 }; /* elements that are looked at together */

/* Whether elements [i, end) are places of one extent: without a branch, so that it is vectorized.
 */
static int all_inside(
    const PlanIndices* indices, const void* data, int64_t i, int64_t end, int64_t extent) {
  const int64_t lowest = indices->from_end ? -extent : 0;
  int outside = 0;
  if (indices->element_bytes == 8) {
    for (const int64_t* all = data; i < end; i++) outside |= all[i] < lowest || all[i] >= extent;
  } else {
    for (const int32_t* all = data; i < end; i++) outside |= all[i] < lowest || all[i] >= extent;
  }
  return !outside;
}

int pruner_check_indices(const PlanStep* step,
                         const PlanIndices* indices,
                         const int64_t* values,
                         const void* data) {
  const int64_t elements = plan_number(values, indices->range.bytes) / indices->element_bytes;
  for (int64_t i = 0; i < elements; i++) {
    const int64_t extent = plan_number(values, indices->extents[i % indices->num_extents]);
    if (indices->num_extents == 1 && i % kBlock == 0) {
      const int64_t end = i + kBlock < elements ? i + kBlock : elements;
      if (all_inside(indices, data, i, end, extent)) {
        i = end - 1;
        continue;
      }
    }
    const int64_t index = element(indices, data, i);
    const int64_t lowest = indices->from_end ? -extent : 0;
    if (index >= lowest && index < extent) continue;
    return pruner_fail("%s: \"%s\" holds the index %lld, expected one in [%lld, %lld]",
                       step->spec.name,
                       indices->name,
                       (long long)index,
                       (long long)lowest,
                       (long long)extent - 1);
  }
  return 1;
}
