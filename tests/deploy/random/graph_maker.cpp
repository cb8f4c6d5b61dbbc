#include "graph_maker.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/evaluate.h"
#include "graph/functions/body.h"

namespace pruner {

static constexpr double kLargestWhole =
    65536;  // products of such numbers are exact sums in float32
static constexpr double kLargestReal = 100;
static constexpr double kHidden = -1e3;  // an element this low or lower is hidden
// Float32 rounds off 6e-8 of a value. Longest sums, reordered, and Winograd's transforms stay
// within this share of the largest number that took part.
static constexpr double kShare = 3e-4, kNarrowShare = 2e-2;

static bool is_unsigned(DType t) { return row_of(t).kind == DTypeKind::kUInt; }

GraphMaker::GraphMaker(uint64_t seed) : rng_(seed ^ 0x9e3779b97f4a7c15) {
  made_.seed = seed;
  made_.graph.name = "random_" + std::to_string(seed);
  whole_ = one_in(2);
  struct TypeRow {
    DType dtype;
    double weight;
  };
  static constexpr TypeRow kTypes[] = {
      {DType::kFloat32, 32},
      {DType::kFloat64, 2},
      {DType::kFloat16, 2},
      {DType::kBFloat16, 1},
      {DType::kInt32, 4},
      {DType::kInt64, 2},
      {DType::kInt8, 1},
      {DType::kUInt8, 2},
      {DType::kInt16, 1},
      {DType::kUInt16, 1},
      {DType::kUInt32, 1},
      {DType::kUInt64, 1},
  };
  std::vector<double> weights;
  for (const TypeRow& row : kTypes) weights.push_back(row.weight);
  dtype_ = kTypes[rng_.weighted(weights)].dtype;
  largest_ = one_in(5) ? 70 : 19;
}

// Odd and prime extents are the likeliest. One network in five has longer ones.
int64_t GraphMaker::extent() {
  if (largest_ > 19 && one_in(4)) return between(20, largest_);
  if (one_in(3)) return between(1, 4);
  if (one_in(3)) return choose<int64_t>({1, 2, 4, 8, 15, 16, 17, 19});
  return between(1, 19);
}

Ints GraphMaker::shape(int64_t rank) {
  Ints made;
  do {
    made.clear();
    for (int64_t d = 0; d < rank; ++d) made.push_back(extent());
  } while (element_count(made) > kMostElements / 2);
  return made;
}

Ints GraphMaker::permutation(int64_t rank) {
  Ints order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = rank; i-- > 1;) std::swap(order[i], order[rng_.below(i + 1)]);
  return order;
}

ValueId GraphMaker::add_value(Value value, Tensor tensor, Facts facts) {
  value.name = "v" + std::to_string(graph().values.size());
  made_.graph.values.push_back(std::move(value));
  made_.tensors.push_back(std::move(tensor));
  facts_.push_back(facts);
  return ValueId{static_cast<int32_t>(graph().values.size()) - 1};
}

static Facts facts_of(const Tensor& tensor) {
  Facts facts;
  facts.whole = true;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double element = tensor.get(i);
    if (std::isfinite(element)) facts.scale = std::max(facts.scale, std::abs(element));
    facts.whole = facts.whole && element == std::floor(element);
  }
  return facts;
}

ValueId GraphMaker::constant(Tensor tensor) {
  const Facts facts = facts_of(tensor);
  return add_value({"", tensor.dtype(), tensor.shape(), tensor}, tensor, facts);
}

ValueId GraphMaker::input(const Tensor& tensor) {
  const ValueId id =
      add_value({"", tensor.dtype(), tensor.shape(), std::nullopt}, tensor, facts_of(tensor));
  made_.graph.inputs.push_back(id);
  return id;
}

