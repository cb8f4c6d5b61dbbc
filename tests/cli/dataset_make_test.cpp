// pruner dataset make, on records of the registered matmul.
#include <algorithm>
#include <filesystem>

#include "cli/run_program.h"
#include "dataset/dataset.h"
#include "dataset/matmul_records.h"
#include "golden.h"
#include "own_path.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct DatasetMake : testing::Test {
  DatasetMake() {
    fs::create_directories(folder + "/k80");
    fs::create_directories(folder + "/v100");
    EXPECT_TRUE(write_file(folder + "/k80/a.json", record_lines_of(60)).ok());
    EXPECT_TRUE(write_file(folder + "/v100/a.json", record_lines_of(30)).ok());
  }
  ~DatasetMake() override { fs::remove_all(folder); }

  /// The line that a command line of the user's fault gives.
  static std::string fail(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"dataset", "make"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ProgramRun run = run_program(all);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "");
    return run.err;
  }

  const std::string folder = own_path("dataset_make");
  const std::string out = folder + "/a.ds";
};

TEST_F(DatasetMake, MakesAFileAndSaysWhatBecameOfEveryRecord) {
  const ProgramRun run =
      run_program({"dataset", "make", "--records", folder + "/k80/*.json*", "-o", out, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const Json json = *parse_json(run.out);
  EXPECT_EQ(json["total"]["kept"], 60);
  EXPECT_EQ(json["devices"][0]["tasks"], 1);
  EXPECT_TRUE(json["devices"][0]["target"].get<std::string>().ends_with("-model=k80"));
  EXPECT_EQ(Dataset::open(out)->size(), 60);
}

// The line of the reference's guide: the shell has put files in the pattern's place.
TEST_F(DatasetMake, TakesTheReferencesCommandLine) {
  ASSERT_TRUE(write_file(folder + "/k80/b.json", "hello\n").ok());
  const ProgramRun run = run_program({"dataset",
                                      "make",
                                      "--logs",
                                      folder + "/k80/a.json",
                                      folder + "/k80/b.json",
                                      "--hold-out",
                                      "all_five",
                                      "--out-file",
                                      out,
                                      "--pam",
                                      "1",
                                      "--sample-in-files",
                                      "500"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("no file of --dags has tasks of resnet_18 1x3x224x224"), std::string::npos)
      << run.err;
  EXPECT_NE(run.out.find("60 programs of 1 tasks"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("1 lines are no record: not JSON (first: " + folder + "/k80/b.json:1)"),
            std::string::npos)
      << run.out;
}

TEST_F(DatasetMake, HoldsTasksOfNetworksOut) {
  const std::string tasks = folder + "/tasks.jsonl";
  const std::string task = R"({"network": "bert_tiny", "input_shape": [1, 128], "workload_key": )" +
                           print_json(Json(MatmulRecord().key)) + R"(, "dag": )" +
                           print_json(dag_to_json(*parse_operator("matmul 64 64 64"))) + "}";
  ASSERT_TRUE(write_file(tasks, task + "\n").ok());
  ASSERT_TRUE(write_file(folder + "/k80/b.json",
                         record_lines_of(50, {.key = R"(["matmul_layer", 64, 64, 128])"}))
                  .ok());
  const std::vector<std::string> command = {
      "dataset", "make", "--records", folder + "/k80", "--dags", tasks, "-o", out, "--json"};
  std::vector<std::string> hold_out = command;
  hold_out.insert(hold_out.end(), {"--hold-out", "bert_tiny"});
  const ProgramRun held = run_program(hold_out);
  EXPECT_EQ(held.exit_code, 0) << held.err;
  EXPECT_EQ((*parse_json(held.out))["total"]["held_out"], 60);
  EXPECT_EQ((*parse_json(held.out))["total"]["kept"], 50);
  const Dataset dataset = *Dataset::open(out);
  for (const DatasetTask& t : dataset.tasks()) EXPECT_NE(t.workload_key, MatmulRecord().key);
  std::vector<std::string> preset = command;
  preset.insert(preset.end(), {"--preset", "batch-size-1"});
  const ProgramRun only = run_program(preset);
  EXPECT_EQ((*parse_json(only.out))["total"]["kept"], 60) << only.err;
}

TEST_F(DatasetMake, SaysWhatIsWrong) {
  const std::string k80 = folder + "/k80/a.json";
  EXPECT_NE(fail({"-o", out}).find("no records are named"), std::string::npos);
  EXPECT_NE(fail({"--records", k80}).find("give one with -o FILE"), std::string::npos);
  EXPECT_NE(fail({"--records", folder + "/t4/*", "-o", out}).find("no such file or folder"),
            std::string::npos);
  EXPECT_NE(fail({"--records", k80, "-o", folder + "/none/a.ds"}).find("cannot be written"),
            std::string::npos);
  EXPECT_NE(fail({"--records", k80, "-o", out, "--hold-out", "six"})
                .find("--hold-out: \"six\" is no set of networks: all_five"),
            std::string::npos);
  EXPECT_NE(fail({"--records", k80, "-o", out, "--failed", "no"}).find("is not keep or drop"),
            std::string::npos);
  EXPECT_NE(fail({"--records", k80, "-o", out, "--duplicates", "all"}).find("is not best or last"),
            std::string::npos);
  EXPECT_NE(fail({"--records", k80, "-o", out, "--dags", k80}).find("missing key \"workload_key\""),
            std::string::npos);
  EXPECT_NE(fail({"--records", folder, "-o", out}).find("records of several devices"),
            std::string::npos);
  EXPECT_NE(fail({"--records", folder, "-o", out, "--target", "cuda"}).find("several devices"),
            std::string::npos);
  EXPECT_NE(fail({"--records", k80, "-o", out, "--target", "llvm"})
                .find("60 of another target than --target"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace pruner
