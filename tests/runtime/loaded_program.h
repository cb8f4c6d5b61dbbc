// An artifact on the first device of its backend, with memory for its arguments.
#pragma once

#include <memory>
#include <vector>

#include "runtime/gpu_context.h"

namespace pruner {

class LoadedProgram {
 public:
  static Result<std::unique_ptr<LoadedProgram>> load(const Artifact& artifact) {
    auto loaded = std::make_unique<LoadedProgram>();
    TRY_ASSIGN(loaded->context_, GpuContext::open(artifact.backend, 0));
    TRY_ASSIGN(GpuProgram program, loaded->context_->load(artifact));
    loaded->program_.push_back(std::move(program));
    for (const Artifact::Argument& argument : artifact.arguments) {
      int64_t bytes = dtype_bytes(argument.dtype);
      for (const int64_t extent : argument.shape) bytes *= extent;
      TRY(loaded->add(bytes));
    }
    TRY(loaded->add(artifact.workspace_bytes));
    for (GpuBuffer& buffer : loaded->buffers_) loaded->arguments_.push_back(&buffer);
    return loaded;
  }

  Result<Unit> write_argument(size_t i, const void* from) { return buffers_[i].write(from); }
  Result<Unit> read_argument(size_t i, void* to) { return buffers_[i].read(to); }
  Result<double> run(int64_t times) { return program_.front().run(arguments_, times); }

 private:
  Result<Unit> add(int64_t bytes) {
    TRY_ASSIGN(GpuBuffer buffer, context_->allocate(bytes));
    buffers_.push_back(std::move(buffer));
    return Unit{};
  }

  std::unique_ptr<GpuContext> context_;  // outlives what follows
  std::vector<GpuProgram> program_;
  std::vector<GpuBuffer> buffers_;
  std::vector<GpuBuffer*> arguments_;
};

}  // namespace pruner
