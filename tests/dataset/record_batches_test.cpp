#include "dataset/record_batches.h"

#include <gtest/gtest.h>

#include "own_path.h"
#include "support/file.h"

#include <filesystem>

namespace pruner {
namespace {

// Every file comes once, in order, and no batch is much more than its share.
TEST(RecordBatches, ComeInOrder) {
  const std::string folder = own_path("batches");
  std::filesystem::create_directories(folder);
  std::vector<RecordPath> files;
  const std::string line(1000, 'x');
  for (int i = 0; i < 5; ++i) {
    files.push_back({folder + "/" + std::to_string(i), true});
    std::string text;
    for (int n = 0; n < 600; ++n) text += line + "\n";
    ASSERT_TRUE(write_file(files.back().path, text).ok());
  }
  files.push_back({folder + "/none", true});
  files.push_back({folder + "/0", false});
  RecordBatches batches(files, 2);
  std::vector<std::string> paths;
  int count = 0;
  for (std::vector<ReadFile> batch = batches.next(); !batch.empty(); batch = batches.next()) {
    ++count;
    EXPECT_LE(batch.size(), 4u);
    for (const ReadFile& file : batch) {
      paths.push_back(file.path);
      const bool missing = file.path.ends_with("none");
      EXPECT_EQ(file.error.empty(), !missing);
      EXPECT_EQ(file.lines.size(), missing ? 0u : 600u);
    }
    EXPECT_EQ(batch.back().other, paths.size() == files.size());
  }
  EXPECT_GT(count, 2);
  ASSERT_EQ(paths.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(paths[i], files[i].path);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pruner
