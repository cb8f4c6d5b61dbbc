#include <gtest/gtest.h>

#include "golden.h"
#include "graph/small_graph.h"
#include "tensor/check_accesses.h"

namespace pruner {
namespace {

double mean_square(const Tensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) sum += tensor.get(i) * tensor.get(i);
  return sum / static_cast<double>(tensor.num_elements());
}

NetworkOptions sized(int64_t image, int64_t sequence) {
  NetworkOptions options;
  options.image_size = image;
  options.sequence_length = sequence;
  return options;
}

// Elements that training would learn; `graph` has its weights as inputs.
int64_t parameters(const Graph& graph) {
  int64_t sum = 0;
  for (size_t i = 1; i < graph.inputs.size(); ++i) {
    const Value& value = graph[graph.inputs[i]];
    if (value.name.find(".running_") == std::string::npos) sum += element_count(value.shape);
  }
  return sum;
}

// Multiplications of convolutions and matrix products, in billions.
double giga_multiplications(const Graph& graph) {
  double sum = 0;
  for (const Node& node : graph.nodes) {
    const OpCall call{graph, node};
    const auto out = static_cast<double>(element_count(call.output().shape));
    if (node.op == "Conv") {
      sum += out * static_cast<double>(element_count(call.shape(1)) / call.shape(1)[0]);
    } else if (node.op == "MatMul" || node.op == "Gemm") {
      sum += out * static_cast<double>(call.shape(0).back());
    }
  }
  return sum / 1e9;
}

struct Published {
  const char* name;
  int64_t size, parameters;
  double giga;  // 0: not published
};

// Torchvision's documentation, of its models in evaluation: inception_v3 without the auxiliary
// classifier (3,326,696), deeplabv3_resnet50 without the auxiliary head (2,365,205; 9.991 G).
// HuggingFace's checkpoints; vit-pytorch's layers, added up; milesial's and facebookresearch's
// code, the latter with the 53,120 of the backbone's batch norms.
constexpr Published kPublished[] = {
    {"alexnet", 224, 61'100'840, 0.714},
    {"bert_base", 512, 109'482'240, 0},
    {"bert_base_seq_class", 512, 109'483'778, 0},
    {"bert_large", 512, 335'141'888, 0},
    {"bert_tiny", 512, 35'068'416, 0},
    {"clip_vit_b32", 224, 87'849'216, 0},
    {"convnext_tiny", 224, 28'589'128, 4.456},
    {"deeplabv3_resnet50", 520, 42'004'074 - 2'365'205, 178.722 - 9.991},
    {"densenet_121", 224, 7'978'856, 2.834},
    {"detr", 224, 41'524'768 + 53'120, 0},
    {"efficientnet_b0", 224, 5'288'548, 0.386},
    {"efficientnet_b4", 380, 19'341'616, 4.394},
    {"googlenet", 224, 6'624'904, 1.498},
    {"gpt2", 1024, 124'439'808, 0},
    {"inception_v3", 299, 27'161'264 - 3'326'696, 5.713},
    {"llama_135m", 128, 134'515'008, 0},
    {"mnasnet1_0", 224, 4'383'312, 0.314},
    {"mobilebert", 512, 24'581'888, 0},
    {"mobilebert_seq_class", 512, 24'582'914, 0},
    {"mobilenet_v2", 224, 3'504'872, 0.301},
    {"mobilenet_v3", 224, 5'483'032, 0.217},
    {"r3d_18", 112, 33'371'472, 40.697},
    {"regnet_y_400mf", 224, 4'344'144, 0.402},
    {"resnet3d_18", 112, 33'371'472, 0},
    {"resnet_18", 224, 11'689'512, 1.814},
    {"resnet_50", 224, 25'557'032, 4.089},
    {"resnext_50", 224, 25'028'904, 4.230},
    {"swin_t", 224, 28'288'354, 4.491},
    {"unet", 224, 17'262'977 + 20 * 65, 0},  // published with one class, ours has 21
    {"vgg_16", 224, 138'357'544, 15.470},
    {"vit", 224, 86'567'656, 17.564},
    {"vit_pruner", 256, 54'630'376, 0},
    {"whisper_tiny", 1500, 37'184'640 - 29'552'256, 0},  // the decoder is left out
    {"wide_resnet_50", 224, 68'883'240, 11.398},
};

TEST(Networks, HaveTheirPublishedSize) {
  for (const Published& p : kPublished) {
    SCOPED_TRACE(p.name);
    NetworkOptions options = sized(p.size, p.size);
    options.weights_as_inputs = true;
    const Graph graph = *build_network(p.name, options);
    EXPECT_EQ(parameters(graph), p.parameters);
    if (p.giga > 0) {
      EXPECT_NEAR(giga_multiplications(graph), p.giga, 0.002);
    }
  }
}

// Small enough to interpret; the passes have to keep what they compute.
TEST(Networks, KeepTheirMeaningAndSize) {
  for (const char* name : {"convnext_tiny",
                           "densenet_121",
                           "efficientnet_b0",
                           "googlenet",
                           "mnasnet1_0",
                           "mobilebert",
                           "mobilenet_v2",
                           "mobilenet_v3",
                           "regnet_y_400mf",
                           "resnet_18",
                           "swin_t",
                           "whisper_tiny"}) {
    SCOPED_TRACE(name);
    const Graph graph = *build_network(name, sized(32, 3));
    const Value& input = graph[graph.inputs[0]];
    const Tensor in = is_float(input.dtype) ? waves(input.shape) : integers({1, 3}, {7, 30521, 0});
    // At 1x1 a depthwise 5x5 sees little but padding.
    for (const Tensor& output : run_graph(graph, {in})) {
      EXPECT_GT(mean_square(output), 0.01);
      EXPECT_LT(mean_square(output), 10);
    }
  }
}

TEST(Networks, FollowTheirOptions) {
  NetworkOptions options = sized(64, 16);
  options.batch_size = 2;
  options.weights_as_inputs = true;
  for (const std::string& name : network_names()) {
    SCOPED_TRACE(name);
    const Result<Graph> built = build_network(name, options);
    if (name == "inception_v3" || name == "vgg_16") {
      EXPECT_ERROR(built,
                   name == "vgg_16" ? "image size 64 gives features of 2x2"
                                    : "image size 64, expected 75 to 4096");
      continue;
    }
    ASSERT_TRUE(built.ok()) << built.error().message();
    const Graph& graph = *built;
    const Value& input = graph[graph.inputs[0]];
    if (input.dtype == DType::kInt64) {
      EXPECT_EQ(input.shape, (Ints{2, 16}));
    } else if (name == "whisper_tiny") {
      EXPECT_EQ(input.shape, (Ints{2, 80, 32}));
    } else if (name == "r3d_18") {
      EXPECT_EQ(input.shape, (Ints{2, 3, 16, 64, 64}));
    } else if (name == "resnet3d_18") {  // TenSet's form
      EXPECT_EQ(input.shape, (Ints{2, 3, 64, 64, 16}));
    } else if (name != "dcgan") {
      EXPECT_EQ(input.shape, (Ints{2, 3, 64, 64}));
    }
    for (const ValueId id : graph.outputs) EXPECT_EQ(graph[id].shape[0], 2);
  }
  const auto output = [&](const char* name) {
    const Graph graph = *build_network(name, options);
    return graph[graph.outputs[0]].shape;
  };
  EXPECT_EQ(output("resnet_50"), (Ints{2, 1000}));
  EXPECT_EQ(output("bert_tiny"), (Ints{2, 16, 512}));
  EXPECT_EQ(output("bert_base_seq_class"), (Ints{2, 2}));
  EXPECT_EQ(output("mobilebert_seq_class"), (Ints{2, 2}));
  EXPECT_EQ(output("r3d_18"), (Ints{2, 400}));
  EXPECT_EQ(output("vit_pruner"), (Ints{2, 1000}));
  EXPECT_EQ(output("gpt2"), (Ints{2, 16, 50257}));
  EXPECT_EQ(output("llama_135m"), (Ints{2, 16, 49152}));
  EXPECT_EQ(output("clip_vit_b32"), (Ints{2, 512}));
  EXPECT_EQ(output("whisper_tiny"), (Ints{2, 16, 384}));
  EXPECT_EQ(output("swin_t"), (Ints{2, 1000}));
  EXPECT_EQ(output("dcgan"), (Ints{2, 3, 64, 64}));
  EXPECT_EQ(output("unet"), (Ints{2, 21, 64, 64}));
  EXPECT_EQ(output("deeplabv3_resnet50"), (Ints{2, 21, 64, 64}));
  EXPECT_EQ(output("detr"), (Ints{2, 100, 92}));
}

TEST(Networks, HaveTheirUsualSize) {
  NetworkOptions options;
  options.weights_as_inputs = true;
  const auto input = [&](const char* name) {
    const Graph graph = *build_network(name, options);
    return graph[graph.inputs[0]].shape;
  };
  EXPECT_EQ(input("resnet_18"), (Ints{1, 3, 224, 224}));
  EXPECT_EQ(input("inception_v3"), (Ints{1, 3, 299, 299}));
  EXPECT_EQ(input("bert_base"), (Ints{1, 128}));
  EXPECT_EQ(input("r3d_18"), (Ints{1, 3, 16, 112, 112}));
  EXPECT_EQ(input("vit_pruner"), (Ints{1, 3, 256, 256}));
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

// A file may hold what we make ourselves (dag_to_json), and then has to be read.
TEST(Networks, ReadInsideTheirTensors) {
  NetworkOptions options = sized(0, 16);
  options.weights_as_inputs = true;
  for (const std::string& name : network_names()) {
    const Result<Partition> cut =
        partition(*build_network(name, options), *parse_target("llvm -mcpu=haswell", 1));
    ASSERT_TRUE(cut.ok()) << name << ": " << cut.error().message();
    for (const Group& group : cut->groups) {
      const Result<Unit> inside = check_accesses(group.dag);
      EXPECT_TRUE(inside.ok()) << name << ": " << group.name << ": " << inside.error().message();
    }
  }
}

TEST(Networks, ErrorsSayWhatThereIs) {
  EXPECT_ERROR(
      build_network("resnet50", {}),
      "there is no network \"resnet50\"; built in are alexnet, bert_base, bert_base_seq_class, ");
  NetworkOptions options = sized(8, 1000);
  options.weights_as_inputs = true;
  EXPECT_ERROR(build_network("resnet_18", options), "image size 8, expected 32 to 4096");
  EXPECT_ERROR(build_network("bert_tiny", options), "sequence length 1000, expected 1 to 512");
  options.image_size = 200;
  EXPECT_ERROR(build_network("vit", options),
               "image size 200, expected a multiple of 16 from 32 to 4096");
  EXPECT_ERROR(build_network("vit_pruner", options),
               "image size 200, expected a multiple of 32 from 32 to 4096");
  EXPECT_ERROR(build_network("vgg_16", options),
               "image size 200 gives features of 6x6, which no equal windows pool to 7x7; 224");
  options.batch_size = 0;
  EXPECT_ERROR(build_network("resnet_18", options), "batch size 0, expected 1 to 4096");
}

}  // namespace
}  // namespace pruner
