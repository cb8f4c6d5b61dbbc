// label: codegen
// The programs of examples/ on modules that are not what they are written for: they say so, rather
// than read other memory than theirs.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "graph/onnx/onnx_model.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Examples : testing::Test {
  Examples() : dir(fs::temp_directory_path() / ("pruner_examples_" + std::to_string(getpid()))) {
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~Examples() override { fs::remove_all(dir); }

  void SetUp() override {
    if (std::system("c++ --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no c++ here";
    OnnxModel model;
    model.input("x", {4}).output("y").node("ArgMax", {"x"}, {"y"});
    ASSERT_TRUE(write_file(dir + "/largest.onnx", model.bytes()).ok());
    ASSERT_EQ(run_program({"compile", dir + "/largest.onnx", "-o", module()}).exit_code, 0);
  }
  std::string module() const { return dir + "/largest.so"; }

  /// Returns what an example prints on the module, and the example's exit code.
  std::string run(const std::string& compiler,
                  const std::string& source,
                  const std::string& more) const {
    const std::string root = test_path(".."), out = dir + "/out";
    const std::string build = compiler + " -Wall -Wextra -Werror -I" + root + "/include " + root +
                              "/examples/" + source + " -ldl -o " + dir + "/program";
    const std::string all =
        "(" + build + " && " + dir + "/program " + module() + more + ") >" + out + " 2>&1";
    const int status = std::system(all.c_str());
    return *read_file(out) +
           (WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status)) : "killed");
  }

  std::string dir;
};

TEST_F(Examples, SayThatAnOutputIsNotOfFloats) {
  EXPECT_EQ(run("c++ -std=c++17", "run_module.cpp", ""), "output y is not of floats\nexit 1");
  EXPECT_EQ(run("cc", "run_module.c", ""), "input x: 4\noutput y: 1\nexit 0");
}

TEST_F(Examples, SayThatAModuleDecodesNothing) {
  EXPECT_EQ(run("c++ -std=c++17", "decode.cpp", " 3 1 2"),
            module() + ": compile it with --decode\nexit 1");
}

}  // namespace
}  // namespace pruner
