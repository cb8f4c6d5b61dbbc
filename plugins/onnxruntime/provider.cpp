// ONNX Runtime's plug-in execution provider: it claims the parts of a network that Pruner compiles
// and runs each as a module; the rest stays with ONNX Runtime.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "onnxruntime/compiled_part.h"
#include "onnxruntime/program.h"
#include "onnxruntime/scratch.h"

namespace pruner::ort {

namespace fs = std::filesystem;

static constexpr char kName[] = "PrunerExecutionProvider";
static constexpr char kVendor[] = "Pruner";
static constexpr char kContextOp[] = "EPContext", kContextDomain[] = "com.microsoft";
// A part that holds one of these is worth a border, however small it is.
static const std::set<std::string> kProducts = {"Attention",
                                                "Conv",
                                                "ConvInteger",
                                                "ConvTranspose",
                                                "Einsum",
                                                "GRU",
                                                "Gemm",
                                                "GroupQueryAttention",
                                                "LSTM",
                                                "MatMul",
                                                "MatMulInteger",
                                                "MultiHeadAttention",
                                                "QLinearConv",
                                                "QLinearMatMul",
                                                "RNN"};

// Returns the result of `function`; an exception of the standard library becomes an error.
template <typename Function>
static Result<Unit> guarded(Function function) {
  try {
    return function();
  } catch (const std::exception& thrown) {
    return Error(thrown.what());
  }
}

static std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

namespace {

// A fused node: a part, and where its tensors stand among the node's.
struct FusedNode : NodeCompute {
  FusedNode(const Calls& calls, std::shared_ptr<CompiledPart> compiled)
      : ort(calls), part(std::move(compiled)) {
    create_state = [](NodeCompute* self, ComputeContext*, void** state) -> Status* {
      *state = self;
      return nullptr;
    };
    compute = [](NodeCompute* self, void*, KernelContext* context) -> Status* {
      auto* node = static_cast<FusedNode*>(self);
      return node->ort.status(guarded([&] { return node->run(context); }));
    };
    release_state = [](NodeCompute*, void*) {};
  }

  Result<Unit> bind(const Node* fused);
  Result<Unit> run(KernelContext* context);

  const Calls& ort;
  const std::shared_ptr<CompiledPart> part;
  std::map<std::string, size_t> input_places, output_places;

 private:
  using Shapes = std::map<std::string, std::vector<int64_t>>;  // an input's by its name

