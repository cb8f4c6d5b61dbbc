#include "measure/kernel_arguments.h"

#include <utility>

#include "tensor/pack.h"

namespace pruner {

namespace {

Result<GuardedBuffer> make_unwritten(int64_t bytes) {
  TRY_ASSIGN(GuardedBuffer buffer, GuardedBuffer::make(bytes));
  buffer.fill(kUnwritten);
  return buffer;
}

// A writable input's own copy: pages that a child writes to are copied one by one otherwise, 4 KiB
// each, which takes longer than all of its timing and leaves the input without huge pages.
Result<GuardedBuffer> make_copy(const GuardedBuffer& input) {
  TRY_ASSIGN(GuardedBuffer buffer, GuardedBuffer::make(input.bytes()));
  buffer.copy_from(input.data());
  buffer.make_read_only();
  return buffer;
}

}  // namespace

Result<GuardedBuffer> make_packed(const Tensor& input, const PackSpec& spec) {
  TRY_ASSIGN(GuardedBuffer buffer,
             GuardedBuffer::make(spec.packed_bytes(input.dtype(), input.shape())));
  pack_into(input, spec, buffer.data());
  buffer.make_read_only();
  return buffer;
}

Result<KernelArguments> make_arguments(const Workload& workload, const Artifact& artifact) {
  const size_t inputs = workload.inputs.size(), outputs = workload.outputs.size();
  if (artifact.arguments.size() != inputs + outputs) {
    return Error(
        "the kernel has ", artifact.arguments.size(), " arguments, the task ", inputs + outputs);
  }
  KernelArguments result;
  result.owned.reserve(artifact.arguments.size() + 1);  // `arguments` points into it
  for (size_t i = 0; i < artifact.arguments.size(); ++i) {
    const Artifact::Argument& argument = artifact.arguments[i];
    const bool as_it_is = i < inputs && argument.pack.identity();
    if (as_it_is && workload.constant[i]) {
      result.arguments.push_back(&workload.buffers[i]);
    } else {
      TRY_ASSIGN(GuardedBuffer buffer,
                 as_it_is     ? make_copy(workload.buffers[i])
                 : i < inputs ? make_packed(workload.inputs[i], argument.pack)
                              : make_unwritten(workload.outputs[i - inputs].bytes()));
      result.owned.push_back(std::move(buffer));
      result.arguments.push_back(&result.owned.back());
    }
    const int64_t bytes = result.arguments.back()->bytes();
    if (bytes != argument_bytes(artifact, static_cast<int>(i))) {
      return Error(argument_name(artifact, static_cast<int>(i)),
                   " is ",
                   argument_bytes(artifact, static_cast<int>(i)),
                   " bytes to the kernel, ",
                   bytes,
                   " to the task");
    }
    result.pointers.push_back(result.arguments.back()->data());
  }
  TRY_ASSIGN(GuardedBuffer workspace, make_unwritten(artifact.workspace_bytes));
  result.owned.push_back(std::move(workspace));
  return result;
}

int64_t argument_bytes(const Artifact& artifact, int i) {
  if (i >= static_cast<int>(artifact.arguments.size())) return artifact.workspace_bytes;
  const Artifact::Argument& argument = artifact.arguments[i];
  int64_t bytes = dtype_bytes(argument.dtype);
  for (const int64_t extent : argument.shape) bytes *= extent;
  return bytes;
}

std::string argument_name(const Artifact& artifact, int i) {
  if (i >= static_cast<int>(artifact.arguments.size())) return "the workspace";
  int inputs = 0;
  for (const Artifact::Argument& argument : artifact.arguments) inputs += !argument.output;
  const Artifact::Argument& argument = artifact.arguments[i];
  const std::string number = std::to_string(argument.output ? i - inputs : i);
  return (argument.output ? "output " : "input ") + number + " (" +
         print_type(argument.dtype, argument.shape) + ")";
}

}  // namespace pruner
