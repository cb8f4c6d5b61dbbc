// label: codegen
// No command writes a file over one that it reads, or over another one that it writes: that is
// refused before anything is opened.
#include <unistd.h>

#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct WrittenFiles : testing::Test {
  WrittenFiles() : dir(fs::temp_directory_path() / ("pruner_written_" + std::to_string(getpid()))) {
    fs::remove_all(dir);
    fs::create_directories(dir);
    for (const char* name : {"a", "b"})
      EXPECT_TRUE(write_file(dir + "/" + name, "precious\n").ok());
    first = dir + "/a", second = dir + "/b";
  }
  ~WrittenFiles() override { fs::remove_all(dir); }

  /// Expects that both files stay, and what is said.
  void expect_refused(const std::vector<std::string>& command, const std::string& said) const {
    const ProgramRun run = run_program(command);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_EQ(run.err, "pruner: " + said + "\n");
    for (const std::string& path : {first, second})
      EXPECT_EQ(*read_file(path), "precious\n") << said;
  }
  static std::string lost(const std::string& flag,
                          const std::string& path,
                          const std::string& other) {
    return flag + " " + path + ": " + other +
           " names the same file, which would be lost; choose another name for " + flag;
  }

  std::string dir, first, second;
};

TEST_F(WrittenFiles, AreNotThoseThatAreRead) {
  const std::string& a = first;
  const std::string& b = second;
  for (const auto& [command, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"run", "--module", b, "--inputs", a, "--outputs", a},
            lost("--outputs", a, "--inputs")},
           {{"run", "--module", a, "--inputs", b, "--outputs", a},
            lost("--outputs", a, "--module")},
           {{"run", "--module", a, "--trace", a}, lost("--trace", a, "--module")},
           {{"bench", "--module", a, "--trace", a}, lost("--trace", a, "--module")},
           {{"bench", "--module", a, "--compare", b, "--trace", b},
            lost("--trace", b, "--compare")},
           {{"tune", a, "--events", a}, lost("--events", a, "MODEL.onnx")},
           {{"tune", a, "--trace", a}, lost("--trace", a, "MODEL.onnx")},
           {{"tune", "--task", a, "--events", a}, lost("--events", a, "--task")},
           {{"tune", a, "--load-model", b, "--trace", b}, lost("--trace", b, "--load-model")},
           {{"tune", "m.onnx", "--constant", "x=" + a, "--events", a},
            lost("--events", a, "--constant")},
           {{"compare", a, "--events", a}, lost("--events", a, "MODEL.onnx")},
           {{"transfer", a, "--pool", b, "--events", b}, lost("--events", b, "--pool")},
           {{"quantize", a, "--calibration", b, "-o", a}, lost("-o", a, "MODEL.onnx")},
           {{"quantize", a, "--calibration", b, "-o", b}, lost("-o", b, "--calibration")},
           {{"tasks", a, "--annotate", a}, lost("--annotate", a, "MODEL.onnx")},
           {{"tasks", a, "--records", b, "--annotate", b}, lost("--annotate", b, "--records")},
           {{"records", "merge", a, b, "-o", b}, lost("-o", b, "RECORDS")},
           {{"records", "best", a, "-o", a}, lost("-o", a, "RECORDS")},
           {{"records", "distill", "--records", a, "-o", a}, lost("-o", a, "--records")},
           {{"records", "convert", a, "-o", a}, lost("-o", a, "RECORDS")},
           {{"report", a, "-o", a}, lost("-o", a, "RUN")},
           {{"eval", "--dataset", a, "-o", a}, lost("-o", a, "--dataset")},
           {{"train", "--dataset", a, "-o", a}, lost("-o", a, "--dataset")},
           {{"fine-tune", "--dataset", a, "--load-model", b, "-o", b},
            lost("-o", b, "--load-model")},
           {{"dataset", "make", "--records", a, "-o", a}, lost("-o", a, "--records")},
           {{"dataset", "make", "--records", a, "--dags", b, "-o", b}, lost("-o", b, "--dags")}})
    expect_refused(command, said);
}

