#include "transfer/adapt.h"

#include <algorithm>
#include <map>

#include "space/nearest.h"

namespace pruner {

namespace {

/// Returns the subject of a decision without the stage's name: "ax1.rows" for "T_relu.ax1.rows".
std::string_view subject(std::string_view decision) {
  return decision.substr(decision.find('.') + 1);
}

/// Returns the values of each subject, in order if a subject is there several times.
std::map<std::string_view, std::vector<int32_t>> by_subject(const Record& record) {
  std::map<std::string_view, std::vector<int32_t>> values;
  for (const auto& [name, value] : record.decisions) values[subject(name)].push_back(value);
  return values;
}

/// "winograd-2x2+" of "winograd-2x2+cache-tile", nothing of "cache-tile".
std::string_view form_of(std::string_view sketch) { return sketch.substr(0, sketch.find('+') + 1); }

/// Returns the drawn sketch of a name; if the task has none (its reduction is too short), one of
/// the same form and another structure.
const Sketch* find_sketch(const Space& space, const std::string& name) {
  for (const bool same_name : {true, false}) {
    for (const SketchId id : space.drawn) {
      const Sketch& sketch = space[id];
      if (same_name ? sketch.name == name : form_of(sketch.name) == form_of(name)) return &sketch;
    }
  }
  return nullptr;
}

}  // namespace

Result<Candidate> adapt(const Record& record, const Space& space, const Candidate& rest) {
  const Sketch* const found = find_sketch(space, record.sketch_name);
  if (found == nullptr) return Error("no sketch ", record.sketch_name);
  Candidate candidate{SketchId{static_cast<int32_t>(found - space.sketches.data())}, {}};
  auto values = by_subject(record);
  for (size_t i = 0; i < found->decisions.size(); ++i) {
    const Decision& decision = found->decisions[i];
    std::vector<int32_t>& left = values[subject(decision.name)];
    if (!left.empty()) {
      candidate.decisions.push_back(nearest_choice(decision, left.front()));
      left.erase(left.begin());
    } else if (rest.sketch == candidate.sketch) {
      candidate.decisions.push_back(rest.decisions[i]);
    } else {
      candidate.decisions.push_back(decision.choices.front());
    }
  }
  std::string why;
  if (!shrink_until_legal(space, candidate, why)) return Error("not legal: ", why);
  return candidate;
}

}  // namespace pruner
