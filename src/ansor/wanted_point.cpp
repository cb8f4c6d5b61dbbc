#include "ansor/wanted_point.h"

#include <fmt/format.h>

#include <algorithm>

namespace pruner::ansor {

std::vector<SplitPart> parts_of(const StateStage& stage, int axis) {
  std::vector<SplitPart> parts;
  for (const Relation& r : stage.relations) {
    if (r.fuse || r.parent != axis || r.nparts) continue;
    parts.push_back({r.inner, r.factor});
    axis = r.outer;
  }
  parts.push_back({axis, 0});
  std::ranges::reverse(parts);
  return parts;
}

int64_t unroll_of(const StateStage& stage) {
  int64_t steps = 0;
  for (const StateIterator& iter : stage.iters) steps = std::max(steps, iter.auto_unroll);
  return steps;
}

std::vector<int64_t> PointReader::factors(const StateStage& stage, int axis) const {
  std::vector<int64_t> product;
  for (const int i : iterators(axis)) {
    const std::vector<SplitPart> parts = parts_of(stage, i);
    if (!product.empty() && product.size() != parts.size()) return {};
    product.resize(parts.size(), 1);
    for (size_t p = 0; p < parts.size(); ++p) product[p] *= parts[p].factor;
  }
  return product;
}

void PointReader::want(DecisionRef ref, double value, const std::string& what, double fixed) {
  const auto say = [&](const char* why) {
    wanted_.reasons.push_back(fmt::format("{} {:g}: {}", what, value, why));
  };
  if (ref == kFixed) {
    if (value != fixed) say("nothing to choose");
    return;
  }
  wanted_.values[ref] = value;
  const std::vector<int32_t>& choices = sketch_.decisions[ref].choices;
  if (std::ranges::find(choices, value) == choices.end()) say("not among the choices");
}

}  // namespace pruner::ansor
