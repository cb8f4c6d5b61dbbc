#include "dataset/dataset.h"

#include "dataset/dataset_writer.h"
#include "golden.h"
#include "model/safetensors.h"
#include "own_path.h"

namespace pruner {
namespace {

ProgramFeatures features_of(float first, size_t rows) {
  ProgramFeatures features;
  features.rows.assign(rows * kRowFeatures, first);
  features.dataflow.fill(-first);
  features.primitives = {9, 1, static_cast<int32_t>(first)};  // an inlined stage
  if (rows == 2) features.primitives.clear();
  return features;
}

/// A file of three programs, of which the middle one is left out.
struct DatasetTest : testing::Test {
  DatasetTest() {
    Result<DatasetWriter> writer = DatasetWriter::open(path);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(*writer->add(features_of(static_cast<float>(i + 1), static_cast<size_t>(i + 2))),
                i);
    const std::vector<DatasetRow> rows = {{0, 1, 2e-3, 11}, {2, 0, 1e10, 13}};
    const Result<Unit> done =
        writer->finish(rows, std::vector<DatasetTask>{{"[\"a\"]", "cuda"}, {"b", "llvm"}}, "[]");
    EXPECT_TRUE(done.ok()) << done.error().message();
  }
  ~DatasetTest() override { std::filesystem::remove(path); }

  /// The file with one byte changed.
  void change(size_t at) const {
    std::string bytes = *read_file(path);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    ASSERT_TRUE(write_file(path, bytes).ok());
  }

  const std::string path = own_path("a.ds");
};

TEST_F(DatasetTest, HasWhatWasWritten) {
  const Result<Dataset> dataset = Dataset::open(path);
  ASSERT_TRUE(dataset.ok()) << dataset.error().message();
  ASSERT_EQ(dataset->size(), 2);
  ASSERT_EQ(dataset->tasks().size(), 2u);
  EXPECT_EQ(dataset->tasks()[0].workload_key, "[\"a\"]");
  EXPECT_EQ(dataset->tasks()[1].target, "llvm");
  EXPECT_EQ(dataset->about(), "[]");
  EXPECT_EQ(dataset->task()[0], 1);
  EXPECT_EQ(dataset->task()[1], 0);
  EXPECT_EQ(dataset->latency_s()[0], 2e-3);
  EXPECT_EQ(dataset->latency_s()[1], 1e10);
  EXPECT_EQ(dataset->id()[1], 13u);
  ASSERT_EQ(dataset->rows(0).size(), 2u * kRowFeatures);
  ASSERT_EQ(dataset->rows(1).size(), 4u * kRowFeatures);
  for (const float value : dataset->rows(0)) ASSERT_EQ(value, 1);
  for (const float value : dataset->rows(1)) ASSERT_EQ(value, 3);
  EXPECT_TRUE(dataset->primitives(0).empty());
  EXPECT_EQ(std::vector(dataset->primitives(1).begin(), dataset->primitives(1).end()),
            (std::vector<int32_t>{9, 1, 3}));
  ASSERT_EQ(dataset->dataflow(1).size(), size_t{kDataflowSteps * kDataflowFeatures});
  for (const float value : dataset->dataflow(1)) ASSERT_EQ(value, -3);
}

TEST_F(DatasetTest, IsReadableAsSafetensors) {
  const std::string bytes = *read_file(path);
  const Result<SafetensorsHeader> header = parse_safetensors_header(bytes);
  ASSERT_TRUE(header.ok()) << header.error().message();
  EXPECT_EQ(header->metadata.at("format"), "pruner-dataset");
  EXPECT_EQ(header->entries.at("rows").shape, (std::vector<int64_t>{6, kRowFeatures}));
}

TEST_F(DatasetTest, NoDamageGoesUnseen) {
  const std::string whole = *read_file(path);
  size_t bad = 0;
  for (size_t at = 0; at < whole.size(); at += 97) {
    ASSERT_TRUE(write_file(path, whole).ok());
    change(at);
    const Result<Dataset> dataset = Dataset::open(path);
    ASSERT_FALSE(dataset.ok()) << "byte " << at;
    EXPECT_NE(dataset.error().message().find(path + ": "), std::string::npos);
    ++bad;
  }
  EXPECT_GT(bad, 50u);
  ASSERT_TRUE(write_file(path, whole).ok());
  change(whole.size() - 1);
  EXPECT_ERROR(Dataset::open(path), "damaged: its checksum is");
  ASSERT_TRUE(write_file(path, whole.substr(0, whole.size() - 100)).ok());
  EXPECT_ERROR(Dataset::open(path), "no dataset, or a damaged one");
  ASSERT_TRUE(write_file(path, "").ok());
  EXPECT_ERROR(Dataset::open(path), "no dataset, or a damaged one (truncated)");
}

TEST_F(DatasetTest, OfOtherFeaturesOrKindsIsRefused) {
  std::string bytes = *read_file(path);
  const std::string version = "\"feature_version\":\"4\"";
  const size_t at = bytes.find(version);
  ASSERT_NE(at, std::string::npos);
  bytes[at + version.size() - 2] = '1';
  ASSERT_TRUE(write_file(path, bytes).ok());
  EXPECT_ERROR(Dataset::open(path), "features of version \"1\", expected \"4\"; make it again");
  ASSERT_TRUE(write_file(path, print_safetensors({{{"architecture", "pacm"}}, {}})).ok());
  EXPECT_ERROR(Dataset::open(path), "no dataset, but a safetensors file of another kind");
  EXPECT_ERROR(Dataset::open(path + ".none"), ".none: no such file");
  EXPECT_ERROR(Dataset::open(testing::TempDir()), "is a folder");
}

}  // namespace
}  // namespace pruner
