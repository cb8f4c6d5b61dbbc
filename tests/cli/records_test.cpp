// pruner records and simulate, on records of the registered matmul.
#include <algorithm>
#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "own_path.h"
#include "support/gzip.h"
#include "support/json.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct RecordsCommand : testing::Test {
  RecordsCommand() : dir(own_path("records_command")) {
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~RecordsCommand() override { fs::remove_all(dir); }

  static std::string line(int size, int factor, const std::string& result) {
    return R"({"i": [["[\"matmul_layer\", )" + std::to_string(size) +
           R"(, 64, 64]", "cuda"], [[], )" + R"([["SP", 2, 0, )" + std::to_string(size) + R"(, [)" +
           std::to_string(factor) + R"(], 1], ["AN", 2, 0, 5], ["AN", 2, 1, 6]]]], "r": [)" +
           result + R"(, 2.5, 1639461739], "v": "v0.6"})" + "\n";
  }
  std::string write(const std::string& name, const std::string& content) const {
    PackedWriter writer = *PackedWriter::open(dir + '/' + name);
    EXPECT_TRUE(writer.write(content).ok() && writer.commit().ok());
    return dir + '/' + name;
  }
  /// Six programs of two tasks, a copy, a damaged line, packed.
  std::string log() const {
    return write("log.json.gz",
                 line(64, 1, "[0.4], 0") + line(64, 2, "[0.2], 0") + line(64, 4, "[0.1], 0") +
                     line(64, 4, "[0.1], 0") + "damaged\n" + line(32, 2, "[0.05], 0") +
                     line(32, 4, "[1e10], 7") + line(32, 8, "[0.06], 0"));
  }
  ProgramRun run(std::vector<std::string> arguments, int exit_code = 0) const {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    return run;
  }
  Json json(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    return *parse_json(run(std::move(arguments)).out);
  }
  void expect_error(const std::vector<std::string>& arguments, const std::string& words) const {
    const std::string err = run(arguments, 2).err;
    EXPECT_NE(err.find(words), std::string::npos) << err;
    EXPECT_EQ(std::ranges::count(err, '\n'), 1) << err;
  }

  std::string dir;
};

TEST_F(RecordsCommand, StatCountsTasksAndFiles) {
  const std::string path = log();
  const Json stat = json({"records", "stat", path});
  ASSERT_EQ(stat["tasks"].size(), 2u);
  EXPECT_EQ(stat["tasks"][0]["task"], "[\"matmul_layer\", 32, 64, 64]");
  EXPECT_EQ(stat["tasks"][0]["errors"]["run timeout"], 1);
  EXPECT_EQ(stat["tasks"][1]["duplicates"], 1);
  EXPECT_EQ(stat["tasks"][1]["best_ms"], 100);
  EXPECT_EQ(stat["total"]["records"], 7);
  EXPECT_EQ(stat["read"]["damaged_lines"], 1);
  const Json files = json({"records", "stat", "--by", "file", "--records", dir});
  EXPECT_EQ(files["files"][0]["file"], path);
  const ProgramRun table = run({"records", "stat", dir + "/*.gz"});
  EXPECT_NE(table.out.find("total, 2 tasks"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("2021-12-14"), std::string::npos) << table.out;
  EXPECT_NE(table.err.find("log.json.gz:5: not JSON"), std::string::npos) << table.err;
}

TEST_F(RecordsCommand, BestAndDistill) {
  const std::string path = log();
  const Json best = json({"records", "best", path, "--top-k", "2"});
  ASSERT_EQ(best["best"].size(), 4u);
  EXPECT_EQ(best["best"][0]["line"], 3);
  EXPECT_EQ(best["best"][3]["best_ms"], 60);
  // A long path stands in the heading alone.
  const std::string table = run({"records", "best", path}).out;
  EXPECT_TRUE(table.starts_with("Files are in " + dir + "/\n")) << table;
  EXPECT_NE(table.find("| log.json.gz:3\n"), std::string::npos) << table;
  run({"records", "distill", path, "-o", dir + "/best.json"});
  EXPECT_EQ(read_unpacked(dir + "/best.json")->content,
            line(64, 4, "[0.1], 0") + line(32, 2, "[0.05], 0"));
  expect_error({"records", "distill", path}, "records distill: -o is missing");
  expect_error({"records", "distill", path, "-o", path},
               "names the same file, which would be lost");
}

TEST_F(RecordsCommand, MergeSplitAndConvert) {
  const std::string path = log(), more = write("more.json", line(64, 1, "[0.4], 0"));
  const Json merged =
      json({"records", "merge", path, more, "--order", "task", "-o", dir + "/all.json.gz"});
  EXPECT_EQ(merged["written"], 6);
  EXPECT_EQ(merged["duplicates"], 2);
  const Json split = json({"records", "split", dir + "/all.json.gz", "-o", dir + "/tasks"});
  EXPECT_EQ(split["files"].size(), 2u);
  EXPECT_EQ(json({"records", "stat", dir + "/tasks"})["total"]["records"], 6);
  const Json parts = json({"records",
                           "split",
                           "--by",
                           "share",
                           "--train-ratio",
                           "0.5",
                           "--seed",
                           "2",
                           path,
                           "-o",
                           dir + "/parts"});
  EXPECT_EQ(parts["read"]["records"], 7);
  const Json converted =
      json({"records", "convert", path, "--strict", "-o", dir + "/strict.json.gz"});
  EXPECT_EQ(converted["written"], 7);
  EXPECT_EQ(converted["versions"]["v0.6"], 7);
  EXPECT_NE(run({"records", "convert", path, "-o", dir + "/c.json"}).out.find("7 records of v0.6"),
            std::string::npos);
}

TEST_F(RecordsCommand, SaysWhatIsWrong) {
  const std::string path = log(), out = dir + "/out.json";
  for (const char* command : {"stat", "best", "merge", "split", "convert"})
    expect_error({"records", command}, "no file is named; e.g. pruner records");
  expect_error({"records", "stat", dir + "/none*"}, "no such file");
  expect_error({"records", "stat", path, "--by", "day"}, "--by: \"day\" is not task or file");
  expect_error({"records", "best", path, "--top-k", "0"}, "--top-k: 0 is less than 1");
  expect_error({"records", "merge", path, "-o", out, "--order", "size"}, "--order: \"size\"");
  expect_error({"records", "merge", path}, "-o is missing");
  expect_error({"records", "split", path, "-o", out, "--by", "day"}, "--by: \"day\"");
  expect_error({"records", "split", path, "-o", out, "--by", "share", "--train-ratio", "2"},
               "--train-ratio: 2 is not between 0 and 1");
  expect_error({"records", "split", path, "-o", dir}, "is there already");
  expect_error({"records", "merge", path, "-o", dir + "/no/such.json"}, "no/such.json");
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(RecordsCommand, SimulateLooksUpWhatWasMeasured) {
  const Json runs = json({"simulate",
                          "--records",
                          log(),
                          "--modes",
                          "random,draft-only",
                          "--seeds",
                          "2",
                          "--num-measures-per-round",
                          "1",
                          "--psa",
                          "k80",
                          "--work-dir",
                          dir + "/sim"});
  EXPECT_EQ(runs["tasks"], 2);
  EXPECT_EQ(runs["programs"], 6);
  EXPECT_EQ(runs["curves"].size(), 4u);
  EXPECT_EQ(runs["modes"][0]["reach"][3]["reached"], 2) << "all of the log was looked up";
  EXPECT_EQ(runs["modes"][0]["quality"]["median"], 1.0);
  for (const char* file : {"simulation.txt", "simulation.json", "curves.tsv", "curves.svg"})
    EXPECT_TRUE(fs::exists(dir + "/sim/" + file)) << file;
}

TEST_F(RecordsCommand, SimulateSaysWhatIsWrong) {
  const std::string path = log();
  expect_error({"simulate"}, "no file is named");
  expect_error({"simulate", "--records", path, "--mode", "oracle"},
               "cost model \"oracle\" is unknown");
  expect_error({"simulate", "--records", path, "--mode", "pam-no-update"}, "needs weights");
  expect_error({"simulate", "--records", path, "--psa", "host"}, "--psa");
  expect_error({"simulate", "--records", path, "--psa-form", "new"}, "--psa-form: \"new\"");
  expect_error({"simulate", "--records", write("none.json", "\n")}, "no program to choose from");
}

}  // namespace
}  // namespace pruner
