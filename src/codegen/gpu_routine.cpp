#include "codegen/gpu_routine.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/dialect.h"
#include "codegen/cuda/nvrtc.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

constexpr int64_t kThreads = 256;
constexpr char kName[] = "routine";

// UpdateState, by PrunerUpdateState. A thread writes a unit of a row: as many bytes as divide the
// row, up to 8. The output may be the state, of which the other rows then stay as they are.
std::string update_state(std::span<const int64_t> p, const Dialect& words, int64_t& units) {
  const int64_t batch = p[1], blocks = p[2], extent = p[3], rows = p[4], row_bytes = p[5];
  int64_t unit = 8;
  while (row_bytes % unit != 0) unit /= 2;
  const char* const types[] = {words.byte, words.bits16, words.uint32, words.uint64};
  const int64_t columns = row_bytes / unit;
  units = batch * blocks * extent * columns;
  return fmt::format(
      R"({kernel} {name}(const {global}{unit}* state, const {global}{unit}* updates, const {global}{index}* first, {global}{unit}* out) {{
  const {int64} i = ({int64}){block} * {threads} + {thread};
  if (i >= {units}) return;
  const {int64} column = i % {columns}, row = i / {columns} % {extent}, block = i / {block_units};
  {int64} place = row - first[block / {blocks}];
  if ({circular} && place < 0) place += {extent};
  if (place >= 0 && place < {rows}) out[i] = updates[(block * {rows} + place) * {columns} + column];
  else if (out != state) out[i] = state[i];
}}
)",
      fmt::arg("kernel", fmt::format(fmt::runtime(words.kernel), kThreads)),
      fmt::arg("name", kName),
      fmt::arg("global", words.global),
      fmt::arg("unit", types[unit == 8 ? 3 : unit / 2]),
      fmt::arg("index", static_cast<DType>(p[0]) == DType::kInt64 ? words.int64 : "int"),
      fmt::arg("int64", words.int64),
      fmt::arg("block", words.block),
      fmt::arg("threads", kThreads),
      fmt::arg("thread", words.thread),
      fmt::arg("units", units),
      fmt::arg("columns", columns),
      fmt::arg("extent", extent),
      fmt::arg("block_units", extent * columns),
      fmt::arg("blocks", blocks),
      fmt::arg("circular", p[6]),
      fmt::arg("rows", rows));
}

}  // namespace

Result<Artifact> compile_gpu_routine(std::string_view symbol,
                                     std::span<const int64_t> parameters,
                                     const Target& target) {
  CHECK(target.is_gpu());
  if (symbol != "pruner_update_state") return Error(symbol, " has no code for GPUs");
  const bool cuda = target.backend == Backend::kCuda;
  int64_t units = 0;
  std::string source = update_state(parameters, cuda ? kCudaC : kOpenClC, units);
  Artifact artifact;
  artifact.backend = target.backend;
  if (cuda) {
    TRY_ASSIGN(artifact.object, compile_to_cubin(source, target));
  } else {
    artifact.object = std::move(source);
  }
  artifact.launches = {{.kernel = kName,
                        .blocks = std::max<int64_t>(ceil_div(units, kThreads), 1),
                        .threads = kThreads,
                        .arguments = {0, 1, 2, 4}}};
  return artifact;
}

}  // namespace pruner
