#include "deploy/verify.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "deploy/loaded_module.h"
#include "graph/interpret_elements.h"
#include "graph/partition_range.h"
#include "search/search.h"
#include "support/temporary_folder.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

constexpr double kFloat32Bound = 5e-4, kTf32Bound = 5e-3, kNarrowBound = 5e-2;
constexpr double kLeastNormal = 0x1p-126;  // modules take smaller numbers of float32 for zeros
constexpr double kMostDiffering = 0.01;    // share of the integers that may differ
constexpr int64_t kElements = 16;          // elements of an output that the interpreter computes
constexpr size_t kAtAll = 64;              // elements of all outputs together, if these are many
constexpr size_t kShapes = 64;             // shapes of a range that are compared
constexpr size_t kFewestShapes = 8;        // shapes that are compared however long they take
constexpr double kSeconds = 60;            // time of either kind of comparison over a range

double bound_of(const LoadedModule& module) {
  double bound = kFloat32Bound;
  for (const std::string& precision : module.precisions()) {
    // Indices and truth values are exact.
    const std::optional<DType> type = parse_dtype(precision);
    const bool exact = type == DType::kInt64 || type == DType::kInt32 || type == DType::kBool;
    const bool wide = precision.empty() || type == DType::kFloat32 || exact;
    bound = std::max(bound, wide ? 0 : precision.ends_with("tf32") ? kTf32Bound : kNarrowBound);
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
    double error = std::abs(of_a - of_b) / std::max(largest, kLeastNormal);
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
    if (a[i].shape() != b[i].shape()) {
      // The data decide how much is found, and rounding may decide for the data.
      agreement.wrong =
          specs[i].name + " is " + print_shape(a[i].shape()) + " and " + print_shape(b[i].shape());
      return;
    }
    if (is_float(a[i].dtype())) {
      compare_floats(a[i], b[i], specs[i].name, agreement);
    } else {
      compare_integers(a[i], b[i], agreement);
    }
  }
}

/// Returns shapes at which an output is longer than at the shape before, as many in a row as a tile
/// has elements: among them are shapes whose last tile is whole, has one element, and so on. For a
/// window that moves by 5 places these are every fifth extent, for most networks every extent.
std::vector<SymbolValues> steps_of(const LoadedModule& module, size_t s) {
  constexpr size_t kSteps = 33;
  constexpr int64_t kSearched = 8192;  // extents
  const std::vector<Symbol>& symbols = module.symbols();
  SymbolValues shape;
  for (const Symbol& symbol : symbols) shape.push_back(symbol.min + (symbol.max - symbol.min) / 3);
  const auto outputs_at = [&](const SymbolValues& at) {
    std::vector<int64_t> dims;
    const Result<TensorSpecs> specs = module.specs_at(at);
    if (!specs.ok()) return dims;
    for (const TensorSpec& spec : specs->outputs)
      dims.insert(dims.end(), spec.shape.begin(), spec.shape.end());
    return dims;
  };
  std::vector<SymbolValues> steps;
  std::vector<int64_t> before = outputs_at(shape);
  for (int64_t i = 0; i < kSearched && shape[s] < symbols[s].max && steps.size() < kSteps; ++i) {
    ++shape[s];
    std::vector<int64_t> dims = outputs_at(shape);
    if (dims != before) steps.push_back(shape);
    before = std::move(dims);
  }
  return steps;
}