  Result<std::shared_ptr<Instances>> module_for(const Shapes& shapes);
  Result<Unit> run(Module& module, const Shapes& shapes, KernelContext* context);
  Result<std::vector<int64_t>> shape_of(const Value* value) const;
};

Result<Unit> FusedNode::bind(const Node* fused) {
  TRY_ASSIGN(const auto inputs, input_names(ort, fused));
  for (size_t i = 0; i < inputs.size(); ++i) input_places[inputs[i]] = i;
  TRY_ASSIGN(const auto outputs, output_names(ort, fused));
  for (size_t i = 0; i < outputs.size(); ++i) output_places[outputs[i]] = i;
  return Unit{};
}

// Returns the place of a module's tensor among those of the node.
Result<size_t> place_of(const std::map<std::string, size_t>& places, const char* name) {
  const auto it = places.find(name);
  if (it == places.end()) return Error("the node has no tensor \"", name, "\"");
  return it->second;
}

Result<std::vector<int64_t>> FusedNode::shape_of(const Value* value) const {
  TRY_ASSIGN(TensorInfo * info, ort.get<TensorInfo*>(ort->get_tensor_type_and_shape, value));
  size_t rank = 0;
  Result<Unit> read = ort.check(ort->get_dimensions_count(info, &rank));
  std::vector<int64_t> shape(rank);
  if (read.ok()) read = ort.check(ort->get_dimensions(info, shape.data(), rank));
  ort->release_tensor_info(info);
  TRY(read);
  return shape;
}

Result<Unit> FusedNode::run(KernelContext* context) {
  Shapes shapes;  // this run's, where the part's are not all known
  for (const NamedType& input : part->inputs()) {
    if (part->is_static()) break;
    TRY_ASSIGN(const size_t place, place_of(input_places, input.name.c_str()));
    TRY_ASSIGN(const Value* value,
               ort.get<const Value*>(ort->kernel_context_get_input, context, place));
    TRY_ASSIGN(std::vector<int64_t> shape, shape_of(value));
    shapes[input.name] = std::move(shape);
  }
  TRY_ASSIGN(const std::shared_ptr<Instances> instances, module_for(shapes));
  TRY_ASSIGN(Module module, instances->take());
  const Result<Unit> done = run(module, shapes, context);
  instances->give_back(std::move(module));
  return done;
}

Result<std::shared_ptr<Instances>> FusedNode::module_for(const Shapes& shapes) {
  if (part->is_static()) return part->only();
  std::vector<std::vector<int64_t>> in_order;
  for (const NamedType& input : part->inputs()) in_order.push_back(shapes.at(input.name));
  return part->at(in_order);
}

Result<Unit> FusedNode::run(Module& module, const Shapes& shapes, KernelContext* context) {
  std::vector<const void*> inputs(static_cast<size_t>(module.num_inputs()));
  std::vector<void*> outputs(static_cast<size_t>(module.num_outputs()));
  std::vector<int64_t> input_dims, output_dims, extents(static_cast<size_t>(module.num_symbols()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const char* name = module.input(static_cast<int>(i)).name;
    TRY_ASSIGN(const size_t place, place_of(input_places, name));
    const Value* value = nullptr;
    TRY(ort.check(ort->kernel_context_get_input(context, place, &value)));
    TRY(ort.check(ort->get_tensor_data(value, &inputs[i])));
    if (extents.empty()) continue;
    const std::vector<int64_t>& shape = shapes.at(name);
    input_dims.insert(input_dims.end(), shape.begin(), shape.end());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const PrunerTensorSpec& spec = module.output(static_cast<int>(i));
    output_dims.insert(output_dims.end(), spec.shape, spec.shape + spec.rank);
  }
  if (!extents.empty() &&
      (!module.extents(0, input_dims.data(), extents.data()) ||
       !module.shapes(0, extents.data(), input_dims.data(), output_dims.data())))
    return Error(module.error());
  const int64_t* shape = output_dims.data();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const PrunerTensorSpec& spec = module.output(static_cast<int>(i));
    const auto rank = static_cast<size_t>(spec.rank);
    TRY_ASSIGN(const size_t place, place_of(output_places, spec.name));
    Value* value = nullptr;
    TRY(ort.check(ort->kernel_context_get_output(context, place, shape, rank, &value)));
    TRY(ort.check(ort->get_tensor_mutable_data(value, &outputs[i])));
    shape += rank;
  }
  const bool done = extents.empty()
                        ? module.run(inputs.data(), outputs.data())
                        : module.run_shaped(0, extents.data(), inputs.data(), outputs.data());
  if (!done) return Error(module.error());
  return Unit{};
}

// The provider of a session.
class Provider : public Ep {
 public:
  Provider(const Calls& ort, const EpApi& ep_api, Settings settings, const Logger* logger);

 private:
  Result<Unit> claim(const Graph* graph, GraphSupport* support);
  Result<std::vector<bool>> survey(const GraphText& graph, const Dims& dims) const;
  bool is_worth(const GraphText& graph, const Part& part) const;
  Result<Unit> add(const std::vector<const Node*>& nodes,
                   GraphSupport* support,
                   const FusionOptions& options = {}) const;
  Result<bool> is_ours(const NodeText& node) const;

  Result<Unit> compile(const Graph** graphs,
                       const Node** fused,
                       size_t count,
                       NodeCompute** computes,
                       Node** contexts);
  Result<std::shared_ptr<CompiledPart>> compiled(const Graph* graph, const Node* fused) const;
  Result<std::shared_ptr<CompiledPart>> from_context(const Graph* graph,
                                                     const NodeText& node) const;
  Result<Node*> context_node(const Graph* graph,
                             const Node* fused,
                             const CompiledPart& part,
                             size_t index) const;
  Result<std::string> keep_context(const Graph* graph,
                                   const std::string& module,
                                   size_t index) const;

