#include "tiny_module.h"

#include <fstream>

#include "codegen/loader.h"
#include "support/file.h"

namespace pruner {

// args[2][i] = args[0][i] + args[1][i] for 16 floats.
static constexpr const char* kAdd = R"(
  .text
  .global tiny_add
tiny_add:
  mov (%rdi), %rax
  mov 8(%rdi), %rcx
  mov 16(%rdi), %rdx
  xor %esi, %esi
1:
  movups (%rax,%rsi), %xmm0
  movups (%rcx,%rsi), %xmm1
  addps %xmm1, %xmm0
  movups %xmm0, (%rdx,%rsi)
  add $16, %rsi
  cmp $64, %rsi
  jne 1b
  ret
  .section .note.GNU-stack, "", @progbits
)";

Result<Unit> make_tiny_module(const std::string& path, void (*change)(ModulePlan&), float scale) {
  TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
  ModulePlan plan;
  plan.threads = 2;
  ModulePlan::Phase& phase = plan.phases.emplace_back();
  phase.name = "main";
  ModulePlan::Shapes& shapes = phase.shapes.emplace_back();
  shapes.arena_bytes = 256;
  phase.inputs = {{"x", DType::kFloat32, {16}}, {"s \"é\\", DType::kInt64, {}}};
  phase.outputs = {{"y", DType::kFloat32, {4, 4}}, {"c", DType::kFloat32, {3}}};
  shapes.steps = {{"first",
                   "by hand",
                   16,
                   192,
                   {{"tiny_add"}},
                   {{Place::kInput, 0}, {Place::kConstant, 64}, {Place::kArena, 128}},
                   0,
                   {},
                   {},
                   "float32"},
                  {"second",
                   "by hand",
                   16,
                   192,
                   {{"tiny_add"}},
                   {{Place::kArena, 128}, {Place::kConstant, 64}, {Place::kOutput, 0}},
                   0}};
  shapes.copies = {{{Place::kConstant, 64}, {Place::kOutput, 1}, 12}};
  if (change != nullptr) change(plan);
  std::string weights(64, '\xff');
  for (int i = 0; i < 16; ++i) {
    const auto w = scale * static_cast<float>(i);
    weights.append(reinterpret_cast<const char*>(&w), sizeof w);
  }
  TRY_ASSIGN(const std::string kernel, assemble(kAdd));
  plan.weight_bytes = static_cast<int64_t>(weights.size());
  const std::string name = static_name(path);
  TRY_ASSIGN(const int64_t place,
             name.empty() ? link_module(plan, {kernel}, folder, path)
                          : archive_module(plan, {kernel}, name, path));
  std::fstream module(path, std::ios::in | std::ios::out | std::ios::binary);
  module.seekp(place);
  module.write(weights.data(), static_cast<std::streamsize>(weights.size()));
  module.close();
  return name.empty() ? add_checksum(path) : Unit{};
}

}  // namespace pruner
