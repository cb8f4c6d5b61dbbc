#include "ansor/steps.h"

#include <array>
#include <limits>

#include "support/match.h"

namespace pruner::ansor {
namespace {

// Reads the items of one step after its code; the first that does not fit is kept.
class StepReader {
 public:
  explicit StepReader(const Json& step) : step_(step) {}

  int number() {
    const int64_t value = integer();
    return in_int(value) ? static_cast<int>(value) : refuse("a number out of range");
  }
  int64_t integer() {
    const Json* item = next();
    if (!item) return 0;
    return item->is_number_integer() ? item->get<int64_t>() : refuse("no whole number");
  }
  bool flag() { return integer() != 0; }
  std::string text() {
    const Json* item = next();
    if (item && !item->is_string()) refuse("no text");
    return item && item->is_string() ? item->get<std::string>() : std::string();
  }
  template <typename T>
  std::vector<T> list() {
    const Json* item = next();
    std::vector<T> values;
    if (item && !item->is_array()) refuse("no list");
    if (!item || !item->is_array()) return values;
    values.reserve(item->size());
    for (const Json& entry : *item) {
      if (!entry.is_number_integer() || (sizeof(T) == 4 && !in_int(entry.get<int64_t>()))) {
        refuse("a list with something that is no whole number");
        break;
      }
      values.push_back(static_cast<T>(entry.get<int64_t>()));
    }
    return values;
  }

  /// Returns what is wrong with the step, or null.
  const char* wrong() const {
    return wrong_ ? wrong_ : at_ != step_.size() ? "more items than it has" : nullptr;
  }

 private:
  static bool in_int(int64_t value) {
    return value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max();
  }
  int refuse(const char* what) {
    if (!wrong_) wrong_ = what;
    return 0;
  }
  const Json* next() {
    if (at_ < step_.size()) return &step_[at_++];
    refuse("fewer items than it needs");
    return nullptr;
  }

  const Json& step_;
  // The code is item 0.
  size_t at_ = 1;
  const char* wrong_ = nullptr;
};

// 255 for a number that the format does not know: step_from_json() refuses it.
Annotation read_annotation(StepReader& in) {
  const int number = in.number();
  const bool known = number >= 0 && number <= static_cast<int>(Annotation::kTensorize);
  return known ? static_cast<Annotation>(number) : static_cast<Annotation>(255);
}

// A row for each alternative of Step, in their order: code_of() finds a row by the index.
// Braces keep the order in which the items are read.
struct StepRow {
  const char* code;
  Step (*read)(StepReader& in);
};
constexpr std::array kStepRows = {
    StepRow{"AN",
            [](StepReader& in) -> Step {
              return AnnotationStep{in.number(), in.number(), read_annotation(in)};
            }},
    StepRow{"FU",
            [](StepReader& in) -> Step {
              return FuseStep{in.number(), in.list<int>()};
            }},
    StepRow{"PR",
            [](StepReader& in) -> Step {
              return PragmaStep{in.number(), in.number(), in.text()};
            }},
    StepRow{"RE",
            [](StepReader& in) -> Step {
              return ReorderStep{in.number(), in.list<int>()};
            }},
    StepRow{
        "SP",
        [](StepReader& in) -> Step {
          return SplitStep{in.number(), in.number(), in.integer(), in.list<int64_t>(), in.flag()};
        }},
    StepRow{"FSP",
            [](StepReader& in) -> Step {
              return FollowSplitStep{in.number(), in.number(), in.number(), in.number()};
            }},
    StepRow{"FFSP",
            [](StepReader& in) -> Step {
              return FollowFusedSplitStep{
                  in.number(), in.number(), in.list<int>(), in.number(), in.flag()};
            }},
    StepRow{"SA",
            [](StepReader& in) -> Step {
              return StorageAlignStep{in.number(), in.number(), in.number(), in.number()};
            }},
    StepRow{"CA",
            [](StepReader& in) -> Step {
              return ComputeAtStep{in.number(), in.number(), in.number()};
            }},
    StepRow{"CI", [](StepReader& in) -> Step { return ComputeInlineStep{in.number()}; }},
    StepRow{"CR", [](StepReader& in) -> Step { return ComputeRootStep{in.number()}; }},
    StepRow{"CHR",
            [](StepReader& in) -> Step {
              return CacheReadStep{in.number(), in.text(), in.list<int>()};
            }},
    StepRow{"CHW",
            [](StepReader& in) -> Step {
              return CacheWriteStep{in.number(), in.text()};
            }},
    StepRow{"RF",
            [](StepReader& in) -> Step {
              return RfactorStep{in.number(), in.number(), in.number()};
            }},
};
static_assert(kStepRows.size() == std::variant_size_v<Step>);

Result<Step> step_from_json(const Json& json) {
  if (!json.is_array() || json.empty() || !json[0].is_string()) {
    return Error("not a list that starts with a code");
  }
  const auto& code = json[0].get_ref<const std::string&>();
  for (const StepRow& row : kStepRows) {
    if (code != row.code) continue;
    StepReader reader(json);
    Step step = row.read(reader);
    if (reader.wrong()) return Error(code, " has ", reader.wrong());
    const auto* annotation = std::get_if<AnnotationStep>(&step);
    if (annotation && annotation->annotation > Annotation::kTensorize) {
      return Error("AN has an unknown annotation");
    }
    return step;
  }
  return Error("unknown code \"", code.substr(0, 16), "\"");
}

}  // namespace

const char* code_of(const Step& step) { return kStepRows[step.index()].code; }

Result<std::vector<Step>> steps_from_json(const Json& list) {
  if (!list.is_array()) return Error("the steps are no list");
  std::vector<Step> steps;
  steps.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    Result<Step> step = step_from_json(list[i]);
    if (!step.ok()) return Error("step ", i, ": ", step.error().message());
    steps.push_back(*std::move(step));
  }
  return steps;
}

Json steps_to_json(std::span<const Step> steps) {
  Json list = Json::array();
  for (const Step& step : steps) {
    Json json = {code_of(step)};
    const auto add = [&](const auto&... items) { (json.push_back(Json(items)), ...); };
    match(
        step,
        [&](const AnnotationStep& s) { add(s.stage, s.iter, static_cast<int>(s.annotation)); },
        [&](const FuseStep& s) { add(s.stage, s.iters); },
        [&](const PragmaStep& s) { add(s.stage, s.iter, s.pragma); },
        [&](const ReorderStep& s) { add(s.stage, s.order); },
        [&](const SplitStep& s) {
          add(s.stage, s.iter, s.extent, s.lengths, s.inner_to_outer ? 1 : 0);
        },
        [&](const FollowSplitStep& s) { add(s.stage, s.iter, s.source, s.n_split); },
        [&](const FollowFusedSplitStep& s) {
          add(s.stage, s.iter, s.sources, s.level, s.factor ? 1 : 0);
        },
        [&](const StorageAlignStep& s) { add(s.stage, s.iter, s.factor, s.offset); },
        [&](const ComputeAtStep& s) { add(s.stage, s.target_stage, s.target_iter); },
        [&](const ComputeInlineStep& s) { add(s.stage); },
        [&](const ComputeRootStep& s) { add(s.stage); },
        [&](const CacheReadStep& s) { add(s.stage, s.scope, s.readers); },
        [&](const CacheWriteStep& s) { add(s.stage, s.scope); },
        [&](const RfactorStep& s) { add(s.stage, s.iter, s.factor_iter); });
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace pruner::ansor