ValueId GraphMaker::integers(const Ints& values, DType dtype) {
  Tensor tensor(dtype, {std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i) tensor.set_int(static_cast<int64_t>(i), values[i]);
  return constant(tensor);
}

ValueId GraphMaker::scalar(double value, DType dtype) {
  Tensor tensor(dtype, {});
  tensor.set(0, value);
  return constant(tensor);
}

ValueId GraphMaker::fresh(DType dtype, const Ints& shape, bool weight) {
  Tensor tensor(dtype, shape);
  Facts facts;
  facts.whole = !is_float(dtype) || whole_;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (dtype == DType::kBool) {
      tensor.set_int(i, rng_.below(2));
    } else if (facts.whole) {
      tensor.set(i, static_cast<double>(between(is_unsigned(dtype) ? 0 : -3, 3)));
    } else {
      tensor.set(i, 2 * rng_.uniform() - 1);
    }
    facts.scale = std::max(facts.scale, std::abs(tensor.get(i)));
  }
  const bool known = weight && !one_in(5);
  Value value{"", dtype, shape, std::nullopt};
  if (known) value.constant = tensor;
  const ValueId id = add_value(std::move(value), tensor, facts);
  if (!known) made_.graph.inputs.push_back(id);
  return id;
}

ValueId GraphMaker::codes(DType dtype, const Ints& shape, bool weight) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set_int(i, between(least_int(dtype), greatest_int(dtype)));
  return weight && !one_in(5) ? constant(tensor) : input(tensor);
}

ValueId GraphMaker::positive(DType dtype, const Ints& shape) {
  const ValueId id = fresh(dtype, shape, one_in(2));
  Tensor made(dtype, shape);
  for (int64_t i = 0; i < made.num_elements(); ++i)
    made.set(
        i, is_float(dtype) && !whole_ ? 0.5 + rng_.uniform() : static_cast<double>(between(1, 4)));
  if (value(id).constant) made_.graph[id].constant = made;
  tensor(id) = made;
  return id;
}

ValueId GraphMaker::indices(const Ints& shape, int64_t extent) {
  Tensor made(one_in(3) ? DType::kInt32 : DType::kInt64, shape);
  const bool negative = one_in(3);
  for (int64_t i = 0; i < made.num_elements(); ++i)
    made.set_int(i, between(negative ? -extent : 0, extent - 1));
  if (one_in(2)) return constant(made);
  return input(made);
}

ValueId GraphMaker::pick_any() {
  return pick([](ValueId) { return true; }, shape(between(1, 4)));
}

ValueId GraphMaker::pick_number(int64_t least_rank) {
  return pick([&](ValueId id) { return number(id) && rank(id) >= least_rank; },
              shape(between(std::max<int64_t>(least_rank, 1), 4)));
}

ValueId GraphMaker::pick_real(int64_t least_rank) {
  if (!is_float(dtype_)) dtype_ = DType::kFloat32;
  return pick([&](ValueId id) { return real(id) && rank(id) >= least_rank; },
              shape(between(std::max<int64_t>(least_rank, 1), 4)));
}

ValueId GraphMaker::pick_image() {
  if (!is_float(dtype_)) dtype_ = DType::kFloat32;
  Ints otherwise;
  do {
    otherwise = {between(1, 2), extent()};
    for (int64_t d = between(1, 8) == 1 ? 1 : between(1, 8) == 1 ? 3 : 2; d-- > 0;)
      otherwise.push_back(extent());
  } while (element_count(otherwise) > kMostElements / 2);
  return pick([&](ValueId id) { return real(id) && rank(id) >= 3 && rank(id) <= 5; }, otherwise);
}

ValueId GraphMaker::partner(ValueId x) {
  const Ids fitting =
      all_that([&](ValueId id) { return dtype(id) == dtype(x) && shape_of(id) == shape_of(x); });
  if (!one_in(3)) return fitting[rng_.below(std::ssize(fitting))];
  Ints shape = shape_of(x);
  const bool grows = one_in(6);
  for (int64_t& n : shape) {
    if (one_in(3)) {
      n = 1;
    } else if (n == 1 && grows) {
      n = between(2, 5);
    }
  }
  const auto dropped = rng_.below(std::ssize(shape) + 1);
  if (one_in(3)) shape.erase(shape.begin(), shape.begin() + dropped);
  return fresh(dtype(x), shape, one_in(2));
}

