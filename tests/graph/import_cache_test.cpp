#include "graph/import_cache.h"

#include <set>
#include <utility>

#include "graph/onnx/onnx_model.h"
#include "graph/partition.h"
#include "graph/small_graph.h"
#include "support/file.h"
#include "support/parallel_for.h"
#include "target/target.h"

namespace pruner {
namespace {

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())};
}

// Whether all constants of the partitions, which the passes have gone over, are equal bit for bit.
void expect_equal(const Partition& a, const Partition& b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t v = 0; v < a.values.size(); ++v) {
    const std::optional<Tensor>&x = a.values[v].constant, &y = b.values[v].constant;
    ASSERT_EQ(x.has_value(), y.has_value()) << a.values[v].name;
    if (!x) continue;
    EXPECT_EQ(x->shape(), y->shape()) << a.values[v].name;
    EXPECT_TRUE(bytes_of(*x) == bytes_of(*y)) << a.values[v].name;
  }
}

// Bytes of constants that do not lie in the memory of the other's.
int64_t unshared_bytes(const Partition& a, const Partition& b) {
  std::set<const void*> memory;
  for (const PlannedValue& value : a.values)
    if (value.constant) memory.insert(value.constant->data());
  int64_t bytes = 0;
  for (const PlannedValue& value : b.values)
    if (value.constant && !memory.contains(std::as_const(*value.constant).data()))
      bytes += value.constant->bytes();
  return bytes;
}

int64_t constant_bytes(const Partition& a) { return unshared_bytes({}, a); }

Partition network_at(const char* name, NetworkOptions options) {
  return *partition(*build_network(name, options), Target());
}

TEST(ImportCache, GivesBuiltInNetworksEqualWeightsInOneMemory) {
  for (const char* name : {"bert_tiny", "mobilenet_v2"}) {
    const auto cache = std::make_shared<ImportCache>();
    const auto at = [&](int64_t extent, std::shared_ptr<ImportCache> shared) {
      NetworkOptions options;
      options.cache = std::move(shared);
      (name[0] == 'b' ? options.sequence_length : options.image_size) = extent;
      return network_at(name, options);
    };
    const Partition first = at(64, cache), second = at(96, cache);
    expect_equal(first, at(64, nullptr));
    expect_equal(second, at(96, nullptr));
    EXPECT_LT(unshared_bytes(first, second), constant_bytes(first) / 20) << name;
  }
}

TEST(ImportCache, ServesSeveralThreads) {
  NetworkOptions options;
  const Partition expected = network_at("bert_tiny", options);
  options.cache = std::make_shared<ImportCache>();
  std::vector<Partition> made(8);
  parallel_for(
      8, 4, [&](int64_t i) { made[static_cast<size_t>(i)] = network_at("bert_tiny", options); });
  for (const Partition& one : made) expect_equal(one, expected);
}

// y = x w' with w' the transpose of an initializer, for n rows.
OnnxModel product() {
  OnnxModel model;
  model.input("x", {1, 128}).output("y");
  auto& dim = *model.graph()
                   .mutable_input(0)
                   ->mutable_type()
                   ->mutable_tensor_type()
                   ->mutable_shape()
                   ->mutable_dim(0);
  dim.clear_dim_value();
  dim.set_dim_param("n");
  std::vector<double> numbers(64 * 128);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  const Tensor w = floats({64, 128}, numbers);
  auto& weight = model.initializer("w", onnx::TensorProto::FLOAT, {64, 128});
  weight.set_raw_data(std::string(bytes_of(w)));
  model.node("Transpose", {"w"}, {"t"});
  model.node("MatMul", {"x", "t"}, {"y"});
  return model;
}

TEST(ImportCache, ReadsAFileOnce) {
  const std::string path = scratch_path("m.onnx");
  ASSERT_TRUE(write_file(path, product().bytes()).ok());
  const auto at = [&](int64_t n, std::shared_ptr<ImportCache> cache) {
    NetworkOptions options;
    options.dims["n"] = n;
    options.cache = std::move(cache);
    return *partition(*import_onnx(path, options), Target());
  };
  const Partition alone = at(3, nullptr);
  const auto cache = std::make_shared<ImportCache>();
  const Partition first = at(2, cache);
  // A later change of the file does not matter.
  ASSERT_TRUE(write_file(path, "no model").ok());
  const Partition second = at(3, cache);
  expect_equal(second, alone);
  EXPECT_LT(unshared_bytes(first, second), constant_bytes(first) / 20);
}

}  // namespace
}  // namespace pruner
