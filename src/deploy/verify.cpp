#include "deploy/verify.h"

#include <algorithm>
#include <cmath>

#include "deploy/loaded_module.h"
#include "search/search.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

constexpr double kFloat32Bound = 5e-4, kTf32Bound = 5e-3, kNarrowBound = 5e-2;
constexpr double kMostDiffering = 0.01;  // of the integers

double bound_of(const LoadedModule& module) {
  double bound = kFloat32Bound;
  for (const std::string& precision : module.precisions()) {
    // Indices and truth values are exact.
    const std::optional<DType> type = parse_dtype(precision);
    const bool exact = type == DType::kInt64 || type == DType::kInt32 || type == DType::kBool;
    const bool wide = precision.empty() || type == DType::kFloat32 || exact;
    bound = std::max(bound, wide ? 0 : precision == "tf32" ? kTf32Bound : kNarrowBound);
  }
  return bound;
}

Result<Unit> check_same(std::span<const TensorSpec> a, std::span<const TensorSpec> b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = a[i].shape == b[i].shape && a[i].dtype == b[i].dtype;
  if (same) return Unit{};
  const auto words = [](std::span<const TensorSpec> specs) {
    std::string text;
    for (const TensorSpec& spec : specs) text += (text.empty() ? "" : ", ") + print(spec);
    return text;
  };
  return Error("the module's are ", words(a), ", the network's ", words(b));
}

void compare_integers(const Tensor& a, const Tensor& b, Agreement& agreement) {
  agreement.integers += a.num_elements();
  for (int64_t i = 0; i < a.num_elements(); ++i)
    agreement.differing += a.get_int(i) == b.get_int(i) ? 0 : 1;
}

void compare_floats(const Tensor& a, const Tensor& b, const std::string& name, Agreement& worst) {
  double largest = 0;
  for (int64_t i = 0; i < b.num_elements(); ++i)
    if (std::isfinite(b.get(i))) largest = std::max(largest, std::abs(b.get(i)));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double of_a = a.get(i), of_b = b.get(i);
    if (of_a == of_b || (std::isnan(of_a) && std::isnan(of_b))) continue;
    double error = std::abs(of_a - of_b) / largest;
    if (std::isnan(error)) error = HUGE_VAL;
    if (error > worst.error) {
      worst.error = error;
      worst.output = name;
      worst.element = i;
    }
  }
}

void compare(std::span<const Tensor> a,
             std::span<const Tensor> b,
             std::span<const TensorSpec> specs,
             Agreement& agreement) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (is_float(a[i].dtype())) {
      compare_floats(a[i], b[i], specs[i].name, agreement);
    } else {
      compare_integers(a[i], b[i], agreement);
    }
  }
}

/// The ends of the range and some between them, drawn; without symbols the one shape.
std::vector<SymbolValues> compared_shapes(const std::vector<Symbol>& symbols) {
  constexpr int kDrawn = 64;
  const SymbolBox box = box_of(symbols);
  std::vector<SymbolValues> shapes = {box.max};
  if (symbols.empty()) return shapes;
  shapes.push_back(box.min);
  Rng rng(2);
  for (int i = 0; i < kDrawn; ++i) {
    SymbolValues& shape = shapes.emplace_back();
    for (const Symbol& symbol : symbols)
      shape.push_back(symbol.min + rng.below(symbol.max - symbol.min + 1));
  }
  return shapes;
}

/// The best by draft score of a few that are drawn: hardly ever the one that a search finds.
std::optional<Candidate> drawn_schedule(const Task& task, const Space& space) {
  constexpr size_t kDraws = 32;
  Rng rng(1);
  std::vector<Candidate> drawn = sample_legal(space, kDraws, rng);
  const std::vector<float> scores = make_draft_model()->predict(task, space, drawn);
  if (scores.empty()) return std::nullopt;
  return std::move(drawn[std::ranges::max_element(scores) - scores.begin()]);
}

}  // namespace

bool Agreement::ok() const {
  return error <= bound &&
         static_cast<double>(differing) <= kMostDiffering * static_cast<double>(integers);
}

Result<Agreement> compare_outputs(const std::string& module,
                                  const std::string& other,
                                  int threads) {
  TRY_ASSIGN(LoadedModule a, load_module(module, threads));
  TRY_ASSIGN(LoadedModule b, load_module(other, threads));
  if (a.phases() != b.phases())
    return Error("the module's phases are not those of what it is compared with");
  TRY(check_same(a.states(), b.states()));
  Agreement agreement{.output = {}, .bound = std::max(bound_of(a), bound_of(b))};
  for (int phase = 0; phase < std::ssize(a.phases()); ++phase) {
    for (const SymbolValues& extents : compared_shapes(a.symbols())) {
      const Result<TensorSpecs> specs = a.specs_at(extents, phase),
                                others = b.specs_at(extents, phase);
      // Of single shapes in a range others have no plan.
      if (!specs.ok() && !others.ok()) continue;
      TRY(specs);
      TRY(others);
      TRY(check_same(specs->inputs, others->inputs));
      TRY(check_same(specs->outputs, others->outputs));
      const std::vector<Tensor> inputs = seeded_inputs(specs->inputs, 0);
      TRY_ASSIGN(const std::vector<Tensor> of_a, a.run(inputs, phase));
      TRY_ASSIGN(const std::vector<Tensor> of_b, b.run(inputs, phase));
      compare(of_a, of_b, specs->outputs, agreement);
    }
  }
  compare(a.read_states(), b.read_states(), a.states(), agreement);
  return agreement;
}

Result<Agreement> verify_module(const std::string& path,
                                std::span<const Phase> phases,
                                const Target& target,
                                int jobs) {
  TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
  const std::string other = folder.path("other.so");
  TRY(build_module(
      phases, target, drawn_schedule, {.jobs = jobs, .work_dir = "", .forms = {}}, other));
  return compare_outputs(path, other, target.threads);
}

}  // namespace pruner