/// Shapes to compare a module at, the most telling ones first: the ends of the whole and of each
/// part, those where outputs become longer, then others, drawn. Without symbols the one shape.
std::vector<SymbolValues> compared_shapes(const LoadedModule& module, const NetworkRanges* ranges) {
  const std::vector<Symbol>& symbols = module.symbols();
  const SymbolBox box = box_of(symbols);
  std::vector<SymbolValues> shapes = {box.max};
  if (symbols.empty()) return shapes;
  const auto add = [&](const SymbolValues& shape) {
    if (shapes.size() < kShapes && std::ranges::find(shapes, shape) == shapes.end())
      shapes.push_back(shape);
  };
  add(box.min);
  Rng rng(2);
  const auto draw = [&](int64_t odds) {
    SymbolValues shape;
    for (const Symbol& symbol : symbols)
      shape.push_back(symbol.min + rng.below(symbol.max - symbol.min + 1) / odds);
    add(shape);
  };
  for (int i = 0; i < 4; ++i) draw(1);
  if (ranges != nullptr) {
    for (const PartitionRange& range : ranges->ranges) {
      add(range.box.min);
      add(range.box.max);
    }
  }
  for (size_t s = 0; s < symbols.size(); ++s)
    for (const SymbolValues& step : steps_of(module, s)) add(step);
  // Half of the others among the short ones, where a tile is as long as its axis.
  for (size_t i = 0; i < 2 * kShapes; ++i) draw(i % 2 == 0 ? 1 : 16);
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
  return wrong.empty() && error <= bound &&
         static_cast<double>(differing) <= kMostDiffering * static_cast<double>(integers);
}

namespace {

/// Runs one phase of two modules at a shape and compares all outputs.
Result<Unit> compare_phase(LoadedModule& a,
                           int phase_of_a,
                           LoadedModule& b,
                           int phase_of_b,
                           const SymbolValues& extents_of_a,
                           const SymbolValues& extents_of_b,
                           Agreement& agreement) {
  TRY_ASSIGN(const TensorSpecs specs, a.specs_at(extents_of_a, phase_of_a));
  TRY_ASSIGN(const TensorSpecs others, b.specs_at(extents_of_b, phase_of_b));
  TRY(check_same(specs.inputs, others.inputs));
  TRY(check_same(specs.outputs, others.outputs));
  const std::vector<Tensor> inputs = seeded_inputs(specs.inputs, 0);
  TRY_ASSIGN(const std::vector<Tensor> of_a, a.run(inputs, phase_of_a));
  TRY_ASSIGN(const std::vector<Tensor> of_b, b.run(inputs, phase_of_b));
  compare(of_a, of_b, specs.outputs, agreement);
  return Unit{};
}

/// Merges the agreement found at a shape into that of the shapes before.
void merge(Agreement& all, const Agreement& found, const std::string& where) {
  all.bound = std::max(all.bound, found.bound);
  all.differing += found.differing;
  all.integers += found.integers;
  all.modules += found.modules;
  all.shapes += found.shapes;
  all.elements += found.elements;
  // A shape whose integers are wrong is not lost among others: a few may differ at each.
  const double most = std::max(1.0, kMostDiffering * static_cast<double>(found.integers));
  std::string wrong = found.wrong;
  if (wrong.empty() && static_cast<double>(found.differing) > most)
    wrong = std::to_string(found.differing) + " of " + std::to_string(found.integers) +
            " integers differ";
  if (all.wrong.empty() && !wrong.empty())
    all.wrong = where.empty() ? wrong : "at " + where + " " + wrong;
  if (found.output.empty() || found.error <= all.error) return;
  all.error = found.error;
  all.output = found.output;
  all.element = found.element;
  all.where = where;
}

/// Interprets a graph, or a single operator's DAG.
class Reference {
 public:
  static Result<Reference> of(const Phase& phase, const SymbolValues& extents) {
    Reference reference(phase.partition);
    if (phase.graph_at) {
      TRY_ASSIGN(Graph graph, phase.graph_at(extents));
      reference.graph_ = std::make_shared<const Graph>(std::move(graph));
    } else if (phase.ranges != nullptr && phase.ranges->at) {
      TRY_ASSIGN(const Partition at, phase.ranges->at(extents));
      reference.graph_ = at.graph;
    } else {
      reference.graph_ = phase.partition.graph;
    }
    return reference;
  }

