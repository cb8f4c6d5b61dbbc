#include "support/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "golden.h"
#include "support/gzip.h"
#include "support/mapped_file.h"

namespace pruner {
namespace {

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "file_testXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(File, ReadsWhatWasWritten) {
  const std::string bytes("a\0b\r\n", 5);
  ASSERT_TRUE(write_file(folder_ / "x", bytes).ok());
  EXPECT_EQ(*read_file(folder_ / "x"), bytes);
}

TEST_F(File, LeavesNoTemporaryFile) {
  ASSERT_TRUE(write_file(folder_ / "x", "1").ok());
  ASSERT_TRUE(write_file(folder_ / "x", "2").ok());
  EXPECT_EQ(*read_file(folder_ / "x"), "2");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(File, AppendsToWhatIsThere) {
  ASSERT_TRUE(append_file(folder_ / "x", "1\n").ok());
  ASSERT_TRUE(append_file(folder_ / "x", "2\n").ok());
  EXPECT_EQ(*read_file(folder_ / "x"), "1\n2\n");
}

TEST_F(File, NamesThePathThatCannotBeRead) {
  EXPECT_ERROR(read_file(folder_ / "none"), "none: no such file");
  EXPECT_ERROR(read_file(folder_), "is a folder, not a file");
  // A pipe would wait for its other end, and this device never ends.
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/urandom")}) {
    const std::string words = path + ": is a pipe or a device, expected a file";
    EXPECT_ERROR(read_file(path), words);
    EXPECT_ERROR(MappedFile::open(path), words);
    EXPECT_ERROR(UnpackedReader::open(path), words);
  }
}

TEST_F(File, NamesThePathThatCannotBeWritten) {
  EXPECT_ERROR(write_file(folder_ / "no/such/x", "1"), "no/such/x: cannot be written");
  EXPECT_ERROR(append_file(folder_ / "no/such/x", "1"), "no/such/x: cannot be written");
}

}  // namespace
}  // namespace pruner
