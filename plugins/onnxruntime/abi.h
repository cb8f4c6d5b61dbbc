// The part of ONNX Runtime's C interface that a plug-in execution provider needs, in our own words:
// its headers come with no package. The interface only grows: the places of functions in a table
// and of fields in a struct are those of version 23 (ONNX Runtime 1.23), and stay
// (https://onnxruntime.ai/docs/execution-providers/plugin-ep-libraries).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pruner::ort {

inline constexpr uint32_t kApiVersion = 23;

// Types that ONNX Runtime owns and we only point to.
struct Status;
struct Value;  // a tensor
struct TypeInfo;
struct TensorInfo;
struct ValueInfo;  // a named value of a graph
struct Graph;
struct Node;
struct Attribute;
struct KernelContext;
struct SessionOptions;
struct Logger;
struct HardwareDevice;
struct EpDevice;
struct GraphSupport;
struct ComputeContext;
struct KeyValues;
struct MemoryInfo;
struct MemoryDevice;
struct Allocator;
struct SyncStream;
struct DataTransfer;
struct RunOptions;

enum class ErrorCode : int { kFail = 1, kInvalidArgument = 2, kNotImplemented = 9, kEpFail = 11 };
enum class LogLevel : int { kVerbose = 0, kInfo = 1, kWarning = 2 };
enum class DeviceType : int { kCpu = 0 };
enum class AttributeType : int {
  kInt = 1,
  kInts = 2,
  kFloat = 3,
  kFloats = 4,
  kString = 5,
  kStrings = 6,  // one after the other, each with a 0 behind it
  kGraph = 7,
  kTensor = 8
};
enum class Compatibility : int {
  kNotApplicable = 0,
  kOptimal = 1,
  kRecompile = 2,
  kUnsupported = 3
};

struct EpApi;
struct EditorApi;

/// Functions of a table that we do not call.
template <size_t kCount>
struct Unused {
  void* functions[kCount];
};

