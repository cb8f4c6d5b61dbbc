#include "support/mapped_file.h"

#include <filesystem>

#include "golden.h"
#include "own_path.h"

namespace pruner {
namespace {

TEST(MappedFile, HasTheBytes) {
  const std::string path = own_path("mapped");
  ASSERT_TRUE(write_file(path, "some bytes").ok());
  Result<MappedFile> file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->bytes(), "some bytes");
  const MappedFile moved = *std::move(file);
  EXPECT_EQ(moved.bytes(), "some bytes");
  ASSERT_TRUE(write_file(path, "").ok());
  EXPECT_EQ(MappedFile::open(path)->bytes(), "");
  std::filesystem::remove(path);
}

TEST(MappedFile, NamesWhatCannotBeRead) {
  EXPECT_ERROR(MappedFile::open(own_path("none")), "none: no such file");
  EXPECT_ERROR(MappedFile::open(testing::TempDir()), "is a folder, not a file");
}

}  // namespace
}  // namespace pruner
