#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "golden.h"
#include "record/record.h"

namespace pruner {
namespace {

class RecordFileTest : public testing::Test {
 protected:
  RecordFileTest() {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::temp_directory_path() /
              ("pruner_record_" + name + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "records.json";
  }
  ~RecordFileTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) { std::ofstream(path_) << text; }
  RecordWriter open_writer() {
    Result<RecordWriter> writer = RecordWriter::open(path_);
    EXPECT_TRUE(writer.ok()) << writer.error().message();
    return *std::move(writer);
  }
  RecordFile read() {
    Result<RecordFile> file = read_records(path_);
    EXPECT_TRUE(file.ok());
    return *std::move(file);
  }

  std::filesystem::path folder_;
  std::string path_;
};

Record numbered(int i) {
  Record record;
  record.workload_key = "key";
  record.target = "llvm";
  record.sketch_name = "tile";
  record.decisions = {{"number", i}};
  record.result.costs_s = {1.0 + i};
  record.origin = "search";
  return record;
}

TEST_F(RecordFileTest, AppendsLineByLine) {
  EXPECT_ERROR(read_records(path_), "no such file");
  {
    RecordWriter writer = open_writer();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer.append(numbered(i)).ok());
    EXPECT_EQ(read().records.size(), 3u);  // nothing waits in a buffer
  }
  RecordWriter writer = open_writer();
  ASSERT_TRUE(writer.append(numbered(3)).ok());
  const RecordFile file = read();
  ASSERT_EQ(file.records.size(), 4u);
  EXPECT_EQ(file.skipped, 0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(file.records[i].result.cost_s(), 1.0 + i);
}

TEST_F(RecordFileTest, NamesTheFirstLineThatIsNoRecordAndReadsOn) {
  const std::string line = print_line(numbered(1));
  write(line + "\n# a comment\n\n" + line + "\n{\"i\": [[\nnothing\n" + line + "\n");
  const RecordFile file = read();
  EXPECT_EQ(file.records.size(), 3u);
  EXPECT_EQ(file.skipped, 2);
  EXPECT_EQ(file.first_skipped, path_ + ":5: not JSON at byte 9");
}

TEST_F(RecordFileTest, CutsATornLastLineOff) {
  const std::string line = print_line(numbered(1));
  write(line + "\n" + line.substr(0, 40));
  EXPECT_EQ(read().skipped, 1);
  RecordWriter writer = open_writer();
  ASSERT_TRUE(writer.append(numbered(2)).ok());
  EXPECT_EQ(read().records.size(), 2u);
  EXPECT_EQ(read().skipped, 0);
  EXPECT_EQ(*read_file(path_ + ".torn"), line.substr(0, 40) + "\n");
}

TEST_F(RecordFileTest, KeepsALastLineThatOnlyLacksItsEnd) {
  const std::string line = print_line(numbered(1));
  write(line + "\n" + line);
  EXPECT_EQ(read().records.size(), 2u);
  RecordWriter writer = open_writer();
  ASSERT_TRUE(writer.append(numbered(2)).ok());
  EXPECT_EQ(read().records.size(), 3u);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".torn"));
}

TEST_F(RecordFileTest, HasOneWriter) {
  const RecordWriter writer = open_writer();
  EXPECT_ERROR(RecordWriter::open(path_), "another pruner is writing to it");
}

TEST_F(RecordFileTest, SaysWhyItCannotBeWritten) {
  EXPECT_ERROR(RecordWriter::open(folder_ / "missing" / "records.json"),
               "cannot be written: No such file or directory");
}

// A full disk, played by a limit on the file's size.
TEST_F(RecordFileTest, LeavesNoHalfLineOnAFullDisk) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    RecordWriter writer = open_writer();
    static_cast<void>(writer.append(numbered(1)));
    const rlim_t room = std::filesystem::file_size(path_) + 50;
    const rlimit limit{room, room};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Result<Unit> full = writer.append(numbered(2));
    _exit(!full.ok() && full.error().message().find("cannot be written") != std::string::npos ? 0
                                                                                              : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read().records.size(), 1u);
  EXPECT_EQ(read().skipped, 0);
}

// A writer that is killed at any moment loses at most the line it was at, and never another.
TEST_F(RecordFileTest, SurvivesBeingKilled) {
  open_writer();  // makes the file
  int expected = 0;
  for (int round = 0; round < 15; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      Result<RecordWriter> writer = RecordWriter::open(path_);
      for (int i = expected; writer.ok() && writer->append(numbered(i)).ok(); ++i) {
      }
      _exit(1);
    }
    const auto before = std::filesystem::file_size(path_);
    for (int i = 0; i < 100000 && std::filesystem::file_size(path_) == before; ++i) usleep(100);
    usleep(static_cast<useconds_t>(200 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const RecordFile file = read();
    EXPECT_LE(file.skipped, 1);
    expected = static_cast<int>(file.records.size());
    for (int i = 0; i < expected; ++i) ASSERT_EQ(file.records[i].decisions[0].second, i);
  }
  EXPECT_GE(expected, 1);
}

// Real files of Ansor; the manifest says how many records each holds, and how many of them are
// good.
TEST(ForeignRecords, OfAnsorAreRead) {
  const std::string folder = PRUNER_SHARED_DATA "/ansor-logs/";
  std::ifstream manifest(folder + "MANIFEST.tsv");
  if (!manifest) GTEST_SKIP() << "no " << folder;
  int files = 0;
  std::string line;
  std::getline(manifest, line);  // the names of the columns
  while (std::getline(manifest, line)) {
    std::vector<std::string> columns;
    std::istringstream in(line);
    for (std::string column; std::getline(in, column, '\t');) columns.push_back(column);
    if (columns[0].ends_with(".gz")) continue;
    ++files;
    const Result<RecordFile> file = read_records(folder + columns[0]);
    ASSERT_TRUE(file.ok()) << file.error().message();
    EXPECT_EQ(file->skipped, 0) << file->first_skipped;
    EXPECT_EQ(file->records.size(), std::stoul(columns[9])) << columns[0];
    size_t good = 0;
    for (const Record& record : file->records) {
      good += record.result.ok();
      ASSERT_EQ(record.origin, "foreign");
      const Result<Record> again = parse_line(print_line(record));
      ASSERT_TRUE(again.ok());
      ASSERT_EQ(print_line(*again), print_line(record));
      ASSERT_EQ(again->steps, record.steps);
      ASSERT_EQ(again->result.costs_s, record.result.costs_s);
    }
    EXPECT_EQ(good, std::stoul(columns[10])) << columns[0];
  }
  EXPECT_GT(files, 150);
}

}  // namespace
}  // namespace pruner
