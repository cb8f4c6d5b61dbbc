// The mutations of the published search (Ansor, section 5.1, and its release), on our decisions:
// one row a rule. A split is a group of tile decisions, or one by itself, and the outermost loop
// that takes the rest; a move of its factors lands on the nearest choices, as our tiles need not
// divide.
#include <algorithm>
#include <numeric>

#include "space/nearest.h"
#include "space/space.h"
#include "space/weighted_row.h"

namespace pruner {

namespace {

/// A mutation rule. A kind of decision that Ansor's programs do not have belongs to the rule of the
/// kind that is most like it.
enum class Rule : uint8_t { kTileSize, kAutoUnroll, kComputeLocation, kParallel };

Rule rule_of(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kTile:
    case DecisionKind::kChunk:
    case DecisionKind::kThreads:
    case DecisionKind::kVector: return Rule::kTileSize;
    case DecisionKind::kUnroll:
    case DecisionKind::kPrefetch:
    case DecisionKind::kStreaming:
    case DecisionKind::kBuffers:
    case DecisionKind::kEpilogue: return Rule::kAutoUnroll;
    case DecisionKind::kLocation: return Rule::kComputeLocation;
    case DecisionKind::kOrder: break;
  }
  return Rule::kParallel;
}

struct RuleRow {
  Rule rule;
  double cpu, gpu;  // how often it is drawn
};
constexpr RuleRow kRules[] = {{Rule::kTileSize, 0.90, 0.90},
                              {Rule::kAutoUnroll, 0.04, 0.10},
                              {Rule::kComputeLocation, 0.05, 0},
                              {Rule::kParallel, 0.01, 0}};

/// The decisions that a rule may change.
std::vector<size_t> decisions_of(const Sketch& sketch, Rule rule) {
  std::vector<size_t> found;
  for (size_t i = 0; i < sketch.decisions.size(); ++i) {
    const Decision& decision = sketch.decisions[i];
    if (decision.choices.size() > 1 && rule_of(decision.kind) == rule) found.push_back(i);
  }
  return found;
}

/// The decisions of one drawn split.
std::vector<size_t> draw_split(const Sketch& sketch, Rng& rng) {
  std::vector<std::vector<size_t>> splits;
  std::vector<int> group_of;
  for (const size_t i : decisions_of(sketch, Rule::kTileSize)) {
    const int group = sketch.decisions[i].group;
    const auto same = std::ranges::find(group_of, group);
    if (group >= 0 && same != group_of.end()) {
      splits[same - group_of.begin()].push_back(i);
    } else {
      splits.push_back({i});
      group_of.push_back(group);
    }
  }
  if (splits.empty()) return {};
  return splits[rng.below(static_cast<int64_t>(splits.size()))];
}

/// A divisor of `value` above 1, drawn.
int64_t draw_divisor(int64_t value, Rng& rng) {
  std::vector<int64_t> divisors;
  for (int64_t d = 2; d <= value; ++d)
    if (value % d == 0) divisors.push_back(d);
  return divisors[rng.below(static_cast<int64_t>(divisors.size()))];
}

/// Moves a divisor from one level of a split to the next of a drawn order; level 0 is the outermost
/// loop, whose extent nobody decides.
bool move_divisor(const Sketch& sketch, Candidate& candidate, Rng& rng) {
  const std::vector<size_t> split = draw_split(sketch, rng);
  if (split.empty()) return false;
  const size_t levels = split.size() + 1;
  std::vector<size_t> order(levels);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = levels; i > 1; --i)
    std::swap(order[i - 1], order[rng.below(static_cast<int64_t>(i))]);
  for (size_t k = 0; k < levels; ++k) {
    const size_t from = order[k], to = order[(k + 1) % levels];
    const std::vector<int32_t>& into = sketch.decisions[split[to == 0 ? 0 : to - 1]].choices;
    const int64_t most = std::max<int64_t>(into.back(), 2);
    const int64_t value = from == 0 ? most : candidate.decisions[split[from - 1]];
    if (value <= 1) continue;
    const int64_t divisor = draw_divisor(value, rng);
    const auto set = [&](size_t level, double wanted) {
      const size_t i = split[level - 1];
      candidate.decisions[i] = nearest_choice(sketch.decisions[i], wanted);
    };
    if (from > 0) set(from, static_cast<double>(value) / static_cast<double>(divisor));
    if (to > 0) set(to, static_cast<double>(candidate.decisions[split[to - 1]] * divisor));
    return true;
  }
  return false;
}

/// Draws one decision of the rule anew; it may stay as it was.
bool redraw(const Sketch& sketch, Rule rule, Candidate& candidate, Rng& rng) {
  const std::vector<size_t> found = decisions_of(sketch, rule);
  if (found.empty()) return false;
  const size_t i = found[rng.below(static_cast<int64_t>(found.size()))];
  const std::vector<int32_t>& choices = sketch.decisions[i].drawn();
  candidate.decisions[i] = choices[rng.below(static_cast<int64_t>(choices.size()))];
  return true;
}

}  // namespace

std::optional<Candidate> mutate_as_published(const Space& space,
                                             const Candidate& candidate,
                                             Rng& rng) {
  const Rule rule = draw_row(kRules, space.target.is_gpu(), rng).rule;
  const Sketch& sketch = space[candidate.sketch];
  Candidate child = candidate;
  const bool applies =
      rule == Rule::kTileSize ? move_divisor(sketch, child, rng) : redraw(sketch, rule, child, rng);
  if (!applies) return std::nullopt;
  return child;
}

}  // namespace pruner
