// Runs a module of float tensors on ones, from C++. Build and use:
//   c++ -std=c++17 -Iinclude examples/run_module.cpp -ldl -o run_module
//   ./run_module model.so
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "pruner/module.hpp"

static std::vector<float> ones(const PrunerTensorSpec& spec) {
  return std::vector<float>(
      static_cast<size_t>(
          std::accumulate(spec.shape, spec.shape + spec.rank, int64_t{1}, std::multiplies<>())),
      1.0f);
}

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s MODULE.so\n", argv[0]), 2;
  std::string error;
  std::optional<pruner::Module> module = pruner::Module::load(argv[1], 0, &error);
  if (!module) return std::fprintf(stderr, "%s\n", error.c_str()), 1;

  std::vector<std::vector<float>> tensors;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (int i = 0; i < module->num_inputs(); ++i) {
    if (module->input(i).dtype != PRUNER_FLOAT32) {
      return std::fprintf(stderr, "input %s is not of floats\n", module->input(i).name), 1;
    }
    inputs.push_back(tensors.emplace_back(ones(module->input(i))).data());
  }
  for (int i = 0; i < module->num_outputs(); ++i) {
    if (module->output(i).dtype != PRUNER_FLOAT32) {
      return std::fprintf(stderr, "output %s is not of floats\n", module->output(i).name), 1;
    }
    outputs.push_back(tensors.emplace_back(ones(module->output(i))).data());
  }
  if (!module->run(inputs.data(), outputs.data())) {
    return std::fprintf(stderr, "%s\n", module->error()), 1;
  }
  for (int i = 0; i < module->num_outputs(); ++i) {
    const std::vector<float>& output = tensors[static_cast<size_t>(module->num_inputs() + i)];
    if (!output.empty()) std::printf("%s starts with %g\n", module->output(i).name, output[0]);
  }
}