  /// Return the types of the inputs and the outputs, in the caller's order, without the states.
  std::vector<TensorSpec> inputs() const { return specs(true); }
  std::vector<TensorSpec> outputs() const { return specs(false); }

  /// Returns elements of each output at its positions. `states` are the tensors of the inputs that
  /// the caller does not give; `state_specs` names them.
  std::vector<std::vector<double>> elements(std::span<const Tensor> inputs,
                                            std::span<const TensorSpec> state_specs,
                                            std::span<const Tensor> states,
                                            std::span<const std::vector<int64_t>> positions,
                                            int jobs) const {
    std::vector<std::vector<double>> values;
    if (graph_ == nullptr) {
      const Group& group = partition_.groups.front();
      std::vector<Tensor> all;
      size_t given = 0;
      for (const ValueId id : group.inputs)
        all.push_back(partition_[id].constant ? *partition_[id].constant : inputs[given++]);
      values.push_back(
          interpret_elements(group.dag, all, group.dag.outputs().front(), positions.front()));
      return values;
    }
    std::map<ValueId, Tensor> known;
    size_t given = 0;
    for (size_t i = 0; i < graph_->inputs.size(); ++i) {
      const ValueId id = graph_->inputs[i];
      if (!is_state(i, &State::input)) {
        known.emplace(id, inputs[given++]);
        continue;
      }
      for (size_t s = 0; s < state_specs.size(); ++s)
        if (state_specs[s].name == (*graph_)[id].name) known.emplace(id, states[s]);
    }
    GraphElements interpreter(*graph_, std::move(known), jobs);
    size_t output = 0;
    for (size_t i = 0; i < graph_->outputs.size(); ++i)
      if (!is_state(i, &State::output))
        values.push_back(interpreter.at(graph_->outputs[i], positions[output++]));
    return values;
  }

 private:
  explicit Reference(const Partition& partition) : partition_(partition) {}

  bool is_state(size_t place, int State::*of) const {
    return std::ranges::any_of(
        graph_->states, [&](const State& state) { return state.*of == static_cast<int>(place); });
  }

  std::vector<TensorSpec> specs(bool of_inputs) const {
    std::vector<TensorSpec> made;
    if (graph_ == nullptr) {
      for (const ValueId id : of_inputs ? partition_.inputs : partition_.outputs)
        made.push_back({partition_[id].name, partition_[id].dtype, partition_[id].shape});
      return made;
    }
    const std::vector<ValueId>& ids = of_inputs ? graph_->inputs : graph_->outputs;
    for (size_t i = 0; i < ids.size(); ++i) {
      const Value& value = (*graph_)[ids[i]];
      if (!is_state(i, of_inputs ? &State::input : &State::output))
        made.push_back({value.name, value.dtype, value.shape});
    }
    return made;
  }

