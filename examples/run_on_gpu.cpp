// Runs a module for CUDA, which is loaded by its path, on tensors in the GPU's memory.
//
//   c++ -std=c++17 -Iinclude examples/run_on_gpu.cpp -lcuda -ldl -o run_on_gpu
//   ./run_on_gpu resnet_18.so
//
// Prints the first element of each output.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda_driver.h"
#include "pruner/module.hpp"

namespace {

void check(CUresult status, const char* call) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: CUDA's error %d\n", call, static_cast<int>(status));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

// Owns memory of the GPU for one tensor.
class DeviceTensor {
 public:
  explicit DeviceTensor(const PrunerTensorSpec& spec)
      : bytes_(static_cast<size_t>(pruner_spec_bytes(&spec))) {
    CHECK(cuMemAlloc(&address_, bytes_));
    const std::vector<char> zeros(bytes_);
    CHECK(cuMemcpyHtoDAsync(address_, zeros.data(), bytes_, nullptr));
    CHECK(cuStreamSynchronize(nullptr));
  }
  DeviceTensor(DeviceTensor&& other) noexcept : address_(other.address_), bytes_(other.bytes_) {
    other.address_ = 0;
  }
  ~DeviceTensor() {
    if (address_ != 0) CHECK(cuMemFree(address_));
  }
  void* address() const { return reinterpret_cast<void*>(address_); }
  float first() const {
    std::vector<char> host(bytes_ + sizeof(float));
    CHECK(cuMemcpyDtoHAsync(host.data(), address_, bytes_, nullptr));
    CHECK(cuStreamSynchronize(nullptr));
    float value = 0;
    std::memcpy(&value, host.data(), sizeof value);
    return value;
  }

 private:
  CUdeviceptr address_ = 0;
  size_t bytes_;
};

int run(const char* path, CUstream stream) {
  std::string error;
  PrunerOptions options = {};
  options.size = sizeof options;
  std::optional<pruner::Module> module = pruner::Module::load(path, options, &error);
  if (!module || module->device_kind() != PRUNER_CUDA) {
    std::fprintf(stderr, "%s\n", module ? "the module is not for CUDA" : error.c_str());
    return 1;
  }
  std::vector<DeviceTensor> tensors;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (int i = 0; i < module->num_inputs(); ++i)
    inputs.push_back(tensors.emplace_back(module->input(i)).address());
  for (int o = 0; o < module->num_outputs(); ++o)
    outputs.push_back(tensors.emplace_back(module->output(o)).address());
  const std::vector<uint8_t> on_device(tensors.size(), 1);

  PrunerRun run = {};
  run.size = sizeof run;
  run.flags = PRUNER_RUN_STREAM;
  run.inputs = inputs.data();
  run.outputs = outputs.data();
  run.inputs_on_device = run.outputs_on_device = on_device.data();
  run.stream = stream;
  if (!module->execute(run) || !module->wait()) {
    std::fprintf(stderr, "%s\n", module->error());
    return 1;
  }
  for (int o = 0; o < module->num_outputs(); ++o)
    std::printf("%s begins with %g\n", module->output(o).name, tensors[inputs.size() + o].first());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_on_gpu MODULE.so\n");
    return 2;
  }
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const int status = run(argv[1], stream);
  CHECK(cuStreamDestroy(stream));
  CHECK(cuDevicePrimaryCtxRelease(0));
  return status;
}