/// A Status* is null or an error, which the caller releases.
struct Api {
  Status* (*create_status)(ErrorCode code, const char* message);
  Unused<1> before_get_error_message;
  const char* (*get_error_message)(const Status* status);
  Unused<48> before_get_tensor_mutable_data;
  Status* (*get_tensor_mutable_data)(Value* value, void** data);
  Unused<3> before_cast_type_info_to_tensor_info;
  Status* (*cast_type_info_to_tensor_info)(const TypeInfo* type, const TensorInfo** info);
  Status* (*get_onnx_type)(const TypeInfo* type, int* kind);
  Unused<3> before_get_tensor_element_type;
  Status* (*get_tensor_element_type)(const TensorInfo* info, int* element_type);
  Status* (*get_dimensions_count)(const TensorInfo* info, size_t* rank);
  Status* (*get_dimensions)(const TensorInfo* info, int64_t* extents, size_t rank);
  Status* (*get_symbolic_dimensions)(const TensorInfo* info, const char** names, size_t rank);
  Unused<1> before_get_tensor_type_and_shape;
  Status* (*get_tensor_type_and_shape)(const Value* value, TensorInfo** info);
  Unused<24> before_kernel_context_get_input;
  Status* (*kernel_context_get_input)(const KernelContext* context,
                                      size_t index,
                                      const Value** value);
  Status* (*kernel_context_get_output)(
      KernelContext* context, size_t index, const int64_t* extents, size_t rank, Value** value);
  Unused<1> before_release_status;
  void (*release_status)(Status* status);
  Unused<2> before_release_value;
  void (*release_value)(Value* value);
  Unused<2> before_release_tensor_info;
  void (*release_tensor_info)(TensorInfo* info);
  Unused<111> before_create_attribute;
  Status* (*create_attribute)(
      const char* name, const void* data, int count, AttributeType type, Attribute** attribute);
  void (*release_attribute)(Attribute* attribute);
  Unused<24> before_has_session_config_entry;
  Status* (*has_session_config_entry)(const SessionOptions* options, const char* key, int* found);
  Status* (*get_session_config_entry)(const SessionOptions* options,
                                      const char* key,
                                      char* value,
                                      size_t* bytes);
  Unused<8> before_logger_log_message;
  Status* (*logger_log_message)(const Logger* logger,
                                LogLevel level,
                                const char* message,
                                const char* file,
                                int line,
                                const char* function);
  Unused<24> before_read_attribute;
  Status* (*read_attribute)(
      const Attribute* attribute, AttributeType type, void* data, size_t bytes, size_t* needed);
  Unused<16> before_get_value_info_name;
  Status* (*get_value_info_name)(const ValueInfo* value, const char** name);
  Status* (*get_value_info_type_info)(const ValueInfo* value, const TypeInfo** type);
  const EditorApi* (*get_model_editor_api)();
  Unused<6> before_get_key_value_pairs;
  void (*get_key_value_pairs)(const KeyValues* pairs,
                              const char* const** keys,
                              const char* const** values,
                              size_t* count);
  Unused<1> before_release_key_value_pairs;
  void (*release_key_value_pairs)(KeyValues* pairs);
  Unused<6> before_hardware_device_type;
  DeviceType (*hardware_device_type)(const HardwareDevice* device);
  Unused<9> before_get_ep_api;
  const EpApi* (*get_ep_api)();
  Status* (*get_tensor_size_in_bytes)(const Value* value, size_t* bytes);
  Unused<7> before_value_info_get_initializer_value;
  Status* (*value_info_get_initializer_value)(const ValueInfo* info, const Value** value);
  Unused<4> before_value_info_is_constant_initializer;
  Status* (*value_info_is_constant_initializer)(const ValueInfo* info, bool* is_constant);
  Unused<2> before_graph_get_model_path;
  Status* (*graph_get_model_path)(const Graph* graph, const char** path);
  Status* (*graph_get_onnx_ir_version)(const Graph* graph, int64_t* version);
  Status* (*graph_get_num_operator_sets)(const Graph* graph, size_t* count);
  Status* (*graph_get_operator_sets)(const Graph* graph,
                                     const char** domains,
                                     int64_t* versions,
                                     size_t count);
  Status* (*graph_get_num_inputs)(const Graph* graph, size_t* count);
  Status* (*graph_get_inputs)(const Graph* graph, const ValueInfo** inputs, size_t count);
  Status* (*graph_get_num_outputs)(const Graph* graph, size_t* count);
  Status* (*graph_get_outputs)(const Graph* graph, const ValueInfo** outputs, size_t count);
  Unused<2> before_graph_get_num_nodes;
  Status* (*graph_get_num_nodes)(const Graph* graph, size_t* count);
  Status* (*graph_get_nodes)(const Graph* graph, const Node** nodes, size_t count);
  Status* (*graph_get_parent_node)(const Graph* graph, const Node** node);
  Unused<2> before_node_get_name;
  Status* (*node_get_name)(const Node* node, const char** name);
  Status* (*node_get_operator_type)(const Node* node, const char** op);
  Status* (*node_get_domain)(const Node* node, const char** domain);
  Unused<1> before_node_get_num_inputs;
  Status* (*node_get_num_inputs)(const Node* node, size_t* count);
  Status* (*node_get_inputs)(const Node* node, const ValueInfo** inputs, size_t count);
  Status* (*node_get_num_outputs)(const Node* node, size_t* count);
  Status* (*node_get_outputs)(const Node* node, const ValueInfo** outputs, size_t count);
  Status* (*node_get_num_implicit_inputs)(const Node* node, size_t* count);
  Status* (*node_get_implicit_inputs)(const Node* node, const ValueInfo** inputs, size_t count);
  Status* (*node_get_num_attributes)(const Node* node, size_t* count);
  Status* (*node_get_attributes)(const Node* node, const Attribute** attributes, size_t count);
  Status* (*node_get_attribute_by_name)(const Node* node,
                                        const char* name,
                                        const Attribute** attribute);
  Status* (*attribute_get_tensor)(const Attribute* attribute, Value** value);
  Status* (*attribute_get_type)(const Attribute* attribute, AttributeType* type);
  Status* (*attribute_get_name)(const Attribute* attribute, const char** name);
  Unused<13> before_get_tensor_data;
  Status* (*get_tensor_data)(const Value* value, const void** data);
  Status* (*get_session_options_config_entries)(const SessionOptions* options, KeyValues** pairs);
};

constexpr size_t number(size_t offset) { return offset / sizeof(void*); }
static_assert(number(offsetof(Api, get_error_message)) == 2);
static_assert(number(offsetof(Api, get_tensor_type_and_shape)) == 65);
static_assert(number(offsetof(Api, release_tensor_info)) == 99);
static_assert(number(offsetof(Api, get_session_config_entry)) == 238);
static_assert(number(offsetof(Api, read_attribute)) == 272);
static_assert(number(offsetof(Api, release_key_value_pairs)) == 300);
static_assert(number(offsetof(Api, get_ep_api)) == 317);
static_assert(number(offsetof(Api, graph_get_nodes)) == 345);
static_assert(number(offsetof(Api, get_session_options_config_entries)) == 379);

struct ApiBase {
  const Api* (*get_api)(uint32_t version);  // null: ONNX Runtime is older
  const char* (*get_version)();
};

struct FusionOptions {
  uint32_t version = kApiVersion;
  bool drop_constant_initializers = true;  // none is an input: the provider has copies of them
};

