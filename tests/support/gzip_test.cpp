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

TEST(ReadUnpacked, ReadsNoSmallFileThatOpensToALargeOne) {
  const std::string path = own_path("gzip_test_large.gz");
  constexpr int64_t kPieces = 300;
  const std::string piece = std::string((1 << 20) - 1, 'x') + '\n';
  {
    Result<PackedWriter> writer = PackedWriter::open(path);
    ASSERT_TRUE(writer.ok());
    for (int64_t i = 0; i < kPieces; ++i) ASSERT_TRUE(writer->write(piece).ok());
    ASSERT_TRUE(writer->commit().ok());
  }
  EXPECT_ERROR(read_unpacked(path), "or more, over 100 times as many");
  // Line by line there is no limit.
  Result<LineReader> reader = LineReader::open(path);
  ASSERT_TRUE(reader.ok());
  int64_t lines = 0;
  while (reader->next()) ++lines;
  EXPECT_EQ(lines, kPieces);
  std::filesystem::remove(path);
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

std::vector<std::string> lines_of(const std::string& content, bool& damaged) {
  const std::string path = own_path("gzip_test_lines");
  EXPECT_TRUE(write_file(path, content).ok());
  LineReader reader = *LineReader::open(path);
  std::vector<std::string> lines;
  while (const auto line = reader.next()) {
    EXPECT_EQ(line->number, static_cast<int64_t>(lines.size()) + 1);
    lines.emplace_back(line->text);
  }
  damaged = reader.damaged();
  std::filesystem::remove(path);
  return lines;
}

TEST(LineReader, GivesTheLinesOfPackedAndPlainFiles) {
  const std::string wide(700000, 'w');  // longer than what is read at once
  const std::vector<std::string> lines = {"one", "", wide, "last"};
  const std::string text = "one\n\n" + wide + "\nlast";
  bool damaged = true;
  for (const std::string& content : {text, text + "\n", packed(text), packed(text) + packed("")}) {
    EXPECT_EQ(lines_of(content, damaged), lines);
    EXPECT_FALSE(damaged);
  }
  EXPECT_TRUE(lines_of("", damaged).empty());
}

TEST(LineReader, GivesWhatComesBeforeADamagedPlace) {
  bool damaged = false;
  const std::string whole = packed("one\ntwo\n");
  EXPECT_EQ(lines_of(whole.substr(0, whole.size() - 4), damaged).front(), "one");
  EXPECT_TRUE(damaged);
  EXPECT_EQ(lines_of(whole + "three\n", damaged).size(), 2u) << "what follows is not packed";
  EXPECT_TRUE(damaged);
}

TEST(PackedWriter, PacksByNameAndLeavesNothingHalf) {
  for (const char* name : {"gzip_test_out.json", "gzip_test_out.json.gz"}) {
    const std::string path = own_path(name);
    {
      PackedWriter left = *PackedWriter::open(path);
      EXPECT_TRUE(left.write("half").ok());
    }
    EXPECT_FALSE(std::filesystem::exists(path)) << "it was not committed";
    PackedWriter writer = *PackedWriter::open(path);
    EXPECT_TRUE(writer.write("one\n").ok() && writer.write("two\n").ok());
    ASSERT_TRUE(writer.commit().ok());
    EXPECT_EQ(read_unpacked(path)->content, "one\ntwo\n");
    EXPECT_EQ(read_file(path)->starts_with("\x1f\x8b"), path.ends_with(".gz"));
    std::filesystem::remove(path);
  }
  EXPECT_ERROR(PackedWriter::open("no/such/folder.gz"), "no/such/folder.gz: cannot be written");
}

TEST(ReadUnpacked, NamesAFileThatIsNotThere) {
  EXPECT_ERROR(read_unpacked("no/such.gz"), "no/such.gz: no such file");
}

}  // namespace
}  // namespace pruner