  void say(LogLevel level, const std::string& text) const;

  const Calls& ort_;
  const EpApi& ep_api_;
  const Settings settings_;
  const Logger* logger_;
  std::map<std::string, std::shared_ptr<CompiledPart>> parts_;  // keys: first outputs of the parts
  std::set<std::string> captured_;  // initializers that branches and loop bodies read
};

Provider::Provider(const Calls& ort, const EpApi& ep_api, Settings settings, const Logger* logger)
    : ort_(ort), ep_api_(ep_api), settings_(std::move(settings)), logger_(logger) {
  get_name = [](const Ep*) { return kName; };
  get_capability = [](Ep* self, const Graph* graph, GraphSupport* support) -> Status* {
    auto* provider = static_cast<Provider*>(self);
    const Result<Unit> claimed = guarded([&] { return provider->claim(graph, support); });
    // The session goes on without us.
    if (!claimed.ok()) provider->say(LogLevel::kWarning, claimed.error().message());
    return nullptr;
  };
  Ep::compile = [](Ep* self,
                   const Graph** graphs,
                   const Node** fused,
                   size_t count,
                   NodeCompute** computes,
                   Node** contexts) -> Status* {
    auto* provider = static_cast<Provider*>(self);
    return provider->ort_.status(
        guarded([&] { return provider->compile(graphs, fused, count, computes, contexts); }));
  };
  release_node_computes = [](Ep*, NodeCompute** computes, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<FusedNode*>(computes[i]);
  };
}

void Provider::say(LogLevel level, const std::string& text) const {
  const std::string line = "Pruner: " + text;
  if (Status* status =
          ort_->logger_log_message(logger_, level, line.c_str(), __FILE__, __LINE__, "Pruner"))
    ort_->release_status(status);
}

Result<Unit> Provider::add(const std::vector<const Node*>& nodes,
                           GraphSupport* support,
                           const FusionOptions& options) const {
  return ort_.check(ep_api_.add_nodes_to_fuse(support, nodes.data(), nodes.size(), &options));
}

// Whether the node holds a module that we made.
Result<bool> Provider::is_ours(const NodeText& node) const {
  if (node.op != kContextOp || node.domain != kContextDomain) return false;
  const Result<std::string> source = read_text(ort_, node.node, "source");
  return source.ok() && *source == kName;
}

bool Provider::is_worth(const GraphText& graph, const Part& part) const {
  return static_cast<int>(part.nodes.size()) >= settings_.min_nodes ||
         std::ranges::any_of(part.nodes, [&](int i) {
           return kProducts.contains(graph.nodes[static_cast<size_t>(i)].op);
         });
}

// Returns for each node whether the program can read it.
Result<std::vector<bool>> Provider::survey(const GraphText& graph, const Dims& dims) const {
  TRY_ASSIGN(const std::string program, find_program(settings_.program));
  const Scratch scratch(fs::temp_directory_path().string());
  if (scratch.path().empty())
    return Error(fs::temp_directory_path().string(), ": no folder can be made there");
  const std::string model = scratch.path() + "/model.onnx";
  TRY(write_bytes(onnx_of(graph, dims, "weights"), model));
  TRY(reserve_weights(graph, scratch.path() + "/weights"));
  const Result<std::string> said = run_program(program, {"check", model, "--json"}, scratch.path());
  if (!said.ok()) return said.error();
  std::vector<bool> taken(graph.nodes.size(), true);
  const nlohmann::json found = nlohmann::json::parse(*said);
  // A module's outputs have one shape.
  for (const auto& index : found.at("found")) taken.at(index.get<size_t>()) = false;
  for (const auto& node : found.at("unsupported")) {
    taken.at(node.at("index").get<size_t>()) = false;
    say(LogLevel::kInfo,
        "left to ONNX Runtime: " + node.at("name").get<std::string>() + " (" +
            node.at("op").get<std::string>() + "): " + node.at("reason").get<std::string>());
  }
  return taken;
}

Result<Unit> Provider::claim(const Graph* graph, GraphSupport* support) {
  TRY_ASSIGN(const Node* parent, ort_.get<const Node*>(ort_->graph_get_parent_node, graph));
  if (parent != nullptr) return Unit{};  // a branch or a loop's body
  TRY_ASSIGN(const GraphText text, read_graph(ort_, graph));
  if (text.nodes.empty()) return Unit{};
  bool any_ours = false;
  for (const NodeText& node : text.nodes) {
    TRY_ASSIGN(const bool ours, is_ours(node));
    if (ours) TRY(add({node.node}, support, {.drop_constant_initializers = false}));
    any_ours |= ours;
  }
  if (any_ours) return Unit{};  // the rest was left when it was compiled
  for (const NodeText& node : text.nodes) {
    for (const std::string& name : node.captured)
      if (text.initializers.contains(name)) captured_.insert(name);
  }

  Settings settings = settings_;
  settings.dims = with_guesses(text, settings.dims);
  TRY_ASSIGN(const std::vector<bool> taken, survey(text, settings.dims));
  for (const Part& part : cut(text, taken)) {
    if (!is_worth(text, part) || part.outputs.empty()) continue;
    Result<std::shared_ptr<CompiledPart>> compiled = CompiledPart::make(text, part, settings);
    const std::string what = "the part of " + std::to_string(part.nodes.size()) +
                             " nodes that makes \"" + part.outputs[0].name + "\"";
    if (!compiled.ok()) {
      say(LogLevel::kWarning, what + " is left to ONNX Runtime: " + compiled.error().message());
      continue;
    }
    parts_[part.outputs[0].name] = *std::move(compiled);
    std::vector<const Node*> nodes;
    for (const int i : part.nodes) nodes.push_back(text.nodes[static_cast<size_t>(i)].node);
    // ONNX Runtime drops the inputs that have a default, too.
    const bool has_default = std::ranges::any_of(
        part.inputs, [&](const NamedType& input) { return text.defaults.contains(input.name); });
    TRY(add(nodes, support, {.drop_constant_initializers = !has_default}));
    say(LogLevel::kInfo, what + " is compiled");
  }
  return Unit{};
}

Result<Unit> Provider::compile(const Graph** graphs,
                               const Node** fused,
                               size_t count,
                               NodeCompute** computes,
                               Node** contexts) {
  std::vector<std::unique_ptr<FusedNode>> made;
  for (size_t i = 0; i < count; ++i) {
    TRY_ASSIGN(std::shared_ptr<CompiledPart> part, compiled(graphs[i], fused[i]));
    made.push_back(std::make_unique<FusedNode>(ort_, std::move(part)));
    TRY(made.back()->bind(fused[i]));
    if (settings_.context) {
      TRY_ASSIGN(contexts[i], context_node(graphs[i], fused[i], *made.back()->part, i));
    }
  }
  for (size_t i = 0; i < count; ++i) computes[i] = made[i].release();
  return Unit{};
}

Result<std::shared_ptr<CompiledPart>> Provider::compiled(const Graph* graph,
                                                         const Node* fused) const {
  TRY_ASSIGN(const GraphText text, read_graph(ort_, graph));
  if (text.nodes.size() == 1 && text.nodes[0].op == kContextOp)
    return from_context(graph, text.nodes[0]);
  TRY_ASSIGN(const auto names, output_names(ort_, fused));
  for (const std::string& name : names) {
    if (const auto it = parts_.find(name); it != parts_.end()) return it->second;
  }
  return Error("ONNX Runtime asks for a part that was not claimed");
}

// EPContext's attributes: ONNX Runtime's EP context design.
Result<std::shared_ptr<CompiledPart>> Provider::from_context(const Graph* graph,
                                                             const NodeText& node) const {
  TRY_ASSIGN(const std::string content, read_text(ort_, node.node, "ep_cache_context"));
  const Result<int64_t> inside = read_number(ort_, node.node, "embed_mode");
  if (!inside.ok() || *inside == 0) {
    TRY_ASSIGN(const char* path, ort_.get<const char*>(ort_->graph_get_model_path, graph));
    std::string model = path == nullptr ? "" : path;
    if (model.empty()) model = settings_.context_file;
    if (fs::path(content).is_absolute() || content.find("..") != std::string::npos)
      return Error("the context names the file \"", content, "\" outside the model's folder");
    return CompiledPart::load(folder_of(model) + "/" + content, settings_);
  }
  return CompiledPart::load_bytes(content, settings_);
}

// The file beside the model that will hold the compiled parts, and its name.
Result<std::string> Provider::keep_context(const Graph* graph,
                                           const std::string& module,
                                           size_t index) const {
  std::string model = settings_.context_file;
  if (model.empty()) {
    TRY_ASSIGN(const char* path, ort_.get<const char*>(ort_->graph_get_model_path, graph));
    model = path == nullptr ? "" : path;
  }
  const std::string stem = model.empty() ? "model" : fs::path(model).stem().string();
  const std::string name = stem + "_pruner_" + std::to_string(index) + ".so";
  // A session that was made from an earlier file of this name goes on with that file.
  const std::string path = folder_of(model) + "/" + name, written = path + ".part";
  std::error_code code;
  fs::copy_file(module, written, fs::copy_options::overwrite_existing, code);
  if (!code) fs::rename(written, path, code);
  if (code) return Error(path, ": cannot be written: ", code.message());
  return name;
}

Result<Node*> Provider::context_node(const Graph* graph,
                                     const Node* fused,
                                     const CompiledPart& part,
                                     size_t index) const {
  if (!part.is_static()) {
    return Error(
        "a model with compiled parts needs inputs whose shapes are known: fix them with "
        "add_free_dimension_override_by_name()");
  }
  std::string content;
  if (settings_.context_inside) {
    std::ifstream file(part.path(), std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(file), {});
  } else {
    TRY_ASSIGN(content, keep_context(graph, part.path(), index));
  }
  TRY_ASSIGN(const char* name, ort_.get<const char*>(ort_->node_get_name, fused));
  std::vector<Attribute*> attributes;
  Result<Unit> added = Unit{};
  const auto attribute = [&](const char* key, const void* data, size_t bytes, AttributeType type) {
    Attribute* made = nullptr;
    if (added.ok())
      added = ort_.check(ort_->create_attribute(key, data, static_cast<int>(bytes), type, &made));
    if (made != nullptr) attributes.push_back(made);
  };
  const auto text = [&](const char* key, const std::string& value) {
    attribute(key, value.data(), value.size(), AttributeType::kString);
  };
  const auto number = [&](const char* key, int64_t value) {
    attribute(key, &value, 1, AttributeType::kInt);
  };
  text("ep_cache_context", content);
  text("source", kName);
  text("partition_name", name);
  text("ep_sdk_version", PRUNER_VERSION);
  number("main_context", 1);
  number("embed_mode", settings_.context_inside ? 1 : 0);

  Node* node = nullptr;
  const auto make = [&]() -> Result<Unit> {
    TRY(added);
    TRY_ASSIGN(auto inputs, input_names(ort_, fused));
    // ONNX Runtime writes the initializers that nodes of the main graph read. Those that branches
    // and loop bodies read have to be inputs of a node to be written; the module does not read
    // them.
    for (const std::string& name : captured_)
      if (index == 0 && std::ranges::find(inputs, name) == inputs.end()) inputs.push_back(name);
    TRY_ASSIGN(const auto outputs, output_names(ort_, fused));
    std::vector<const char*> in, out;
    for (const std::string& each : inputs) in.push_back(each.c_str());
    for (const std::string& each : outputs) out.push_back(each.c_str());
    return ort_.check(ort_->get_model_editor_api()->create_node(kContextOp,
                                                                kContextDomain,
                                                                name,
                                                                in.data(),
                                                                in.size(),
                                                                out.data(),
                                                                out.size(),
                                                                attributes.data(),
                                                                attributes.size(),
                                                                &node));
  };
  const Result<Unit> created = make();
  for (Attribute* each : attributes) ort_->release_attribute(each);
  TRY(created);
  return node;
}

// Makes the providers of a process's sessions.
class Factory : public EpFactory {
 public:
  explicit Factory(const Api& api) : ort_(api), ep_api_(*api.get_ep_api()) {
    get_name = [](const EpFactory*) { return kName; };
    get_vendor = [](const EpFactory*) { return kVendor; };
    get_vendor_id = [](const EpFactory*) { return uint32_t{0}; };
    get_version = [](const EpFactory*) { return PRUNER_VERSION; };
    get_supported_devices = [](EpFactory* self,
                               const HardwareDevice* const* devices,
                               size_t count,
                               EpDevice** supported,
                               size_t most,
                               size_t* made) -> Status* {
      const auto* factory = static_cast<Factory*>(self);
      *made = 0;
      for (size_t i = 0; i < count && *made < most; ++i) {
        if (factory->ort_->hardware_device_type(devices[i]) != DeviceType::kCpu) continue;
        Status* status = factory->ep_api_.create_ep_device(
            self, devices[i], nullptr, nullptr, &supported[*made]);
        if (status != nullptr) return status;
        ++*made;
      }
      return nullptr;
    };
    create_ep = [](EpFactory* self,
                   const HardwareDevice* const*,
                   const KeyValues* const*,
                   size_t,
                   const SessionOptions* options,
                   const Logger* logger,
                   Ep** ep) -> Status* {
      const auto* factory = static_cast<Factory*>(self);
      return factory->ort_.status(
          guarded([&]() -> Result<Unit> {
            TRY_ASSIGN(Settings settings, read_settings(factory->ort_, options));
            *ep = new Provider(factory->ort_, factory->ep_api_, std::move(settings), logger);
            return Unit{};
          }),
          ErrorCode::kInvalidArgument);
    };
    release_ep = [](EpFactory*, Ep* ep) { delete static_cast<Provider*>(ep); };
    create_allocator =
        [](EpFactory*, const MemoryInfo*, const KeyValues*, Allocator** allocator) -> Status* {
      *allocator = nullptr;  // the CPU's own
      return nullptr;
    };
    release_allocator = [](EpFactory*, Allocator*) {};
    create_data_transfer = [](EpFactory*, DataTransfer** transfer) -> Status* {
      *transfer = nullptr;
      return nullptr;
    };
    is_stream_aware = [](const EpFactory*) { return false; };
  }

 private:
  const Calls ort_;
  const EpApi& ep_api_;
};

}  // namespace

}  // namespace pruner::ort

/// Makes the factory. ONNX Runtime calls this function when the library is registered.
extern "C" __attribute__((visibility("default"))) pruner::ort::Status* CreateEpFactories(
    const char* /*name*/,
    const pruner::ort::ApiBase* base,
    const pruner::ort::Logger* /*logger*/,
    pruner::ort::EpFactory** factories,
    size_t most,
    size_t* made) {
  using namespace pruner::ort;
  *made = 0;
  const Api* api = base->get_api(kApiVersion);
  if (api == nullptr) {
    // Every version has the functions that errors are made by.
    return base->get_api(1)->create_status(
        ErrorCode::kFail, "Pruner's execution provider needs ONNX Runtime 1.23 or newer");
  }
  if (most < 1) return api->create_status(ErrorCode::kInvalidArgument, "no room for a factory");
  factories[(*made)++] = new Factory(*api);
  return nullptr;
}

extern "C" __attribute__((visibility("default"))) pruner::ort::Status* ReleaseEpFactory(
    pruner::ort::EpFactory* factory) {
  delete static_cast<pruner::ort::Factory*>(factory);
  return nullptr;
}
