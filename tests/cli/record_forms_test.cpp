// label: codegen
// Every command that takes record files takes them in every form, and says of what is none of them.
#include <algorithm>
#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "own_path.h"
#include "support/file.h"
#include "support/gzip.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kOp = {"--op", "matmul 48 48 48 +relu"};

/// A command line without its record files, and the flag that takes them.
struct Row {
  std::vector<std::string> command;
  const char* flag;  // "": by their place
  bool op = true;    // needs the operator
  const char* out = "";
};

const Row kRows[] = {
    {{"compile"}, "--records", true, "-o"},
    {{"compile"}, "--pool", true, "-o"},
    {{"transfer"}, "--from", true, "--work-dir"},
    {{"transfer"}, "--pool", true, "--work-dir"},
    {{"tune", "--n-trials", "2", "--fresh"}, "--warm-start", true, "--work-dir"},
    {{"features"}, "--records"},
    {{"simulate", "--modes", "draft-only", "--seeds", "1"}, "--records"},
    {{"dataset", "make", "--min-sample-size", "1"}, "--records", true, "-o"},
    {{"records", "stat"}, "", false},
    {{"records", "best"}, "", false},
    {{"records", "distill"}, "", false, "-o"},
    {{"records", "merge"}, "", false, "-o"},
    {{"records", "split"}, "", false, "-o"},
    {{"records", "convert"}, "", false, "-o"},
    {{"records", "check"}, "", false},
};

struct RecordForms : testing::Test {
  static void SetUpTestSuite() {
    dir = own_path("record_forms");
    fs::remove_all(dir);
    fs::create_directories(dir + "/folder/below");
    fs::create_directories(dir + "/empty");
    std::vector<std::string> tune = {"tune", "--n-trials", "6", "--work-dir", dir + "/tuned"};
    tune.insert(tune.end(), kOp.begin(), kOp.end());
    const ProgramRun run = run_program(tune);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const std::string text = *read_file(dir + "/tuned/records.json");
    ASSERT_TRUE(write_file(dir + "/one.json", text).ok());
    ASSERT_TRUE(write_file(dir + "/folder/below/a.json", text).ok());
    ASSERT_TRUE(write_file(dir + "/folder/notes.txt", "no\nrecords\n").ok());
    ASSERT_TRUE(write_file(dir + "/empty/notes.txt", "no\nrecords\n").ok());
    // A work dir has a module beside its records.
    ASSERT_TRUE(write_file(dir + "/tuned/net.so",
                           std::string("\x7f"
                                       "ELF\0\0\n\0\n",
                                       9))
                    .ok());
    PackedWriter packed = *PackedWriter::open(dir + "/packed.json.gz");
    ASSERT_TRUE(packed.write(text).ok() && packed.commit().ok());
    const std::string bytes = *read_file(dir + "/packed.json.gz");
    ASSERT_TRUE(write_file(dir + "/cut.json.gz", bytes.substr(0, bytes.size() * 9 / 10)).ok());
  }
  static void TearDownTestSuite() { fs::remove_all(dir); }

  static ProgramRun run(const Row& row, const std::string& records) {
    static int number = 0;
    std::vector<std::string> command = row.command;
    if (row.op) command.insert(command.end(), kOp.begin(), kOp.end());
    if (*row.out) command.insert(command.end(), {row.out, dir + "/out" + std::to_string(number++)});
    if (*row.flag) command.emplace_back(row.flag);
    command.push_back(records);
    return run_program(command);
  }
  static std::string name(const Row& row, const std::string& form) {
    std::string text;
    for (const std::string& word : row.command) text += word + " ";
    return text + row.flag + " " + form;
  }

  static std::string dir;
};
std::string RecordForms::dir;

TEST_F(RecordForms, EveryCommandTakesEveryForm) {
  for (const Row& row : kRows) {
    for (const char* form : {"one.json", "packed.json.gz", "folder", "o*.json", "tuned"}) {
      const ProgramRun done = run(row, dir + "/" + form);
      EXPECT_EQ(done.exit_code, 0) << name(row, form) << ": " << done.err;
      EXPECT_EQ(done.err.find("not JSON"), std::string::npos) << name(row, form) << done.err;
    }
  }
}

TEST_F(RecordForms, WhatHoldsNoRecordsIsOneClearLine) {
  const auto expect_error = [](const Row& row, const std::string& form, const char* words) {
    const ProgramRun done = run(row, dir + "/" + form);
    EXPECT_EQ(done.exit_code, 2) << name(row, form) << done.err;
    EXPECT_NE(done.err.find(words), std::string::npos) << name(row, form) << ": " << done.err;
    EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << name(row, form) << ": " << done.err;
  };
  for (const Row& row : kRows) {
    expect_error(row, "cut.json.gz", "cut.json.gz: ends early: damaged or cut off; ");
    expect_error(row, "empty", "record");
    expect_error(row, "none*.json", "no such file");
  }
}

}  // namespace
}  // namespace pruner
