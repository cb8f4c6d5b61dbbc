#include <algorithm>
#include <charconv>
#include <sstream>

#include "space/space.h"

namespace pruner {

std::string print(const Space& space) {
  std::string text;
  for (const Sketch& sketch : space.sketches) {
    text += sketch.name + " " + sketch.hash + "\n";
    for (const Decision& decision : sketch.decisions) {
      text += "  " + decision.name + ":";
      for (const int32_t choice : decision.drawn()) text += " " + std::to_string(choice);
      text += "\n";
    }
  }
  return text;
}

std::string print(const Space& space, const Candidate& candidate) {
  const Sketch& sketch = space[candidate.sketch];
  std::string text = sketch.name + ":";
  for (size_t i = 0; i < sketch.decisions.size(); ++i) {
    text += " " + sketch.decisions[i].name + "=" + std::to_string(candidate.decisions[i]);
  }
  return text;
}

Result<Candidate> parse_candidate(const Space& space, std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return Error("a candidate is \"SKETCH: decision=value ...\", found no ':'");
  const std::string_view name = text.substr(0, colon);
  Candidate candidate;
  for (size_t s = 0; s < space.sketches.size(); ++s) {
    if (space.sketches[s].name == name) candidate.sketch = SketchId{static_cast<int32_t>(s)};
  }
  if (!candidate.sketch.valid()) return Error("no sketch \"", name, "\" in this task");
  const Sketch& sketch = space[candidate.sketch];
  std::istringstream words{std::string(text.substr(colon + 1))};
  std::vector<bool> given(sketch.decisions.size(), false);
  candidate.decisions.resize(sketch.decisions.size());
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const auto found = std::find_if(sketch.decisions.begin(),
                                    sketch.decisions.end(),
                                    [&](const Decision& d) { return d.name == key; });
    if (found == sketch.decisions.end())
      return Error("sketch ", name, " has no decision \"", key, "\"");
    const size_t i = static_cast<size_t>(found - sketch.decisions.begin());
    int32_t parsed = 0;
    const std::string digits = equals == std::string::npos ? "" : word.substr(equals + 1);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
    if (code != std::errc() || end != digits.data() + digits.size()) {
      return Error("decision ", key, ": expected a number, found \"", digits, "\"");
    }
    if (!std::binary_search(found->choices.begin(), found->choices.end(), parsed)) {
      return Error("decision ",
                   key,
                   " is ",
                   parsed,
                   ", sketch ",
                   name,
                   " allows ",
                   found->choices.front(),
                   " to ",
                   found->choices.back());
    }
    candidate.decisions[i] = parsed;
    given[i] = true;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) return Error("decision ", sketch.decisions[i].name, " is missing");
  }
  TRY(legal_nest(space, candidate));
  return candidate;
}

static const char* kind_name(LoopKind kind) {
  switch (kind) {
    case LoopKind::kSerial: return "for";
    case LoopKind::kParallel: return "parallel";
    case LoopKind::kUnroll: return "unroll";
    case LoopKind::kVectorize: return "vectorize";
    case LoopKind::kDot: return "dot";
    case LoopKind::kMatrix: return "matrix";
    case LoopKind::kBlock: return "block";
    case LoopKind::kThread: return "thread";
  }
  return "?";
}

static const char* scope_name(Scope scope) {
  switch (scope) {
    case Scope::kArgument: return "argument";
    case Scope::kWorkspace: return "workspace";
    case Scope::kShared: return "shared";
    case Scope::kLocal: return "local";
    case Scope::kRegister: return "register";
  }
  return "?";
}

static std::string axis_name(const Stage& stage, int axis) {
  switch (axis) {
    case kFusedSpatial: return "fused";
    case kFusedReduce: return "fused-reduce";
    case kFusedRows: return "fused-rows";
    default: break;
  }
  const size_t spatial = stage.axes.size(), a = static_cast<size_t>(axis);
  return a < spatial ? stage.axes[a].name : stage.reduce_axes[a - spatial].name;
}

std::string print(const LoopNest& nest) {
  std::ostringstream out;
  for (const NestStage& stage : nest.stages) {
    const Stage& s = (*nest.dag)[stage.stage];
    out << s.name << " [" << scope_name(stage.scope);
    for (const int64_t extent : stage.extents) out << " " << extent;
    out << "]";
    if (stage.at.valid()) out << " at " << (*nest.dag)[stage.at].name << " depth " << stage.depth;
    out << "\n";
    for (size_t i = 0; i < stage.loops.size(); ++i) {
      const NestLoop& loop = stage.loops[i];
      const bool parallel = static_cast<int>(i) < stage.parallel_loops;
      out << "  " << kind_name(parallel ? LoopKind::kParallel : loop.kind) << " "
          << axis_name(s, loop.axis) << " " << loop.extent << " step " << loop.step;
      if (loop.clamp >= 0) out << " clamp " << loop.clamp;
      if (loop.ragged) out << " ragged";
      out << "\n";
    }
  }
  for (const PackedOperand& packed : nest.packed) {
    out << "packed " << (*nest.dag)[packed.operand].name << " " << print_json(to_json(packed.spec))
        << "\n";
  }
  return out.str();
}

}  // namespace pruner