void GraphMaker::undo(size_t values, size_t nodes, size_t inputs) {
  made_.graph.values.resize(values);
  made_.graph.nodes.resize(nodes);
  made_.graph.inputs.resize(inputs);
  made_.tensors.resize(values);
  facts_.resize(values);
}

void GraphMaker::loosen(ValueId id, double slack) {
  Facts& facts = facts_[static_cast<size_t>(id.value)];
  facts.slack = slack;
  facts.apart = true;
}

// Returns what follows from the operands of a node for its results.
Facts GraphMaker::known_of(Kind kind, const Ids& inputs) const {
  Facts known{true, true, 0};
  bool narrow = false;
  for (const ValueId input : inputs) {
    if (!input.valid()) continue;
    const Facts& of = facts(input);
    known.exact &= of.exact;
    known.whole &= of.whole;
    if (kind != Kind::kMasks || of.scale < -kHidden) known.scale = std::max(known.scale, of.scale);
    narrow |= is_narrow_float(dtype(input));
  }
  // The error of a function of exact numbers is a share of its values.
  if (kind == Kind::kValues && known.exact) known.scale = 0;
  const bool adds = kind == Kind::kAdds && (!known.whole || narrow);
  if (kind == Kind::kValues || kind == Kind::kSmooth || kind == Kind::kRounds || adds)
    known.exact = known.whole = false;
  if (kind == Kind::kChooses) known.scale = 0;
  known.apart = kind == Kind::kMasks || kind == Kind::kRounds;
  known.slack = kind == Kind::kRounds ? 1 : 0;
  return known;
}

// Returns what is known of a value within the body of a function.
Facts GraphMaker::within_body(ValueId id, Kind kind, const Ids& inputs) const {
  Facts facts = facts_of(made_.tensors[static_cast<size_t>(id.value)]);
  facts.exact = facts.whole = false;
  facts.apart = kind == Kind::kRounds;
  for (const ValueId input : inputs) {
    if (!input.valid()) continue;
    facts.scale = std::max(facts.scale, this->facts(input).scale);
    facts.apart |= this->facts(input).apart;
  }
  return facts;
}

// Returns whether the network may have a value that a node made, and enters its facts.
bool GraphMaker::accept(ValueId id, Kind kind, const Ids& inputs) {
  const Tensor& made = tensor(id);
  const int64_t elements = made.num_elements();
  if (elements < 1 || elements > kMostElements || made.shape().size() > 6) return false;
  Facts known = known_of(kind, inputs);
  if (is_narrow_float(made.dtype()) && kind == Kind::kAdds) known.exact = known.whole = false;
  if (!is_float(made.dtype())) {
    if (!known.exact && kind != Kind::kRounds) return false;
    known.whole = known.exact;
  }
  double largest = 0;
  for (int64_t i = 0; i < elements; ++i) {
    const double element = made.get(i);
    if (std::isnan(element)) return false;
    if (kind == Kind::kMasks && element <= kHidden) continue;
    largest = std::max(largest, std::abs(element));
  }
  const double most = !is_float(made.dtype()) ? 1 << 20
                      : known.whole           ? kLargestWhole
                                              : kLargestReal;
  if (largest > most) return false;
  known.scale = std::max(known.scale, largest);
  facts_[static_cast<size_t>(id.value)] = known;
  return true;
}

