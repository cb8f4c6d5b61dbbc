#include "codegen/launch.h"

#include "lower/rewrite.h"
#include "lower/warp_rules.h"
#include "space/matrix_lines.h"

namespace pruner {
namespace {

// Returns the extent of a kBlock or kThread loop, which is a constant (lower/program.h).
int64_t extent_of(const For& loop) { return *as_int(loop.extent); }

}  // namespace

Touched touched_buffers(const Program& program, const Stmt& stmt) {
  const std::vector<bool> none(program.buffers.size(), false);
  Touched touched{none, none};
  walk(
      stmt,
      [&](const StmtNode& s) {
        if (const Store* store = std::get_if<Store>(&s.op)) {
          touched.written[store->buffer.value] = true;
        }
        if (const AsyncCopy* copy = std::get_if<AsyncCopy>(&s.op)) {
          touched.read[copy->from.buffer.value] = true;
        }
      },
      [&](const Expr& e) {
        visit(e, [&](const Expr& part) {
          const Load* load = as<Load>(part);
          if (load) touched.read[load->tensor.value] = true;
        });
      });
  return touched;
}

int64_t shared_alignment(const Stmt& kernel) {
  bool groups = false;
  walk(kernel, [&](const StmtNode& s) { groups |= std::holds_alternative<GroupMma>(s.op); });
  return groups ? kGroupAlignment : kSharedAlignment;
}

std::vector<Artifact::Launch> plan_launches(const Program& program,
                                            const std::string& symbol,
                                            int64_t most_declared) {
  std::vector<Artifact::Launch> result;
  for (const For* blocks : launches(program)) {
    Artifact::Launch& launch = result.emplace_back();
    launch.kernel = symbol + "_" + std::to_string(result.size() - 1);
    launch.blocks = extent_of(*blocks);
    int64_t over = 0;
    const int64_t alignment = shared_alignment(blocks->body);
    walk(
        blocks->body,
        [&](const StmtNode& s) {
          const For* loop = std::get_if<For>(&s.op);
          if (loop && loop->kind == LoopKind::kThread) launch.threads = extent_of(*loop);
          const Allocate* allocation = std::get_if<Allocate>(&s.op);
          if (!allocation || program[allocation->buffer].scope != Scope::kShared) return;
          const Buffer& buffer = program[allocation->buffer];
          if (buffer.over) {
            over = std::max(over, buffer.bytes());
          } else {
            launch.shared_bytes = shared_offset(launch.shared_bytes, alignment) + buffer.bytes();
          }
        },
        [](const Expr&) {});
    launch.shared_bytes = std::max(launch.shared_bytes, over);
    // Buffers that are declared have places of their own, which are aligned to less than groups
    // ask.
    if (launch.shared_bytes > most_declared || over > 0 || alignment > kSharedAlignment)
      launch.dynamic_bytes = launch.shared_bytes;
    launch.early = waits_for_grid(blocks->body);
    const Touched touched = touched_buffers(program, blocks->body);
    for (size_t i = 0; i < program.args.size(); ++i) {
      if (touched.any(static_cast<size_t>(program.args[i].value))) {
        launch.arguments.push_back(static_cast<int>(i));
      }
    }
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      launch.workspace |= program.buffers[i].scope == Scope::kWorkspace && touched.any(i);
    }
  }
  return result;
}

}  // namespace pruner
