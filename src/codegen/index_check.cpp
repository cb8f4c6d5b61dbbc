#include "codegen/index_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/c/dialect.h"
#include "codegen/cuda/nvrtc.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

constexpr int64_t kThreads = 256;
constexpr char kName[] = "check_indices";

std::string source_of(const IndexCheck& check, const Dialect& words) {
  const char* const element = check.element_bytes == 8 ? words.int64 : "int";
  const std::string kernel = fmt::format(fmt::runtime(words.kernel), kThreads);
  return fmt::format(
      R"({kernel} {name}(const {global}{element}*{restricted} indices, {global}{element}*{restricted} checked, {global}{int64}*{restricted} word) {{
  const {int64} i = ({int64}){block} * {threads} + {thread};
  const {int64} extents[] = {{{extents}}};
  if (i >= {count}) return;
  const {int64} extent = extents[i % {num_extents}];
  const {int64} lowest = {lowest};
  {int64} index = indices[i];
  if (index < lowest || index >= extent) {{
    *word = index == 0 ? 1 : index;
    index = extent == 0 ? 0 : index < lowest ? lowest : extent - 1;
  }}
  checked[i] = ({element})index;
}}
)",
      fmt::arg("kernel", kernel),
      fmt::arg("name", kName),
      fmt::arg("global", words.global),
      fmt::arg("element", element),
      fmt::arg("restricted", words.restricted),
      fmt::arg("int64", words.int64),
      fmt::arg("block", words.block),
      fmt::arg("threads", kThreads),
      fmt::arg("thread", words.thread),
      fmt::arg("extents", fmt::join(check.extents, ", ")),
      fmt::arg("count", check.count),
      fmt::arg("num_extents", check.extents.size()),
      fmt::arg("lowest", check.from_end ? "-extent" : "0"));
}

}  // namespace

Result<Artifact> compile_index_check(const IndexCheck& check, const Target& target) {
  CHECK(target.is_gpu() && !check.extents.empty());
  Artifact artifact;
  artifact.backend = target.backend;
  artifact.symbol = kName;
  if (target.backend == Backend::kCuda) {
    TRY_ASSIGN(artifact.object, compile_to_cubin(source_of(check, kCudaC), target));
  } else {
    artifact.object = source_of(check, kOpenClC);
  }
  const DType dtype = check.element_bytes == 8 ? DType::kInt64 : DType::kInt32;
  artifact.arguments = {{dtype, {check.count}, false, {}},
                        {dtype, {check.count}, true, {}},
                        {DType::kInt64, {1}, true, {}}};
  artifact.launches = {{.kernel = kName,
                        .blocks = std::max<int64_t>(ceil_div(check.count, kThreads), 1),
                        .threads = kThreads,
                        .arguments = {0, 1, 2}}};
  return artifact;
}

}  // namespace pruner
