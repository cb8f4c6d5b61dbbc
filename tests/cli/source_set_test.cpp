#include "cli/source_set.h"

#include "golden.h"
#include "own_path.h"

namespace pruner {
namespace {

Result<std::vector<SetMember>> members(const std::string& text, const SourceOptions& source = {}) {
  const std::string path = own_path("set.json");
  EXPECT_TRUE(write_file(path, text).ok());
  Result<std::vector<SetMember>> set = read_source_set(path, source);
  std::filesystem::remove(path);
  return set;
}

TEST(SourceSet, NamesNetworksAndFilesWithTheirSizes) {
  SourceOptions source;
  source.sizes.batch_size = 4;
  const auto set = members(R"({"networks": [
      {"network": "resnet_18", "image_size": 240, "batch_size": 8},
      {"network": "bert_tiny", "seq_len": 64, "name": "bert_64"},
      {"network": "bert_tiny"},
      {"model": "models/small.onnx"}]})",
                           source);
  ASSERT_TRUE(set.ok()) << set.error().message();
  std::vector<std::string> names;
  for (const SetMember& member : *set) names.push_back(member.name);
  EXPECT_EQ(names, (std::vector<std::string>{"resnet_18", "bert_64", "bert_tiny", "small"}));
  EXPECT_EQ((*set)[0].source.sizes.image_size, 240);
  EXPECT_EQ((*set)[0].source.sizes.batch_size, 8);
  EXPECT_EQ((*set)[1].source.sizes.sequence_length, 64);
  EXPECT_EQ((*set)[1].source.network, "bert_tiny");
  EXPECT_EQ((*set)[1].source.sizes.batch_size, 4);
  EXPECT_EQ((*set)[3].source.model_file, "models/small.onnx");
}

TEST(SourceSet, SaysWhatIsWrong) {
  EXPECT_ERROR(read_source_set("/nowhere/set.json", {}), "/nowhere/set.json");
  EXPECT_ERROR(members("{"), "set.json: ");
  EXPECT_ERROR(members("{}"), "networks");
  EXPECT_ERROR(members(R"({"networks": ["resnet_18"]})"), "a network of the set is no object");
  EXPECT_ERROR(members(R"({"networks": [{"network": "vit", "size": 3}]})"),
               "\"size\": 3 says nothing about a network; use name, network, model, image_size");
  EXPECT_ERROR(members(R"({"networks": [{"image_size": 224}]})"),
               "{\"image_size\": 224} needs one of \"network\" and \"model\"");
  EXPECT_ERROR(members(R"({"networks": [{"network": "vit", "model": "vit.onnx"}]})"),
               "needs one of \"network\" and \"model\"");
  EXPECT_ERROR(members(R"({"networks": [{"network": "vit"}, {"network": "vit"}]})"),
               "vit is there twice; give one of them a \"name\"");
  const auto set = members(R"({"networks": [{"network": "resnet_51", "name": "r51"}]})");
  ASSERT_TRUE(set.ok());
  EXPECT_ERROR(read_member((*set)[0], Target{}), "r51: there is no network \"resnet_51\"");
}

TEST(ListedNetworks, AreTheOperatorsEachByItself) {
  NetworkListOptions options;
  options.source.ops = {"relu 4", "relu 8"};
  const Result<std::vector<SetMember>> listed = listed_networks(options);
  ASSERT_TRUE(listed.ok()) << listed.error().message();
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[1].source.ops, std::vector<std::string>{"relu 8"});
  EXPECT_EQ((*listed)[1].name, "") << "the operator's own";
}

}  // namespace
}  // namespace pruner
