#include "report/network_time.h"

#include <unistd.h>

#include <filesystem>
#include <regex>

#include "golden.h"

namespace pruner {
namespace {

Partition of_inputs(const std::vector<std::vector<int64_t>>& shapes) {
  Partition partition;
  for (const std::vector<int64_t>& shape : shapes) {
    partition.inputs.push_back({static_cast<int32_t>(partition.values.size())});
    partition.values.push_back({"x", DType::kFloat32, shape, std::nullopt, {}});
  }
  return partition;
}

TEST(PrintNetwork, IsWrittenAsTheReferenceDoes) {
  EXPECT_EQ(print_network("resnet_50", input_shapes(of_inputs({{1, 3, 224, 224}}))),
            "('resnet_50', [(1, 3, 224, 224)])");
  EXPECT_EQ(print_network("net", {{1, 128}, {4}}), "('net', [(1, 128), (4,)])");
}

TEST(AppendResult, AddsALineOfEightColumns) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("pruner_results_" + std::to_string(getpid())))
          .string();
  std::filesystem::remove(path);
  const Partition of = of_inputs({{4, 3, 224, 224}});
  const Target gpu = *parse_target("cuda --model=a100", 0), cpu = *parse_target("llvm", 2);
  ASSERT_TRUE(append_result(path, gpu, of, {"resnet_50", "pam", 1.6897049}).ok());
  ASSERT_TRUE(append_result(path, cpu, of, {"resnet_50", "mlp", 20}).ok());
  const std::string text = *read_file(path);
  EXPECT_TRUE(std::regex_match(
      text,
      std::regex(
          "cuda\tgpu\tnetwork\tresnet_50\\.B4\tours\tpam\t\\{'costs': '1\\.689705'\\}\t\\d{10}\\."
          "\\d{6}\n"
          "llvm\tcpu\tnetwork\tresnet_50\\.B4\tours\tmlp\t\\{'costs': '20\\.000000'\\}\t\\d{10}\\."
          "\\d{6}\n")))
      << text;
  std::filesystem::remove(path);
  EXPECT_ERROR(append_result("/no/such/results.tsv", cpu, of, {}), "cannot be written");
}

TEST(ExplainEstimate, SaysWhyTheNumbersDiffer) {
  const std::string line = explain_estimate(1.592, 3.96, 0.1, {});
  EXPECT_TRUE(line.starts_with("That is 2.49 x the estimate: the estimate adds up")) << line;
  EXPECT_TRUE(line.ends_with("\n"));
  EXPECT_EQ(explain_estimate(10, 10.4, 5, {}), "");
  EXPECT_EQ(explain_estimate(std::nullopt, 10, 1, {}), "");
  EXPECT_EQ(line.find("vary"), std::string::npos);
  EXPECT_NE(explain_estimate(10, 9, 0.1, {}), "");
  EXPECT_NE(explain_estimate(10, 20, 5, {}).find("its runs vary by 25 %"), std::string::npos);
  EXPECT_NE(explain_estimate(10, 20, 5, {2, 0.8}).find("while which other processes had 40 % of"),
            std::string::npos);
}

}  // namespace
}  // namespace pruner
