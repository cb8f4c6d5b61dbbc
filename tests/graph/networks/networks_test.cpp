#include <gtest/gtest.h>

#include "golden.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

double mean_square(const Tensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) sum += tensor.get(i) * tensor.get(i);
  return sum / static_cast<double>(tensor.num_elements());
}

// Small enough to interpret; the passes have to keep what they compute.
TEST(Networks, KeepTheirMeaningAndSize) {
  NetworkOptions options;
  options.image_size = 32;
  options.sequence_length = 3;
  for (const char* name : {"resnet_18", "mobilenet_v2"}) {
    const Graph graph = *build_network(name, options);
    const std::vector<Tensor> outputs = run_graph(graph, {waves({1, 3, 32, 32})});
    EXPECT_GT(mean_square(outputs[0]), 0.1) << name;
    EXPECT_LT(mean_square(outputs[0]), 10) << name;
  }
}

TEST(Networks, FollowTheirOptions) {
  NetworkOptions options;
  options.batch_size = 2;
  options.image_size = 64;
  options.sequence_length = 16;
  const Graph resnet = *build_network("resnet_50", options);
  EXPECT_EQ(resnet[resnet.inputs[0]].shape, (Ints{2, 3, 64, 64}));
  EXPECT_EQ(resnet[resnet.outputs[0]].shape, (Ints{2, 1000}));
  const Graph bert = *build_network("bert_tiny", options);
  EXPECT_EQ(bert[bert.inputs[0]].shape, (Ints{2, 16}));
  EXPECT_EQ(bert[bert.inputs[0]].dtype, DType::kInt64);
  EXPECT_EQ(bert[bert.outputs[0]].shape, (Ints{2, 16, 512}));
}

TEST(Networks, HaveOneSeed) {
  const Graph a = *build_network("resnet_18", {}), b = *build_network("resnet_18", {});
  for (size_t i = 0; i < a.values.size(); ++i) {
    ASSERT_EQ(a.values[i].constant.has_value(), b.values[i].constant.has_value());
    if (!a.values[i].constant) continue;
    ASSERT_EQ(std::memcmp(a.values[i].constant->data(),
                          b.values[i].constant->data(),
                          static_cast<size_t>(a.values[i].constant->bytes())),
              0)
        << a.values[i].name;
  }
}

TEST(Networks, ErrorsSayWhatThereIs) {
  EXPECT_ERROR(build_network("resnet50", {}),
               "there is no network \"resnet50\"; built in are bert_tiny, mobilenet_v2, resnet_18, "
               "resnet_50");
  NetworkOptions options;
  options.image_size = 8;
  options.sequence_length = 1000;
  EXPECT_ERROR(build_network("resnet_18", options), "image size 8, expected 32 to 4096");
  EXPECT_ERROR(build_network("bert_tiny", options), "sequence length 1000, expected 1 to 512");
  options.batch_size = 0;
  EXPECT_ERROR(build_network("resnet_18", options), "batch size 0, expected 1 to 4096");
}

}  // namespace
}  // namespace pruner
