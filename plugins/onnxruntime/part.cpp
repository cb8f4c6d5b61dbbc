#include "onnxruntime/part.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

namespace pruner::ort {

static constexpr size_t kInlineBytes = 1024;  // larger constants lie in the weights file
static constexpr size_t kAlignment = 64;
static constexpr int64_t kGuessedBatch = 1;    // an open first dimension
static constexpr int64_t kGuessedExtent = 64;  // and any other

bool Part::is_static() const {
  return std::ranges::all_of(inputs, [](const NamedType& input) {
    return std::ranges::all_of(input.type.shape, [](int64_t extent) { return extent >= 0; });
  });
}

// How often paths to a node change between nodes that are taken and others, at most. Two nodes of
// one number have no node of another kind between them: on the way through it the number grows
// twice.
static std::vector<int> changes(const GraphText& graph, const std::vector<bool>& taken) {
  std::vector<int> numbers(graph.nodes.size(), 0);
  std::map<std::string, size_t> producers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const NodeText& node = graph.nodes[i];
    int number = taken[i] ? 0 : 1;
    const auto follow = [&](const std::string& name) {
      const auto it = producers.find(name);
      if (it == producers.end()) return;
      number = std::max(number, numbers[it->second] + (taken[it->second] != taken[i] ? 1 : 0));
    };
    for (const std::string& name : node.inputs) follow(name);
    for (const std::string& name : node.captured) follow(name);
    numbers[i] = number;
    for (const std::string& name : node.outputs) producers[name] = i;
  }
  return numbers;
}

namespace {

// Sets of nodes that values join.
class Sets {
 public:
  explicit Sets(size_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), 0); }
  size_t root(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parents_[root(b)] = root(a); }

 private:
  std::vector<size_t> parents_;
};

}  // namespace

// Makes a part of nodes, with the values that the nodes read from outside and that others read.
static Part part_of(const GraphText& graph, std::vector<int> nodes) {
  Part part{std::move(nodes), {}, {}, {}};
  const std::set<int> inside(part.nodes.begin(), part.nodes.end());
  std::set<std::string> made, seen, read(graph.outputs.begin(), graph.outputs.end());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (inside.contains(static_cast<int>(i))) continue;
    read.insert(graph.nodes[i].inputs.begin(), graph.nodes[i].inputs.end());
    read.insert(graph.nodes[i].captured.begin(), graph.nodes[i].captured.end());
  }
  for (const int i : part.nodes) {
    const NodeText& node = graph.nodes[static_cast<size_t>(i)];
    for (const std::string& name : node.inputs) {
      if (name.empty() || made.contains(name) || !seen.insert(name).second) continue;
      if (graph.constants.contains(name)) {
        part.constants.push_back(name);
      } else {
        part.inputs.push_back({name, graph.types.at(name)});
      }
    }
    for (const std::string& name : node.outputs) {
      made.insert(name);
      if (!name.empty() && read.contains(name))
        part.outputs.push_back({name, graph.types.at(name)});
    }
  }
  return part;
}

std::vector<Part> cut(const GraphText& graph, const std::vector<bool>& taken) {
  const std::vector<int> numbers = changes(graph, taken);
  const size_t count = graph.nodes.size();
  Sets sets(count);
  std::map<std::string, size_t> producers;
  for (size_t i = 0; i < count; ++i) {
    for (const std::string& name : graph.nodes[i].inputs) {
      const auto it = producers.find(name);
      if (it != producers.end() && taken[i] && taken[it->second] &&
          numbers[it->second] == numbers[i])
        sets.join(it->second, i);
    }
    for (const std::string& name : graph.nodes[i].outputs) producers[name] = i;
  }
  std::map<size_t, std::vector<int>> members;
  for (size_t i = 0; i < count; ++i) {
    if (taken[i]) members[sets.root(i)].push_back(static_cast<int>(i));
  }
  std::vector<Part> parts;
  for (auto& [root, nodes] : members) parts.push_back(part_of(graph, std::move(nodes)));
  return parts;
}

std::vector<int64_t> filled(const TensorType& type, const Dims& dims) {
  std::vector<int64_t> shape = type.shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto it = dims.find(type.dim_names[d]);
    if (shape[d] < 0 && it != dims.end()) shape[d] = it->second;
  }
  return shape;
}

// ModelProto: graph 7; GraphProto: node 1, name 2, initializer 5, and the values.
enum Field : int { kGraph = 7, kInput = 11, kOutput = 12, kInside = 13 };

static int64_t guess(size_t d) { return d == 0 ? kGuessedBatch : kGuessedExtent; }

std::vector<int64_t> guessed(const TensorType& type, const Dims& dims) {
  std::vector<int64_t> shape = filled(type, dims);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) shape[d] = guess(d);
  }
  return shape;
}

Dims with_guesses(const GraphText& graph, Dims given) {
  for (const std::string& name : graph.inputs) {
    const TensorType& type = graph.types.at(name);
    for (size_t d = 0; d < type.shape.size(); ++d) {
      if (type.shape[d] < 0 && !type.dim_names[d].empty())
        given.try_emplace(type.dim_names[d], guess(d));
    }
  }
  return given;
}

