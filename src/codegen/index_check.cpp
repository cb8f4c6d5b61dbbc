#include "codegen/index_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/c/written_kernel.h"

namespace pruner {

Result<Artifact> compile_index_check(const IndexCheck& check, const Target& target) {
  CHECK(!check.extents.empty());
  const Dialect& words = dialect_of(target);
  const char* const element = check.element_bytes == 8 ? words.int64 : "int";
  const std::string parameters =
      fmt::format("const {0}{1}*{2} indices, {0}{1}*{2} checked, {0}{3}*{2} word",
                  words.global,
                  element,
                  words.restricted,
                  words.int64);
  const std::string body = fmt::format(
      R"(  const {int64} extents[] = {{{extents}}};
  const {int64} extent = extents[i % {num_extents}];
  const {int64} lowest = {lowest};
  {int64} index = indices[i];
  if (index < lowest || index >= extent) {{
    *word = index == 0 ? 1 : index;
    index = extent == 0 ? 0 : index < lowest ? lowest : extent - 1;
  }}
  checked[i] = ({element})index;
)",
      fmt::arg("int64", words.int64),
      fmt::arg("extents", fmt::join(check.extents, ", ")),
      fmt::arg("num_extents", check.extents.size()),
      fmt::arg("lowest", check.from_end ? "-extent" : "0"),
      fmt::arg("element", element));
  TRY_ASSIGN(
      Artifact artifact,
      compile_written_kernel("check_indices", parameters, body, check.count, {0, 1, 2}, target));
  const DType dtype = check.element_bytes == 8 ? DType::kInt64 : DType::kInt32;
  artifact.arguments = {{dtype, {check.count}, false, {}},
                        {dtype, {check.count}, true, {}},
                        {DType::kInt64, {1}, true, {}}};
  return artifact;
}

}  // namespace pruner
