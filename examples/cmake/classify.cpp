// Runs the module that CMakeLists.txt links on an image of ones: the class that it likes best.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "pruner/module.h"

static size_t elements(const PrunerTensorSpec* spec) {
  size_t n = 1;
  for (int32_t d = 0; d < spec->rank; ++d) n *= static_cast<size_t>(spec->shape[d]);
  return n;
}

static bool is_of_floats(const PrunerTensorSpec* spec) { return spec->dtype == PRUNER_FLOAT32; }

int main() {
  if (pruner_module_num_inputs() != 1 || pruner_module_num_outputs() != 1 ||
      !is_of_floats(pruner_module_input(0)) || !is_of_floats(pruner_module_output(0))) {
    return std::fprintf(stderr, "expected one input and one output of floats\n"), 1;
  }
  PrunerModule* module = pruner_module_create(0);
  if (module == nullptr) return std::fprintf(stderr, "%s\n", pruner_module_error()), 1;
  const std::vector<float> image(elements(pruner_module_input(0)), 1.0f);
  std::vector<float> scores(elements(pruner_module_output(0)));
  const void* inputs[] = {image.data()};
  void* outputs[] = {scores.data()};
  const int32_t failed = pruner_module_run(module, inputs, outputs);
  if (failed != 0) std::fprintf(stderr, "%s\n", pruner_module_error());
  pruner_module_destroy(module);
  const auto best = std::max_element(scores.begin(), scores.end());
  if (failed == 0) std::printf("class %d of %zu\n", static_cast<int>(best - scores.begin()), scores.size());
  return failed;
}
