#include "dataset/dataset_writer.h"

#include "golden.h"
#include "own_path.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct DatasetWriterTest : testing::Test {
  DatasetWriterTest() { fs::create_directories(folder); }
  ~DatasetWriterTest() override { fs::remove_all(folder); }

  int64_t files() const {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }

  const std::string folder = own_path("writer");
  const std::string path = folder + "/a.ds";
};

TEST_F(DatasetWriterTest, LeavesAnOldFileUntilTheNewOneIsWhole) {
  ASSERT_TRUE(write_file(path, "old").ok());
  {
    Result<DatasetWriter> writer = DatasetWriter::open(path);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->add(ProgramFeatures{std::vector<float>(kRowFeatures), {}}).ok());
  }
  EXPECT_EQ(*read_file(path), "old");
  EXPECT_EQ(files(), 1);
}

// More than is buffered, rows of many lengths, some left out: each program gets its own.
TEST_F(DatasetWriterTest, ProgramsKeepTheirFeatures) {
  Result<DatasetWriter> writer = DatasetWriter::open(path);
  std::vector<DatasetRow> rows;
  for (int i = 0; i < 4000; ++i) {
    ProgramFeatures features;
    features.rows.assign(static_cast<size_t>(1 + i % 5) * kRowFeatures, static_cast<float>(i));
    features.dataflow.fill(static_cast<float>(i));
    const int64_t number = *writer->add(features);
    if (i % 7 != 3) rows.push_back({number, 0, 1e-3, static_cast<uint64_t>(i)});
  }
  ASSERT_TRUE(writer->finish(rows, std::vector<DatasetTask>{{"k", "t"}}, "").ok());
  EXPECT_EQ(files(), 1);
  const Result<Dataset> dataset = Dataset::open(path);
  ASSERT_TRUE(dataset.ok()) << dataset.error().message();
  ASSERT_EQ(dataset->size(), static_cast<int64_t>(rows.size()));
  for (int64_t p = 0; p < dataset->size(); ++p) {
    const auto i = dataset->id()[static_cast<size_t>(p)];
    ASSERT_EQ(dataset->rows(p).size(), (1 + i % 5) * kRowFeatures);
    ASSERT_EQ(dataset->rows(p).front(), static_cast<float>(i));
    ASSERT_EQ(dataset->rows(p).back(), static_cast<float>(i));
    ASSERT_EQ(dataset->dataflow(p).front(), static_cast<float>(i));
  }
}

TEST_F(DatasetWriterTest, NamesAPlaceThatCannotBeWritten) {
  EXPECT_ERROR(DatasetWriter::open(folder + "/none/a.ds"), "none/a.ds: cannot be written: No such");
  fs::create_directories(path);
  EXPECT_ERROR(DatasetWriter::open(path), "a.ds: cannot be written: it is a folder");
}

}  // namespace
}  // namespace pruner
