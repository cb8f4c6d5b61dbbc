// Programs as text: a head of arguments and workspace, then one statement a line.
#include <sstream>

#include "lower/program.h"

namespace pruner {
namespace {

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string run() {
    out_ << "kernel " << program_.name << "(";
    for (size_t i = 0; i < program_.args.size(); ++i) {
      out_ << (i ? ", " : "") << declaration(program_[program_.args[i]]);
    }
    out_ << ")" << (program_.rewrites ? " rewrites" : "") << " {\n";
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.scope != Scope::kWorkspace) continue;
      line() << "workspace " << declaration(buffer) << " at " << buffer.workspace_offset << ";\n";
    }
    stmt(program_.body);
    out_ << "}\n";
    return out_.str();
  }

 private:
  std::ostream& line() { return out_ << std::string(static_cast<size_t>(2 * depth_), ' '); }

  std::string text(const Expr& e) const {
    return print(e, [&](TensorId id) { return program_[id].name; });
  }
  std::string text(const ElementPlace& place) const {
    return program_[place.buffer].name +
           list(place.indices, [&](const Expr& index) { return text(index); });
  }
  std::string text(const Mma& n) const {
    return "mma." + std::string(n.instruction->shape) + " " + text(n.sum) + " += " + text(n.a) +
           " * " + text(n.b);
  }
  std::string text(const LoadMatrix& n) const {
    return "load_matrix.x" + std::to_string(n.matrices) + (n.transposed ? ".transposed " : " ") +
           text(n.to) + " = " + text(n.from);
  }
  std::string text(const LaneFold& n) const {
    const bool max = n.combiner == Combiner::kMax;
    return "fold_lanes." + std::to_string(n.lanes) + " " + text(n.element) +
           (max ? " max=" : " +=");
  }
  std::string text(const AsyncCopy& n) const {
    return "async_copy " + text(n.to) + " = " + text(n.from) + ", " + text(n.valid) + " of " +
           std::to_string(n.elements);
  }
  std::string text(const Commit&) const { return "commit"; }
  std::string text(const Wait& n) const { return "wait " + std::to_string(n.groups); }
  std::string text(const GroupMma& n) const {
    const auto matrix = [&](const ElementPlace& place, bool terms_first) {
      return text(place) + (terms_first ? ".transposed" : "");
    };
    return "group_mma." + std::string(n.instruction->shape) + " " + text(n.sum) +
           " += " + matrix(n.a, n.a_terms_first) + " * " + matrix(n.b, n.b_terms_first) + ", " +
           std::to_string(n.columns) + " columns";
  }
  std::string text(const GroupCommit&) const { return "group_commit"; }
  std::string text(const GroupWait& n) const { return "group_wait " + std::to_string(n.groups); }
  std::string text(const GroupFence&) const { return "group_fence"; }
  std::string text(const SharedFence&) const { return "shared_fence"; }
  std::string text(const GridWait&) const { return "grid_wait"; }
  const std::string& name(VarId var) const {
    return program_.var_names[static_cast<size_t>(var.value)];
  }

  static std::string list(const auto& items, const auto& text_of) {
    std::string result;
    for (const auto& item : items) result += (result.empty() ? "" : ", ") + text_of(item);
    return "[" + result + "]";
  }

  std::string declaration(const Buffer& buffer) const {
    std::string result = buffer.output ? "out " : "";
    result += std::string(dtype_name(buffer.dtype)) + " " + buffer.name;
    result += list(buffer.shape, [](int64_t extent) { return std::to_string(extent); });
    if (buffer.lanes > 1) result += " by " + std::to_string(buffer.lanes);
    if (!buffer.pack.identity()) {
      result += " packed ";
      result += list(buffer.pack.order, [](int dim) { return std::to_string(dim); });
      result += list(buffer.pack.blocks, [](const auto& block) {
        return std::to_string(block.first) + ":" + std::to_string(block.second);
      });
    }
    return result;
  }

  void inside(const Stmt& body) {
    ++depth_;
    stmt(body);
    --depth_;
    line() << "}\n";
  }

  void stmt(const Stmt& s) {
    match(
        s->op,
        [&](const For& n) {
          const char* const kinds[] = {
              "", "parallel ", "unroll ", "vectorize", "dot ", "matrix ", "block ", "thread "};
          line() << kinds[static_cast<size_t>(n.kind)];
          if (n.kind == LoopKind::kVectorize) out_ << "<" << n.lanes << "> ";
          out_ << "for (" << name(n.var) << " < " << text(n.extent) << ")";
          if (n.unroll > 0) out_ << " unroll:" << n.unroll;
          if (n.prefetch_bytes > 0) out_ << " prefetch:" << n.prefetch_bytes;
          if (n.double_buffer) out_ << " double-buffer";
          out_ << " {\n";
          inside(n.body);
        },
        [&](const Let& n) {
          line() << "let " << name(n.var) << " = " << text(n.value) << ";\n";
          stmt(n.body);
        },
        [&](const Store& n) {
          line() << program_[n.buffer].name;
          out_ << list(n.indices, [&](const Expr& index) { return text(index); });
          out_ << (n.streaming ? " =(streaming) " : " = ") << text(n.value) << ";\n";
        },
        [&](const Prefetch& n) {
          line() << "prefetch" << (n.level > 1 ? ".l2 " : " ") << program_[n.buffer].name;
          out_ << list(n.indices, [&](const Expr& index) { return text(index); }) << ";\n";
        },
        [&](const If& n) {
          line() << "if (" << text(n.condition) << ") {\n";
          inside(n.then);
        },
        [&](const Allocate& n) {
          const Buffer& buffer = program_[n.buffer];
          line() << (buffer.scope == Scope::kRegister ? "register "
                     : buffer.over                    ? "shared over others "
                     : buffer.scope == Scope::kShared ? "shared "
                                                      : "local ")
                 << declaration(buffer) << ";\n";
          stmt(n.body);
        },
        [&](const Barrier&) { line() << "barrier;\n"; },
        [&](const WarpStmt auto& n) { line() << text(n) << ";\n"; },
        [&](const Block& n) {
          for (const Stmt& part : n.statements) stmt(part);
        });
  }

  const Program& program_;
  std::ostringstream out_;
  int depth_ = 1;
};

}  // namespace

std::string print(const Program& program) { return Printer(program).run(); }

}  // namespace pruner