TEST_F(WrittenFiles, AreNotThoseThatAreReadByAnotherName) {
  const std::string round = dir + "/../" + fs::path(dir).filename().string() + "/a";
  const std::string link = dir + "/link";
  fs::create_symlink(first, link);
  for (const std::string& path : {round, link})
    expect_refused({"run", "--module", "m.so", "--inputs", first, "--outputs", path},
                   lost("--outputs", path, "--inputs"));
}

TEST_F(WrittenFiles, AreNotAmongFilesOfAPattern) {
  const std::string records = dir + "/c";
  ASSERT_TRUE(write_file(records, "{}\n").ok());
  expect_refused({"dataset", "make", "--records", dir + "/*", "-o", records},
                 records + ": is one of the inputs; choose another name with -o");
  EXPECT_EQ(*read_file(records), "{}\n");
}

TEST_F(WrittenFiles, AreTwoFiles) {
  const std::string fresh = dir + "/new";
  expect_refused({"run", "--module", first, "--fill", "ones", "--outputs", fresh, "--trace", fresh},
                 lost("--outputs", fresh, "--trace"));
  expect_refused({"tune", first, "-o", fresh, "--trace", dir + "/./new"},
                 lost("--trace", dir + "/./new", "-o"));
}

TEST_F(WrittenFiles, AreNoneOfARunThatIsReported) {
  const std::string run = dir + "/run";
  fs::create_directories(run);
  for (const char* name : {"total_latency.tsv", "run.json"}) {
    const std::string path = run + "/" + name;
    ASSERT_TRUE(write_file(path, "precious\n").ok());
    expect_refused(
        {"report", run, "-o", path},
        "-o " + path + ": is a file of the run, which would be lost; choose another name");
    EXPECT_EQ(*read_file(path), "precious\n");
  }
}

// A file that a command writes replaces only a file of the same kind.
TEST_F(WrittenFiles, ReplaceNoFileOfAnotherKind) {
  const std::string model = dir + "/m.onnx";
  ASSERT_TRUE(write_file(model, "precious\n").ok());
  const auto kept = [](const std::string& path, const char* is) {
    return path + " is " + is + ", which would be lost; choose another name";
  };
  const std::vector<std::string> run = {"run", "--module", dir + "/m.so", "--fill", "ones"};
  const auto with = [&](const char* flag, const std::string& path) {
    std::vector<std::string> command = run;
    command.insert(command.end(), {flag, path});
    return command;
  };
  expect_refused(with("--outputs", model), "--outputs: " + kept(model, "an ONNX model"));
  expect_refused(with("--outputs", first), "--outputs: " + kept(first, "a text file"));
  expect_refused(with("--trace", first), "--trace: " + kept(first, "a text file"));
  expect_refused({"networks", "export", "bert_tiny", "-o", first},
                 "-o: " + kept(first, "a text file"));
  expect_refused({"records", "merge", second, "-o", model}, "-o: " + kept(model, "an ONNX model"));
  EXPECT_EQ(*read_file(model), "precious\n");
  const ProgramRun unnamed = run_program({"compile", "--op", "matmul 8 8 8", "-o", ""});
  EXPECT_EQ(unnamed.exit_code, 2);
  EXPECT_NE(unnamed.err.find("the name of the file is empty"), std::string::npos) << unnamed.err;
}

// The same word may be the name of a network and of a file.
TEST_F(WrittenFiles, MayHaveTheNameOfANetwork) {
  const ProgramRun run = run_program({"networks", "export", "resnet_51", "-o", "m.onnx"});
  EXPECT_NE(run.err.find("resnet_51"), std::string::npos) << run.err;
  const std::string here = fs::current_path().string();
  fs::current_path(dir);
  ASSERT_TRUE(write_file("bert_tiny", "").ok());
  const ProgramRun again = run_program({"networks", "export", "bert_tiny", "-o", "bert_tiny"});
  fs::current_path(here);
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

}  // namespace
}  // namespace pruner