  const Partition& partition_;
  std::shared_ptr<const Graph> graph_;  // null: the DAG of the only group
};

/// Runs a phase and compares drawn elements of its outputs with the reference's. Integers of the
/// inputs are below `index`.
Result<Agreement> compare_with_reference(LoadedModule& module,
                                         int phase,
                                         const Phase& given,
                                         const SymbolValues& extents,
                                         int jobs,
                                         int64_t index = 2) {
  Agreement agreement{.output = {}, .bound = bound_of(module)};
  TRY_ASSIGN(const Reference reference, Reference::of(given, extents));
  TRY_ASSIGN(const TensorSpecs specs, module.specs_at(extents, phase));
  for (const auto& [is, wanted] : {std::pair(specs.inputs, reference.inputs()),
                                   std::pair(specs.outputs, reference.outputs())}) {
    if (const Result<Unit> same = check_same(is, wanted); !same.ok()) {
      agreement.wrong = same.error().message();
      return agreement;
    }
  }
  const std::vector<Tensor> states = module.read_states();
  std::vector<Tensor> inputs = seeded_inputs(specs.inputs, 0);
  for (Tensor& tensor : inputs)
    for (int64_t i = 0; index == 1 && !is_float(tensor.dtype()) && i < tensor.num_elements(); ++i)
      tensor.set_int(i, 0);
  TRY_ASSIGN(const std::vector<Tensor> outputs, module.run(inputs, phase));
  const int64_t each = outputs.size() * kElements <= kAtAll
                           ? kElements
                           : std::max<int64_t>(1, kAtAll / outputs.size());
  Rng rng(5);
  std::vector<std::vector<int64_t>> positions;
  for (const Tensor& output : outputs) {
    std::set<int64_t> drawn;
    const int64_t count = output.num_elements();
    for (int64_t i = 0; i < each && count > 0; ++i)
      drawn.insert(i == 0 ? count - 1 : rng.below(count));
    positions.emplace_back(drawn.begin(), drawn.end());
  }
  const std::vector<std::vector<double>> wanted =
      reference.elements(inputs, module.states(), states, positions, jobs);
  agreement.shapes = 1;
  for (size_t o = 0; o < outputs.size(); ++o) {
    double largest = 0;
    for (int64_t i = 0; i < outputs[o].num_elements(); ++i)
      if (const double value = std::abs(outputs[o].get(i)); std::isfinite(value))
        largest = std::max(largest, value);
    for (size_t e = 0; e < positions[o].size(); ++e) {
      const int64_t element = positions[o][e];
      const double value = outputs[o].get(element), right = wanted[o][e];
      ++agreement.elements;
      const bool same = value == right || (std::isnan(value) && std::isnan(right));
      if (!is_float(outputs[o].dtype())) {
        ++agreement.integers;
        agreement.differing += same ? 0 : 1;
        continue;
      }
      double error =
          same ? 0 : std::abs(value - right) / std::max({largest, std::abs(right), kLeastNormal});
      if (std::isnan(error)) error = HUGE_VAL;
      if (error <= agreement.error) continue;
      agreement.error = error;
      agreement.output = specs.outputs[o].name;
      agreement.element = element;
    }
  }
  return agreement;
}

/// Stops a comparison over a range after some time, but not before its first few shapes.
class Patience {
 public:
  bool goes_on(size_t done) const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return done < kFewestShapes || passed.count() < kSeconds;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Compares a module of a range with modules of single shapes, each of the network imported at its
/// shape.
Result<Agreement> compare_with_single_shapes(LoadedModule& module,
                                             const Phase& phase,
                                             const std::vector<SymbolValues>& shapes,
                                             const Target& target,
                                             int jobs) {
  Agreement all{.output = {}, .bound = bound_of(module)};
  const Patience patience;
  TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
  const std::string other = folder.path("other.so");
  for (size_t i = 0; i < shapes.size() && patience.goes_on(i); ++i) {
    // A module that was compiled for some extents alone has no plan for the others.
    if (!module.specs_at(shapes[i]).ok()) continue;
    TRY_ASSIGN(Partition at, phase.ranges->at(shapes[i]));
    const Phase alone[] = {{"main", std::move(at)}};
    TRY(build_module(
        alone, target, drawn_schedule, {.jobs = jobs, .work_dir = "", .check = false}, other));
    TRY_ASSIGN(LoadedModule single, load_module(other, target.threads));
    Agreement found{.output = {}, .bound = std::max(all.bound, bound_of(single))};
    found.modules = 1;
    const Result<Unit> compared = compare_phase(module, 0, single, 0, shapes[i], {}, found);
    if (!compared.ok()) found.wrong = compared.error().message();
    merge(all, found, print(phase.ranges->symbols, shapes[i]));
  }
  return all;
}

/// Compares the stages of a pipeline, each as a module by itself, with the interpreter; equal
/// stages are compared once.
Result<Agreement> compare_stages(std::span<const Phase> stages, const Target& target, int jobs) {
  Agreement all;
  std::set<std::string> seen;
  TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
  const std::string path = folder.path("stage.so");
  for (const Phase& stage : stages) {
    std::string kind;
    for (const Group& group : stage.partition.groups) kind += group.key + "\n";
    if (!seen.insert(kind).second) continue;
    Phase alone = stage;
    alone.pipeline.reset();
    // `check` is on, since a kernel of a range is right at all shapes if it was checked at them.
    TRY(build_module(
        std::span(&alone, 1), target, drawn_schedule, {.jobs = jobs, .work_dir = ""}, path));
    TRY_ASSIGN(LoadedModule module, load_module(path, target.threads));
    int shapes = 0;
    for (const SymbolValues& shape : compared_shapes(module, stage.ranges.get())) {
      if (shapes == kFewestShapes) break;
      if (!module.symbols().empty() && !module.specs_at(shape).ok()) continue;
      Result<Agreement> found = compare_with_reference(module, 0, alone, shape, jobs);
      // An axis of one element has no element 1.
      if (!found.ok()) found = compare_with_reference(module, 0, alone, shape, jobs, 1);
      if (!found.ok()) return found.error();
      merge(all, *found, stage.name + " " + print(module.symbols(), shape));
      ++shapes;
    }
  }
  return all;
}

}  // namespace

Result<Agreement> compare_outputs(const std::string& module,
                                  const std::string& other,
                                  int threads) {
  TRY_ASSIGN(LoadedModule a, load_module(module, threads));
  TRY_ASSIGN(LoadedModule b, load_module(other, threads));
  if (a.phases() != b.phases())
    return Error("the module's phases are not those of what it is compared with");
  TRY(check_same(a.states(), b.states()));
  Agreement agreement{.output = {}, .bound = std::max(bound_of(a), bound_of(b))};
  agreement.modules = 1;
  for (int phase = 0; phase < std::ssize(a.phases()); ++phase) {
    for (const SymbolValues& extents : compared_shapes(a, nullptr)) {
      // Modules that were compiled for some extents alone have no plan for the others.
      if (!a.specs_at(extents, phase).ok() && !b.specs_at(extents, phase).ok()) continue;
      TRY(compare_phase(a, phase, b, phase, extents, extents, agreement));
    }
  }
  compare(a.read_states(), b.read_states(), a.states(), agreement);
  return agreement;
}

Result<Agreement> verify_module(const std::string& path,
                                std::span<const Phase> phases,
                                const Target& target,
                                int jobs) {
  Agreement all;
  const NetworkRanges* const ranges = phases.front().ranges.get();
  if (ranges == nullptr || phases.front().pipeline != nullptr) {
    TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
    const std::string other = folder.path("other.so");
    const bool staged = phases.front().pipeline != nullptr;  // over ranges
    TRY(build_module(
        phases, target, drawn_schedule, {.jobs = jobs, .work_dir = "", .check = staged}, other));
    TRY_ASSIGN(all, compare_outputs(path, other, target.threads));
  }
  if (phases.front().pipeline != nullptr) {
    TRY_ASSIGN(const Agreement stages, compare_stages(phases, target, jobs));
    merge(all, stages, stages.where);
    return all;
  }
  TRY_ASSIGN(LoadedModule module, load_module(path, target.threads));
  const std::vector<SymbolValues> shapes = compared_shapes(module, ranges);
  if (ranges != nullptr && ranges->at) {
    TRY_ASSIGN(all, compare_with_single_shapes(module, phases.front(), shapes, target, jobs));
  }
  const Patience patience;
  for (int p = 0; p < std::ssize(phases); ++p) {
    for (size_t i = 0; i < shapes.size() && (p > 0 || patience.goes_on(i)); ++i) {
      if (!module.specs_at(shapes[i], p).ok()) continue;
      const Phase& phase = phases[static_cast<size_t>(p)];
      TRY_ASSIGN(const Agreement found, compare_with_reference(module, p, phase, shapes[i], jobs));
      merge(all, found, print(module.symbols(), shapes[i]));
    }
  }
  return all;
}

}  // namespace pruner
