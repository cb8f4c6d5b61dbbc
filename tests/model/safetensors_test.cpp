#include "model/safetensors.h"

#include <cstring>

#include "golden.h"
#include "model/checkpoints.h"
#include "own_path.h"

namespace pruner {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

TEST(Safetensors, AreLaidOutAsTheFormatSays) {
  const SafetensorsFile file{.metadata = {{"mode", "base_only"}},
                             .tensors = {{"a", {{2, 1}, {1, -2}}}, {"b", {{}, {0.5f}}}}};
  const std::string bytes = print_safetensors(file);
  const std::string header = R"({"__metadata__":{"mode":"base_only"},)"
                             R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[],"data_offsets":[8,12]}})";
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ((bytes.size() - 12) % 8, 0u);  // the data is aligned
  const Result<SafetensorsFile> read = parse_safetensors(bytes);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->metadata, file.metadata);
  EXPECT_EQ(read->tensors, file.tensors);
}

TEST(Safetensors, NameWhatIsDamaged) {
  EXPECT_ERROR(parse_safetensors("short"), "truncated");
  EXPECT_ERROR(parse_safetensors(std::string(8, '\xff') + "{}"), "truncated");
  EXPECT_ERROR(parse_safetensors(file_of("[]", "")), "header: expected an object");
  EXPECT_ERROR(parse_safetensors(file_of("{\"__metadata__\": {\"a\": 1}}", "")),
               "metadata \"a\": expected a string");
  const auto tensor = [](const std::string& type, const std::string& shape, const char* offsets) {
    return parse_safetensors(file_of("{\"w\": {\"dtype\": \"" + type + "\", \"shape\": " + shape +
                                         ", \"data_offsets\": " + offsets + "}}",
                                     "12345678"));
  };
  EXPECT_TRUE(tensor("F32", "[2]", "[0, 8]").ok());
  EXPECT_ERROR(tensor("BF16", "[4]", "[0, 8]"), "tensor \"w\": type BF16, expected F32");
  EXPECT_ERROR(tensor("F32", "[2]", "[0, 12]"), "tensor \"w\": truncated");
  EXPECT_ERROR(tensor("F32", "[1]", "[0, 8]"), "its shape needs 4 bytes, there are 8");
  EXPECT_ERROR(tensor("F32", "[-1]", "[0, 8]"), "a negative extent");
  EXPECT_ERROR(tensor("F32", "[4611686018427387904, 4]", "[0, 8]"), "more elements than");
  EXPECT_ERROR(tensor("F32", "[2]", "[8, 0]"), "data_offsets are damaged");
}

TEST(Safetensors, OfOtherFeaturesOrNetworksAreRefused) {
  const std::string path = own_path("other.safetensors");
  ASSERT_TRUE(save_weights(path, random_weights(kPacm, 1)).ok());
  SafetensorsFile file = *parse_safetensors(*read_file(path));
  file.metadata["feature_version"] = "5";
  ASSERT_TRUE(write_file(path, print_safetensors(file)).ok());
  EXPECT_ERROR(load_weights(path),
               "weights for features of version \"5\", expected \"1\" or \"2\" or \"3\" or \"4\"");
  file.metadata["architecture"] = "gpt";
  ASSERT_TRUE(write_file(path, print_safetensors(file)).ok());
  EXPECT_ERROR(load_weights(path),
               "architecture \"gpt\", expected \"pacm\", \"tenset-mlp\" or \"tlp\"");
  file.metadata["architecture"] = "tlp";
  file.metadata["feature_version"] = "1";
  file.metadata["primitives"] = "avr 25 22";
  ASSERT_TRUE(write_file(path, print_safetensors(file)).ok());
  EXPECT_ERROR(load_weights(path), R"(primitives "avr 25 22", expected such as "llvm 25 22 log")");
  file = *parse_safetensors(print_safetensors(file));
  file.metadata["architecture"] = "pacm";
  file.metadata["feature_version"] = "1";
  file.tensors.erase("scale.dataflow");
  ASSERT_TRUE(write_file(path, print_safetensors(file)).ok());
  EXPECT_ERROR(load_weights(path), "it has no scales of data flow (23 numbers)");
}

}  // namespace
}  // namespace pruner