Ids GraphMaker::add(
    const std::string& op, Ids inputs, Kind kind, Attributes attributes, size_t outputs) {
  for (const ValueId input : inputs) {
    if (kind == Kind::kChooses && input.valid() && !facts(input).exact) return {};
  }
  const size_t values = graph().values.size(), nodes = graph().nodes.size();
  const size_t ins = graph().inputs.size();
  Ids made;
  for (size_t i = 0; i < outputs; ++i)
    made.push_back(add_value({"", DType::kFloat32, {}, std::nullopt}, {}, {}));
  Node node{op, "n" + std::to_string(nodes), inputs, made, std::move(attributes)};
  if (!append_call(made_.graph, std::move(node)).ok()) {
    undo(values, nodes, ins);
    return {};
  }
  made_.tensors.resize(graph().values.size());
  facts_.resize(graph().values.size());
  for (size_t v = values; v < graph().values.size(); ++v)
    if (graph().values[v].constant) made_.tensors[v] = *graph().values[v].constant;
  for (size_t n = nodes; n < graph().nodes.size(); ++n) {
    const Node& at = graph().nodes[n];
    for (const ValueId id : at.outputs) {
      if (element_count(value(id).shape) <= 4 * kMostElements) continue;
      undo(values, nodes, ins);
      return {};
    }
    std::vector<Tensor> operands;
    for (const ValueId id : at.inputs) operands.push_back(id.valid() ? tensor(id) : Tensor());
    std::vector<Tensor> results = evaluate_node(graph(), at, operands);
    for (size_t i = 0; i < results.size(); ++i) tensor(at.outputs[i]) = std::move(results[i]);
  }
  for (size_t v = values; v < graph().values.size(); ++v) {
    const ValueId id{static_cast<int32_t>(v)};
    const bool result = v < values + outputs;
    // A value within the body of a function need only be a number.
    if (!result) facts_[v] = within_body(id, kind, inputs);
    if (result && !accept(id, kind, inputs)) {
      undo(values, nodes, ins);
      return {};
    }
  }
  return made;
}

bool GraphMaker::attempt(bool (*step)(GraphMaker&)) {
  const size_t values = graph().values.size(), nodes = graph().nodes.size();
  const size_t inputs = graph().inputs.size(), kept = kept_.size(), hidden = hidden_.size();
  if (step(*this)) return true;
  undo(values, nodes, inputs);
  kept_.resize(kept);
  hidden_.resize(hidden);
  return false;
}

RandomGraph GraphMaker::finish() && {
  // The outputs are most values that no node reads, and some that a node reads.
  std::vector<bool> read(graph().values.size(), false), result(graph().values.size(), false);
  for (const Node& node : graph().nodes) {
    for (const ValueId id : node.inputs)
      if (id.valid()) read[static_cast<size_t>(id.value)] = true;
    for (const ValueId id : node.outputs)
      result[static_cast<size_t>(id.value)] = !value(id).constant && !value(id).name.empty() &&
                                              value(id).name.find('/') == std::string::npos;
  }
  Ids sinks;
  for (size_t v = 0; v < read.size(); ++v) {
    const ValueId id{static_cast<int32_t>(v)};
    if (!result[v]) continue;
    if (!read[v]) sinks.push_back(id);
    const auto is_of = [&](const Ids& ids) { return std::ranges::find(ids, id) != ids.end(); };
    if (read[v] && !is_of(hidden_) && (one_in(10) || is_of(kept_)))
      made_.graph.outputs.push_back(id);
  }
  const int64_t kept = sinks.empty() ? 0 : rng_.below(std::ssize(sinks));
  for (int64_t i = 0; i < std::ssize(sinks); ++i)
    if (i == kept || !one_in(6)) made_.graph.outputs.push_back(sinks[static_cast<size_t>(i)]);
  std::erase_if(made_.graph.inputs,
                [&](ValueId id) { return !read[static_cast<size_t>(id.value)]; });
  const bool narrow = std::ranges::any_of(
      graph().values, [](const Value& value) { return is_narrow_float(value.dtype); });
  for (const Facts& of : facts_) {
    const double share = of.exact ? 0 : narrow ? kNarrowShare : kShare;
    made_.tolerances.push_back(of.scale * share + of.slack);
  }
  return std::move(made_);
}

}  // namespace pruner
