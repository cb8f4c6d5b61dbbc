#include "codegen/gpu_routine.h"

#include <fmt/format.h>

#include "codegen/c/written_kernel.h"

namespace pruner {

// UpdateState, by PrunerUpdateState. A thread writes a unit of a row: as many bytes as divide the
// row, up to 8. The output may be the state, whose other rows then stay as they are.
static Result<Artifact> update_state(std::span<const int64_t> p, const Target& target) {
  const int64_t batch = p[1], blocks = p[2], extent = p[3], rows = p[4], row_bytes = p[5];
  const Dialect& words = dialect_of(target);
  int64_t unit = 8;
  while (row_bytes % unit != 0) unit /= 2;
  const char* const types[] = {words.byte, words.bits16, words.uint32, words.uint64};
  const int64_t columns = row_bytes / unit;
  const std::string parameters =
      fmt::format("const {0}{1}* state, const {0}{1}* updates, const {0}{2}* first, {0}{1}* out",
                  words.global,
                  types[unit == 8 ? 3 : unit / 2],
                  static_cast<DType>(p[0]) == DType::kInt64 ? words.int64 : "int");
  const std::string body = fmt::format(
      R"(  const {int64} column = i % {columns}, row = i / {columns} % {extent}, block = i / {block_units};
  {int64} place = row - first[block / {blocks}];
  if ({circular} && place < 0) place += {extent};
  if (place >= 0 && place < {rows}) out[i] = updates[(block * {rows} + place) * {columns} + column];
  else if (out != state) out[i] = state[i];
)",
      fmt::arg("int64", words.int64),
      fmt::arg("columns", columns),
      fmt::arg("extent", extent),
      fmt::arg("block_units", extent * columns),
      fmt::arg("blocks", blocks),
      fmt::arg("circular", p[6]),
      fmt::arg("rows", rows));
  const int64_t units = batch * blocks * extent * columns;
  return compile_written_kernel("routine", parameters, body, units, {0, 1, 2, 4}, target);
}

Result<Artifact> compile_gpu_routine(std::string_view symbol,
                                     std::span<const int64_t> parameters,
                                     const Target& target) {
  if (symbol == "pruner_update_state") return update_state(parameters, target);
  return Error(symbol, " has no code for GPUs");
}

}  // namespace pruner
