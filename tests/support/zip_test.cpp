#include "support/zip.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "own_path.h"
#include "support/file.h"

namespace pruner {
namespace {

TEST(Zip, GivesBackWhatWasWrittenInItsOrder) {
  const std::string path = own_path("entries.zip");
  const ZipEntry entries[] = {{"b/one", std::string("\0\1", 2)}, {"a", ""}};
  ASSERT_TRUE(write_zip(path, entries).ok());
  const Result<ZipReader> zip = ZipReader::open(path);
  ASSERT_TRUE(zip.ok()) << zip.error().message();
  EXPECT_EQ(zip->names(), (std::vector<std::string>{"b/one", "a"}));
  EXPECT_EQ(*zip->read(0), std::string("\0\1", 2));
  EXPECT_EQ(*zip->read(1), "");
  EXPECT_FALSE(zip->read(2).ok());
}

TEST(Zip, SaysThatAFileIsNone) {
  const std::string path = own_path("entries.zip");
  ASSERT_TRUE(write_file(path, "no archive at all, however long it may be").ok());
  EXPECT_ERROR(ZipReader::open(path), "cannot open as a zip archive: Not a zip archive");
}

TEST(Zip, OpensToNoMoreThanItsSizeAllows) {
  const std::string path = own_path("large.zip");
  const ZipEntry entries[] = {{"a", "text"}};
  ASSERT_TRUE(write_zip(path, entries).ok());
  std::string bytes = *read_file(path);
  constexpr size_t kUnpackedSize = 24;  // its place in an entry of the directory
  const size_t entry = bytes.find("PK\1\2");
  ASSERT_NE(entry, std::string::npos);
  bytes.replace(entry + kUnpackedSize, 4, "\xff\xff\xff\x7f");
  ASSERT_TRUE(write_file(path, bytes).ok());
  EXPECT_ERROR(ZipReader::open(path), "bytes open to 2.14748e+09 or more, over 100 times");
}

}  // namespace
}  // namespace pruner
