// Sequences and optionals of tensors. How many tensors a sequence has is known when the model is
// read, so that none is left in the graph.
#include <algorithm>

#include "graph/onnx/constructs.h"
#include "graph/ops/op.h"

namespace pruner {

static Outputs add_sequence(const ConstructCall& call) {
  std::vector<ValueId> list;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    TRY_ASSIGN(const ValueId id, call.tensor(i));
    list.push_back(id);
  }
  return {{list}};
}

// The place that input i says, among `size`; one below 0 counts from the end.
static Result<size_t> position(const ConstructCall& call, size_t i, size_t size) {
  TRY_ASSIGN(const ValueId id, call.tensor(i));
  TRY_ASSIGN(int64_t at, call.known(id, "the position"));
  const auto n = static_cast<int64_t>(size);
  if (at < 0) at += n;
  if (at < 0 || at >= n) return call.error("position ", at, " is not one of ", n);
  return static_cast<size_t>(at);
}

static Outputs add_sequence_at(const ConstructCall& call) {
  TRY_ASSIGN(const std::vector<ValueId> list, call.sequence(0));
  TRY_ASSIGN(const size_t at, position(call, 1, list.size()));
  return {{list[at]}};
}

// Before the position that is given, or at the end.
static Outputs add_sequence_insert(const ConstructCall& call) {
  TRY_ASSIGN(std::vector<ValueId> list, call.sequence(0));
  TRY_ASSIGN(const ValueId inserted, call.tensor(1));
  size_t at = list.size();
  if (call.has(2)) {
    TRY_ASSIGN(const ValueId id, call.tensor(2));
    TRY_ASSIGN(int64_t given, call.known(id, "the position"));
    const auto n = static_cast<int64_t>(list.size());
    if (given < 0) given += n;
    if (given < 0 || given > n) return call.error("position ", given, " is not one of ", n + 1);
    at = static_cast<size_t>(given);
  }
  list.insert(list.begin() + static_cast<int64_t>(at), inserted);
  return {{list}};
}

static Outputs add_sequence_erase(const ConstructCall& call) {
  TRY_ASSIGN(std::vector<ValueId> list, call.sequence(0));
  if (list.empty()) return call.error("the sequence is empty");
  size_t at = list.size() - 1;
  if (call.has(1)) {
    TRY_ASSIGN(at, position(call, 1, list.size()));
  }
  list.erase(list.begin() + static_cast<int64_t>(at));
  return {{list}};
}

static Outputs add_sequence_length(const ConstructCall& call) {
  TRY_ASSIGN(const std::vector<ValueId> list, call.sequence(0));
  const auto n = static_cast<int64_t>(list.size());
  return {{call.importer.add_integer(call.name, n)}};
}

static Outputs add_concat_from_sequence(const ConstructCall& call) {
  TRY_ASSIGN(std::vector<ValueId> list, call.sequence(0));
  if (list.empty()) return call.error("the sequence is empty");
  const int64_t axis = call.integer("axis", 0);
  if (call.integer("new_axis", 0) != 0) {
    const ValueId axes = call.importer.add_integers(call.name + "/axes", {{axis}});
    for (ValueId& id : list) {
      TRY_ASSIGN(const auto made,
                 call.importer.add("Unsqueeze", {id, axes}, {}, call.name + "/part"));
      id = made[0];
    }
  }
  TRY_ASSIGN(const auto joined,
             call.importer.add("Concat", std::move(list), {{"axis", axis}}, call.name));
  return {{joined[0]}};
}

// The sizes of the parts along an axis of `extent`: one number is the size of all but the last.
static Result<std::vector<int64_t>> part_sizes(const ConstructCall& call, int64_t extent) {
  TRY(call.importer.check_unfolded(call.has(1) ? 0 : extent));
  if (!call.has(1)) return std::vector<int64_t>(static_cast<size_t>(extent), 1);
  TRY_ASSIGN(const ValueId split, call.tensor(1));
  TRY_ASSIGN(std::vector<int64_t> sizes, call.known_integers(split, "split"));
  if (!call.value(split).shape.empty()) return sizes;
  const int64_t size = sizes[0];
  if (size < 1) return call.error("split is ", size, ", expected 1 or more");
  TRY(call.importer.check_unfolded(extent / size));
  sizes.clear();
  for (int64_t start = 0; start < extent; start += size)
    sizes.push_back(std::min(size, extent - start));
  return sizes;
}

static Outputs add_split_to_sequence(const ConstructCall& call) {
  TRY_ASSIGN(const ValueId data, call.tensor(0));
  const std::vector<int64_t> shape = call.value(data).shape;
  const Result<int64_t> axis =
      normal_axis(call.integer("axis", 0), static_cast<int64_t>(shape.size()));
  if (!axis.ok()) return call.error(axis.error().message());
  TRY_ASSIGN(const std::vector<int64_t> sizes, part_sizes(call, shape[static_cast<size_t>(*axis)]));
  if (sizes.empty()) return {{std::vector<ValueId>()}};
  const ValueId split = call.importer.add_integers(call.name + "/split", sizes);
  TRY_ASSIGN(std::vector<ValueId> list,
             call.importer.add("Split", {data, split}, {{"axis", *axis}}, call.name, sizes.size()));
  // ONNX: keepdims counts only where no split is given.
  if (call.has(1) || call.integer("keepdims", 1) != 0) return {{list}};
  const ValueId axes = call.importer.add_integers(call.name + "/axes", {{*axis}});
  for (ValueId& id : list) {
    TRY_ASSIGN(const auto made, call.importer.add("Squeeze", {id, axes}, {}, call.name + "/part"));
    id = made[0];
  }
  return {{list}};
}

// Hands on its input; without an input, the optional is empty.
static Outputs add_optional(const ConstructCall& call) {
  return {{call.inputs.empty() ? Entry(ValueId{}) : call.inputs[0]}};
}

static Outputs add_optional_get_element(const ConstructCall& call) {
  if (!call.has(0)) return call.error("the optional has no value");
  return {{call.inputs[0]}};
}

static Outputs add_optional_has_element(const ConstructCall& call) {
  Tensor answer(DType::kBool, {});
  answer.set_int(0, call.has(0) ? 1 : 0);
  return {{call.importer.add_constant(call.name, std::move(answer))}};
}

static constexpr Construct kSequences[] = {
    {"ConcatFromSequence", add_concat_from_sequence},
    {"Optional", add_optional},
    {"OptionalGetElement", add_optional_get_element},
    {"OptionalHasElement", add_optional_has_element},
    {"SequenceAt", add_sequence_at},
    {"SequenceConstruct", add_sequence},
    {"SequenceEmpty", add_sequence},
    {"SequenceErase", add_sequence_erase},
    {"SequenceInsert", add_sequence_insert},
    {"SequenceLength", add_sequence_length},
    {"SplitToSequence", add_split_to_sequence},
};

std::span<const Construct> sequences() { return kSequences; }

}  // namespace pruner
