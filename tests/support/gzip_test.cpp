#include "support/gzip.h"

#include <zlib.h>

#include <filesystem>

#include "golden.h"
#include "own_path.h"
#include "support/file.h"

namespace pruner {
namespace {

std::string packed(const std::string& text) {
  const std::string path = own_path("gzip_test.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  const std::string content = *read_file(path);
  std::filesystem::remove(path);
  return content;
}

UnpackedFile unpacked(const std::string& content) {
  const std::string path = own_path("gzip_test.bin");
  EXPECT_TRUE(write_file(path, content).ok());
  UnpackedFile file = *read_unpacked(path);
  std::filesystem::remove(path);
  return file;
}

TEST(ReadUnpacked, GivesPlainFilesAsTheyAre) {
  EXPECT_EQ(unpacked("one\ntwo\n").content, "one\ntwo\n");
  EXPECT_FALSE(unpacked("").damaged);
}

TEST(ReadUnpacked, UnpacksGzipFilesAndSeveralInOne) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  EXPECT_EQ(unpacked(packed(text)).content, text);
  EXPECT_EQ(unpacked(packed(text) + packed("more")).content, text + "more");
  EXPECT_EQ(unpacked(packed(std::string(1 << 22, 'x'))).content, std::string(1 << 22, 'x'));
}

TEST(ReadUnpacked, GivesWhatComesBeforeADamagedPlace) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  const std::string whole = packed(text);
  const UnpackedFile cut = unpacked(whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(cut.damaged);
  EXPECT_GT(cut.content.size(), text.size() / 4);
  EXPECT_TRUE(text.starts_with(cut.content));
  EXPECT_TRUE(unpacked(std::string("\x1f\x8bnonsense")).damaged);
}

TEST(ReadUnpacked, NamesAFileThatIsNotThere) {
  EXPECT_ERROR(read_unpacked("no/such.gz"), "no/such.gz: no such file");
}

}  // namespace
}  // namespace pruner
