#include "deploy/temporary_folder.h"

#include <filesystem>
#include <optional>

#include "golden.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, GoesWithAllThatIsInIt) {
  std::string inside;
  {
    const Result<TemporaryFolder> folder = TemporaryFolder::make(testing::TempDir());
    ASSERT_TRUE(folder.ok()) << folder.error().message();
    inside = folder->path("file");
    ASSERT_TRUE(write_file(inside, "x").ok());
  }
  EXPECT_FALSE(fs::exists(fs::path(inside).parent_path()));
  EXPECT_ERROR(TemporaryFolder::make("/nowhere"),
               "/nowhere: cannot make a folder in it: No such file");
}

TEST(PendingFile, TakesItsNameWhenItIsComplete) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make(testing::TempDir());
  ASSERT_TRUE(folder.ok());
  const std::string target = folder->path("out");
  ASSERT_TRUE(write_file(target, "old").ok());
  {
    const Result<PendingFile> given_up = PendingFile::next_to(target);
    ASSERT_TRUE(given_up.ok() && write_file(given_up->path(), "half").ok());
  }
  EXPECT_EQ(*read_file(target), "old");
  {
    const Result<PendingFile> done = PendingFile::next_to(target);
    ASSERT_TRUE(done.ok() && write_file(done->path(), "new").ok());
    ASSERT_TRUE(done->commit().ok());
  }
  EXPECT_EQ(*read_file(target), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(target).parent_path()), {}), 1);
}

TEST(PendingFile, SaysAtOnceWhatCannotBeWritten) {
  EXPECT_ERROR(PendingFile::next_to("/nowhere/m.so"), "/nowhere/m.so: cannot write: No such file");
  EXPECT_ERROR(PendingFile::next_to(testing::TempDir()), "cannot write: it is a folder");
}

}  // namespace
}  // namespace pruner