// ValueInfoProto: name 1, type 2; TypeProto: tensor_type 1; its elem_type 1, shape 2; dim 1, whose
// dim_value is 1 and dim_param 2. An extent of -1 has its name, or is left open without one; and so
// is the shape without `ranked`.
static Message value_message(const NamedType& value, const std::vector<int64_t>* shape) {
  Message tensor, type;
  tensor.number(1, value.type.element_type);
  if (shape != nullptr) {
    Message dims;
    for (size_t d = 0; d < shape->size(); ++d) {
      const int64_t extent = (*shape)[d];
      const std::string& dim = d < value.type.dim_names.size() ? value.type.dim_names[d] : "";
      dims.message(1,
                   extent >= 0   ? Message().number(1, extent)
                   : dim.empty() ? Message()
                                 : Message().block(2, dim));
    }
    tensor.message(2, dims);
  }
  type.message(1, tensor);
  return Message().block(1, value.name).message(2, type);
}

// TensorProto: dims 1, data_type 2, name 8, raw_data 9, external_data 13 with key 1 and value 2,
// data_location 14, of which 1 is EXTERNAL. `place` moves behind what is said to be in the file.
static Message constant_message(const std::string& name,
                                const Constant& constant,
                                const std::string& weights,
                                size_t& place) {
  Message tensor;
  for (const int64_t extent : constant.type.shape) tensor.number(1, extent);
  tensor.number(2, constant.type.element_type).block(8, name);
  if (constant.bytes <= kInlineBytes) {
    return tensor.block(9, {static_cast<const char*>(constant.data), constant.bytes});
  }
  const auto entry = [&](const char* key, const std::string& text) {
    tensor.message(13, Message().block(1, key).block(2, text));
  };
  entry("location", weights);
  entry("offset", std::to_string(place));
  entry("length", std::to_string(constant.bytes));
  place += (constant.bytes + kAlignment - 1) / kAlignment * kAlignment;
  return tensor.number(14, 1);
}

namespace {

// A ModelProto of some nodes: ir_version 1, producer 2, opset_import 8 with domain 1 and version 2.
class ModelWriter {
 public:
  ModelWriter(const GraphText& text, const std::string& weights) : text_(text), weights_(weights) {
    graph_.block(2, "part");
  }

  void node(const NodeText& node) { graph_.message(1, node.message); }
  void constant(const std::string& name) {
    graph_.message(5, constant_message(name, text_.constants.at(name), weights_, place_));
  }
  void value(int field, const NamedType& value, const std::vector<int64_t>* shape) {
    graph_.message(field, value_message(value, shape));
  }
  std::string bytes() const {
    Message model;
    model.number(1, text_.ir_version).block(2, "onnxruntime").message(kGraph, graph_);
    for (const auto& [domain, version] : text_.opsets)
      model.message(8, Message().block(1, domain).number(2, version));
    return model.bytes();
  }

 private:
  const GraphText& text_;
  const std::string& weights_;
  Message graph_;
  size_t place_ = 0;
};

}  // namespace

std::string onnx_of(const GraphText& graph, const Part& part, const std::string& weights) {
  ModelWriter model(graph, weights);
  for (const int i : part.nodes) model.node(graph.nodes[static_cast<size_t>(i)]);
  for (const std::string& name : part.constants) model.constant(name);
  for (const NamedType& output : part.outputs) model.value(kOutput, output, nullptr);
  return model.bytes();
}

std::string onnx_of(const std::vector<NamedType>& inputs,
                    const std::vector<std::vector<int64_t>>& shapes) {
  Message graph;
  for (size_t i = 0; i < inputs.size(); ++i)
    graph.message(kInput, value_message(inputs[i], &shapes[i]));
  return Message().message(kGraph, graph).bytes();
}

std::string onnx_of(const GraphText& graph, const Dims& dims, const std::string& weights) {
  ModelWriter model(graph, weights);
  const std::set<std::string> inputs(graph.inputs.begin(), graph.inputs.end());
  const std::set<std::string> outputs(graph.outputs.begin(), graph.outputs.end());
  for (const NodeText& node : graph.nodes) model.node(node);
  for (const auto& [name, constant] : graph.constants) model.constant(name);
  for (const auto& [name, type] : graph.types) {
    if (graph.constants.contains(name)) continue;
    const int field = inputs.contains(name) ? kInput : outputs.contains(name) ? kOutput : kInside;
    const std::vector<int64_t> shape = field == kInput ? guessed(type, dims) : filled(type, dims);
    model.value(field, {name, type}, type.ranked ? &shape : nullptr);
  }
  return model.bytes();
}

Result<Unit> write_weights(const GraphText& graph,
                           const std::vector<std::string>& constants,
                           const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  const std::string zeros(kAlignment, '\0');
  for (const std::string& name : constants) {
    const Constant& constant = graph.constants.at(name);
    if (constant.bytes <= kInlineBytes) continue;
    file.write(static_cast<const char*>(constant.data),
               static_cast<std::streamsize>(constant.bytes));
    const size_t rest = constant.bytes % kAlignment;
    if (rest > 0) file.write(zeros.data(), static_cast<std::streamsize>(kAlignment - rest));
  }
  file.close();
  if (!file) return Error(path, ": cannot be written; is the disk full?");
  return Unit{};
}

Result<Unit> reserve_weights(const GraphText& graph, const std::string& path) {
  size_t bytes = 0;
  for (const auto& [name, constant] : graph.constants) bytes += constant.bytes + kAlignment;
  std::ofstream(path, std::ios::binary).close();
  std::error_code code;
  std::filesystem::resize_file(path, bytes, code);
  if (code) return Error(path, ": cannot be made: ", code.message());
  return Unit{};
}

}  // namespace pruner::ort