struct EpFactory;
struct EpApi {
  Status* (*create_ep_device)(EpFactory* factory,
                              const HardwareDevice* device,
                              const KeyValues* metadata,
                              const KeyValues* options,
                              EpDevice** made);
  void (*release_ep_device)(EpDevice* device);
  Status* (*add_nodes_to_fuse)(GraphSupport* support,
                               const Node* const* nodes,
                               size_t count,
                               const FusionOptions* options);
  Status* (*add_single_node)(GraphSupport* support, const Node* node);
  const char* (*node_name)(const ComputeContext* context);
};

struct EditorApi {
  Unused<6> before_create_node;
  Status* (*create_node)(const char* op,
                         const char* domain,
                         const char* name,
                         const char* const* inputs,
                         size_t num_inputs,
                         const char* const* outputs,
                         size_t num_outputs,
                         Attribute** attributes,
                         size_t num_attributes,
                         Node** node);
};

// A provider implements these structs of functions. Each begins with the version that it was made
// for, so that ONNX Runtime reads no field that came later. Null: not implemented.

/// Holds the functions that compute a fused node.
struct NodeCompute {
  uint32_t version = kApiVersion;
  Status* (*create_state)(NodeCompute* self, ComputeContext* context, void** state) = nullptr;
  Status* (*compute)(NodeCompute* self, void* state, KernelContext* context) = nullptr;
  void (*release_state)(NodeCompute* self, void* state) = nullptr;
};

/// The provider of a session.
struct Ep {
  uint32_t version = kApiVersion;
  const char* (*get_name)(const Ep* self) = nullptr;
  Status* (*get_capability)(Ep* self, const Graph* graph, GraphSupport* support) = nullptr;
  Status* (*compile)(Ep* self,
                     const Graph** graphs,
                     const Node** fused,
                     size_t count,
                     NodeCompute** computes,
                     Node** contexts) = nullptr;
  void (*release_node_computes)(Ep* self, NodeCompute** computes, size_t count) = nullptr;
  Status* (*get_preferred_layout)(Ep* self, int* layout) = nullptr;
  Status* (*should_convert_layout)(
      Ep* self, const char* domain, const char* op, int layout, int* should) = nullptr;
  Status* (*set_dynamic_options)(Ep* self,
                                 const char* const* keys,
                                 const char* const* values,
                                 size_t count) = nullptr;
  Status* (*on_run_start)(Ep* self, const RunOptions* options) = nullptr;
  Status* (*on_run_end)(Ep* self, const RunOptions* options, bool sync) = nullptr;
  Status* (*create_allocator)(Ep* self, const MemoryInfo* info, Allocator** allocator) = nullptr;
  Status* (*create_sync_stream)(Ep* self,
                                const MemoryDevice* device,
                                SyncStream** stream) = nullptr;
  const char* (*get_compatibility)(Ep* self, const Graph* graph) = nullptr;
};

/// Makes providers, of every session with the library.
struct EpFactory {
  uint32_t version = kApiVersion;
  const char* (*get_name)(const EpFactory* self) = nullptr;
  const char* (*get_vendor)(const EpFactory* self) = nullptr;
  Status* (*get_supported_devices)(EpFactory* self,
                                   const HardwareDevice* const* devices,
                                   size_t count,
                                   EpDevice** supported,
                                   size_t most,
                                   size_t* made) = nullptr;
  Status* (*create_ep)(EpFactory* self,
                       const HardwareDevice* const* devices,
                       const KeyValues* const* metadata,
                       size_t count,
                       const SessionOptions* options,
                       const Logger* logger,
                       Ep** ep) = nullptr;
  void (*release_ep)(EpFactory* self, Ep* ep) = nullptr;
  uint32_t (*get_vendor_id)(const EpFactory* self) = nullptr;
  const char* (*get_version)(const EpFactory* self) = nullptr;
  Status* (*validate_compatibility)(EpFactory* self,
                                    const HardwareDevice* const* devices,
                                    size_t count,
                                    const char* text,
                                    Compatibility* found) = nullptr;
  Status* (*create_allocator)(EpFactory* self,
                              const MemoryInfo* info,
                              const KeyValues* options,
                              Allocator** allocator) = nullptr;
  void (*release_allocator)(EpFactory* self, Allocator* allocator) = nullptr;
  Status* (*create_data_transfer)(EpFactory* self, DataTransfer** transfer) = nullptr;
  bool (*is_stream_aware)(const EpFactory* self) = nullptr;
  Status* (*create_sync_stream)(EpFactory* self,
                                const MemoryDevice* device,
                                const KeyValues* options,
                                SyncStream** stream) = nullptr;
};

}  // namespace pruner::ort
