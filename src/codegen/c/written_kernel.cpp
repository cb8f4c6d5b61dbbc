#include "codegen/c/written_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/nvrtc.h"
#include "support/ceil_div.h"

namespace pruner {

constexpr int64_t kThreads = 256;  // threads of a block

const Dialect& dialect_of(const Target& target) {
  return target.backend == Backend::kCuda ? kCudaC : kOpenClC;
}

Result<Artifact> compile_written_kernel(const std::string& name,
                                        const std::string& parameters,
                                        const std::string& body,
                                        int64_t units,
                                        std::vector<int> arguments,
                                        const Target& target) {
  CHECK(target.is_gpu());
  const Dialect& words = dialect_of(target);
  std::string source = fmt::format(
      "{0} {1}({2}) {{\n  const {3} i = ({3}){4} * {5} + {6};\n  if (i >= {7}) return;\n{8}}}\n",
      fmt::format(fmt::runtime(words.kernel), kThreads),
      name,
      parameters,
      words.int64,
      words.block,
      kThreads,
      words.thread,
      units,
      body);
  Artifact artifact;
  artifact.backend = target.backend;
  artifact.symbol = name;
  if (target.backend == Backend::kCuda) {
    TRY_ASSIGN(artifact.object, compile_to_cubin(source, target));
  } else {
    artifact.object = std::move(source);
  }
  artifact.launches = {{.kernel = name,
                        .blocks = std::max<int64_t>(ceil_div(units, kThreads), 1),
                        .threads = kThreads,
                        .arguments = std::move(arguments)}};
  return artifact;
}

}  // namespace pruner
