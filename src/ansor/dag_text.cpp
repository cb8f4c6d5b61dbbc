#include "ansor/dag_text.h"

#include <algorithm>

#include "tensor/affine.h"
#include "tensor/parse_expr.h"
#include "tensor/scalar_ops.h"

namespace pruner::ansor {
namespace {

constexpr std::string_view kPlaceholder = " = PLACEHOLDER ";

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The names in a body that are neither tensors nor functions nor known: its reduce axes, in the
// order they first stand there.
std::vector<std::string> free_names(std::string_view body, const ExprScope& scope) {
  std::vector<std::string> names;
  for (size_t at = 0; at < body.size();) {
    if (!in_name(body[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < body.size() && in_name(body[at])) ++at;
    const std::string name(body.substr(begin, at - begin));
    const bool called = at < body.size() && (body[at] == '(' || body[at] == '[');
    const bool number = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
    const bool known = scope.variables.contains(name) || name == "true" || name == "false";
    const bool exponent = begin > 0 && (body[begin - 1] == '+' || body[begin - 1] == '-') &&
                          begin > 1 && body[begin - 2] == 'e';
    if (called || number || known || exponent) continue;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

class TextReader {
 public:
  Result<Unit> add(const std::string& line) {
    if (const size_t at = line.find(kPlaceholder); at != std::string::npos) {
      return add_placeholder(line.substr(0, at), line.substr(at + kPlaceholder.size()));
    }
    const size_t open = line.find('('), close = line.find(')');
    if (open == std::string::npos || close == std::string::npos) return Error("no stage");
    Stage stage;
    stage.name = line.substr(0, open);
    if (stage.name.find(".v") != std::string::npos) return Error("more than one output");
    scope_.variables.clear();
    add_axes(line.substr(open + 1, close - open - 1), stage);
    std::string_view rest = std::string_view(line).substr(close + 1);
    for (const CombinerFacts& row : kCombiners) {
      const std::string sign = " " + std::string(row.dag) + " ";
      if (!rest.starts_with(sign)) continue;
      stage.combiner = row.combiner;
      rest.remove_prefix(sign.size());
    }
    if (!stage.is_reduction() && !rest.starts_with(" = ")) return Error("no = or reduction");
    if (!stage.is_reduction()) rest.remove_prefix(3);
    const std::string body = replaced(std::string(rest), "(bool)1", "true");
    for (const std::string& name : free_names(body, scope_)) add_axis(name, stage.reduce_axes);
    if (stage.is_reduction() == stage.reduce_axes.empty()) return Error("unknown names");
    TRY_ASSIGN(stage.body, parse_expr(body, scope_));
    stage.dtype = stage.body->dtype;
    push(std::move(stage));
    return Unit{};
  }

  Result<ComputeDag> finish(const std::vector<int64_t>& output_shape) {
    if (dag_.stages.empty() || dag_.stages.back().is_placeholder()) return Error("no output");
    Stage& output = dag_.stages.back();
    output.output = true;
    if (output.axes.size() != output_shape.size())
      return Error("the output's shape has other dims");
    for (size_t i = 0; i < output_shape.size(); ++i) output.axes[i].extent = output_shape[i];
    // Goes from the output back, because the extents of a stage come from the loads of its readers.
    for (int s = dag_.size() - 1; s >= 0; --s) {
      if (dag_[StageId{s}].is_placeholder()) continue;
      const Result<Unit> inferred = infer(dag_[StageId{s}]);
      if (!inferred.ok()) return Error(dag_[StageId{s}].name, ": ", inferred.error().message());
    }
    return std::move(dag_);
  }

 private:
  Result<Unit> add_placeholder(const std::string& name, const std::string& shape) {
    TRY_ASSIGN(const Json extents, parse_json(shape));
    Stage stage;
    stage.name = name;
    for (const Json& extent : extents) {
      if (!extent.is_number_integer()) return Error("a shape that is no list of numbers");
      stage.axes.push_back({"ax" + std::to_string(stage.axes.size()), extent.get<int64_t>()});
    }
    push(std::move(stage));
    return Unit{};
  }

  void add_axes(const std::string& names, Stage& stage) {
    for (size_t begin = 0; begin < names.size();) {
      const size_t end = std::min(names.find(", ", begin), names.size());
      add_axis(names.substr(begin, end - begin), stage.axes);
      begin = end + 2;
    }
  }

  // Extents are 0 until they are inferred.
  void add_axis(const std::string& name, std::vector<Iterator>& axes) {
    const auto id = static_cast<int32_t>(scope_.variables.size());
    scope_.variables.emplace(name, make_var(VarId{id}, name));
    axes.push_back({name, 0});
  }

  // A later stage of the same name hides the earlier one from those after it.
  void push(Stage stage) {
    scope_.tensors[stage.name] = StageId{dag_.size()};
    int suffix = 0;
    const std::string name = stage.name;
    const auto taken = [&](const Stage& other) { return other.name == stage.name; };
    while (std::ranges::any_of(dag_.stages, taken)) {
      stage.name = name + "_" + std::to_string(++suffix);
    }
    dag_.stages.push_back(std::move(stage));
  }

  // Reduce extents from the inputs that are read, then the extents of what else is read.
  Result<Unit> infer(Stage& stage) {
    for (const Iterator& axis : stage.axes) {
      if (axis.extent < 1) return Error("nothing reads it");
    }
    visit(stage.body, [&](const Expr& e) {
      const Load* read = as<Load>(e);
      if (read && dag_[read->tensor].is_placeholder()) infer_reduced(stage, *read);
    });
    std::vector<Range> ranges;
    for (const Iterator& axis : stage.axes) ranges.push_back({0, axis.extent - 1});
    for (const Iterator& axis : stage.reduce_axes) {
      if (axis.extent < 1) return Error("the text does not tell the extent of ", axis.name);
      ranges.push_back({0, axis.extent - 1});
    }
    visit(stage.body, [&](const Expr& e) {
      const Load* read = as<Load>(e);
      if (!read || dag_[read->tensor].is_placeholder()) return;
      Stage& made = dag_[read->tensor];
      for (size_t i = 0; i < made.axes.size() && i < read->indices.size(); ++i) {
        const int64_t last = bounds(read->indices[i], ranges).second;
        made.axes[i].extent = std::max(made.axes[i].extent, last + 1);
      }
    });
    return Unit{};
  }

  // An index of an input is k, k // c, or a window's place * stride + k.
  void infer_reduced(Stage& stage, const Load& read) {
    for (size_t i = 0; i < read.indices.size(); ++i) {
      const int64_t dim = dag_[read.tensor].axes[i].extent;
      const auto* node = as<Binary>(read.indices[i]);
      if (node && node->op == BinaryOp::kFloorDiv && as_int(node->b)) {
        set_extent(stage, node->a, dim * *as_int(node->b));
      } else if (node && node->op == BinaryOp::kAdd) {
        set_extent(stage, node->b, dim - last_place(stage, node->a));
      } else {
        set_extent(stage, read.indices[i], dim);
      }
    }
  }

  int64_t last_place(const Stage& stage, const Expr& place) const {
    std::vector<Range> ranges;
    for (const Iterator& axis : stage.axes) ranges.push_back({0, axis.extent - 1});
    return bounds(place, ranges).second;
  }

  // If `e` is a reduce axis, sets its extent unless the same or a smaller extent is known already.
  static void set_extent(Stage& stage, const Expr& e, int64_t extent) {
    const Var* var = as<Var>(e);
    if (!var) return;
    const auto first = static_cast<int32_t>(stage.axes.size());
    if (var->id.value < first) return;
    Iterator& axis = stage.reduce_axes[var->id.value - first];
    if (axis.extent == 0 || extent < axis.extent) axis.extent = extent;
  }

  ComputeDag dag_;
  ExprScope scope_{&dag_, {}, {}};
};

}  // namespace

Result<ComputeDag> dag_from_text(std::span<const std::string> lines,
                                 const std::vector<int64_t>& output_shape) {
  TextReader reader;
  for (const std::string& line : lines) {
    const Result<Unit> added = reader.add(line);
    if (!added.ok()) return Error("\"", line.substr(0, 40), "...\": ", added.error().message());
  }
  return reader.finish(output_shape);
}

}  // namespace pruner::ansor
