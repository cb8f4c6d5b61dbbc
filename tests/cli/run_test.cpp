// label: codegen
// Networks that are unlike most: two outputs of one name, and nothing to tune.
#include <unistd.h>

#include <filesystem>

#include "cli/run_program.h"
#include "deploy/tensor_file.h"
#include "golden.h"
#include "graph/onnx/onnx_model.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct UnusualNetwork : testing::Test, RunsCommands {
  UnusualNetwork()
      : dir(fs::temp_directory_path() / ("pruner_unusual_" + std::to_string(getpid()))) {
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~UnusualNetwork() override { fs::remove_all(dir); }

  std::string write(const std::string& name, const OnnxModel& model) const {
    EXPECT_TRUE(write_file(dir + "/" + name, model.bytes()).ok());
    return dir + "/" + name;
  }

  std::string dir;
};

// "y", "y" and "y_2", whose name is what the second one would get.
TEST_F(UnusualNetwork, HasOutputsOfOneNameNumbered) {
  OnnxModel model;
  model.input("x", {3}).output("y").output("y").output("y_2");
  model.node("Relu", {"x"}, {"y"});
  model.node("Neg", {"x"}, {"y_2"});
  const std::string module = dir + "/m.so", written = dir + "/y.npz";
  out({"compile", write("twice.onnx", model), "-o", module});
  const Json run =
      json({"run", "--module", module, "--fill", "ones", "--top", "1", "--outputs", written});
  EXPECT_EQ(run["outputs"], Json({{"y", {3}}, {"y_3", {3}}, {"y_2", {3}}}));
  EXPECT_EQ(run["top"].size(), 3);
  const Result<std::vector<NamedTensor>> tensors = read_tensors(written);
  ASSERT_TRUE(tensors.ok()) << tensors.error().message();
  ASSERT_EQ(tensors->size(), 3);
  for (const NamedTensor& each : *tensors)
    EXPECT_EQ(each.tensor.get(0), each.name == "y_2" ? -1 : 1) << each.name;
}

TEST_F(UnusualNetwork, WithoutATaskIsCompiled) {
  OnnxModel model;
  model.input("x", {2, 3}).output("y").node("Flatten", {"x"}, {"y"});
  const std::string path = write("flat.onnx", model), work_dir = dir + "/out";
  const auto tuned = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"tune", path, "--budget", "2s", "--work-dir", work_dir};
    command.insert(command.end(), more.begin(), more.end());
    const ProgramRun run = run_program(command);
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_EQ(run.err.find("no report.html"), std::string::npos) << run.err;
    return run.out;
  };
  tuned({"--dry-run"});
  const std::string said = tuned({});
  EXPECT_NE(said.find("flat: there is nothing to tune: the network has no task\n"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("Next: pruner bench --module " + work_dir + "/flat.so"), std::string::npos);
  EXPECT_EQ(said.find("nan"), std::string::npos) << said;
  tuned({"--n-trials", "4"});  // the same folder again
  out({"run", "--module", work_dir + "/flat.so", "--fill", "ones", "--top", "1"});
  const Json summary = *parse_json(tuned({"--json"}));
  EXPECT_EQ(summary["tasks"], Json::array());
  EXPECT_EQ(summary["module"], work_dir + "/flat.so");
  // A script may compile from the records of any run: here they are of no use, and no error.
  out({"compile", path, "--records", work_dir + "/records.json", "-o", dir + "/flat.so"});
  for (const auto& [command, doing] :
       {std::pair<std::vector<std::string>, std::string>{
            {"compare", path, "--modes", "draft-only,random", "--work-dir", dir + "/c"}, "compare"},
        {{"transfer", path, "--pool", work_dir, "--work-dir", dir + "/t"}, "transfer"}}) {
    const ProgramRun run = run_program(command);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find("flat: there is nothing to " + doing + ": the network has no task"),
              std::string::npos)
        << run.err;
  }
}

}  // namespace
}  // namespace pruner
