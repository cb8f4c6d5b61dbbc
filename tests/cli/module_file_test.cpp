// label: codegen
// A module takes the place of a module and of nothing else, unless --force is given; what is wrong
// is said before anything is searched or compiled.
#include "cli/module_file.h"

#include <unistd.h>

#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "graph/onnx/onnx_model.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct ModuleFile : testing::Test {
  ModuleFile() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir = (fs::temp_directory_path() /
           ("pruner_module_file_" + std::to_string(getpid()) + test->name()))
              .string();
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~ModuleFile() override { fs::remove_all(dir); }

  std::string write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(write_file(dir + "/" + name, text).ok());
    return dir + "/" + name;
  }

  static std::vector<std::string> compile(const std::string& path) {
    return {"compile", "--op", "relu 64", "-o", path};
  }
  static std::vector<std::string> forced(const std::string& path) {
    return {"compile", "--op", "relu 64", "-o", path, "--force"};
  }

  /// Expects that a command leaves `path` as it is, and what it says.
  static void expect_kept(const std::vector<std::string>& command,
                          const std::string& path,
                          const std::string& said) {
    const std::string before = *read_file(path);
    const ProgramRun run = run_program(command);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_EQ(run.err, "pruner: " + path + ": " + said + "\n");
    EXPECT_EQ(*read_file(path), before);
  }
  static std::string refused(const std::string& kind) {
    return "is " + kind +
           " and not made by `pruner compile`; choose another name with -o, or replace it with "
           "--force";
  }
  static void expect_done(const std::vector<std::string>& command) {
    const ProgramRun run = run_program(command);
    EXPECT_EQ(run.exit_code, 0) << run.err;
  }
  static bool is_module(const std::string& path) {
    return run_program({"bench", "--module", path, "--runs", "1"}).exit_code == 0;
  }

  std::string dir;
};

std::string relu_model() {
  OnnxModel model;
  model.input("x", {4}).output("y").node("Relu", {"x"}, {"y"});
  return model.bytes();
}

TEST_F(ModuleFile, ReplacesNoFileOfTheUser) {
  const std::string model = write("victim.onnx", relu_model());
  const ProgramRun run = run_program({"compile", model, "-o", model});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(*read_file(model), relu_model());
  EXPECT_NE(run.err.find("victim.onnx"), std::string::npos) << run.err;
  const std::string program = write("program", *read_file(PRUNER_BINARY));
  const std::string archive = "!<arch>\n" + std::string(60, ' ') + "nothing of ours";
  for (const auto& [path, kind] : std::vector<std::pair<std::string, std::string>>{
           {write("renamed", relu_model()), "an ONNX model"},
           {program, "a program or a library"},
           {write("libother.a", archive), "a static library"},
           {write("x.npz", "PK\x03\x04..."), "a zip archive"},
           {write("records.json", "{\"i\": []}\n"), "a JSON file"},
           {write("notes.so", "dear diary\n"), "a text file"},
           {write("bytes.so", std::string("\1\2\0\3", 4)), "a file of 4 bytes"}})
    expect_kept(compile(path), path, refused(kind));
  const std::string linked = dir + "/link.so";
  fs::create_symlink(model, linked);
  expect_kept(compile(linked), linked, refused("an ONNX model"));
}

TEST_F(ModuleFile, ReplacesAModuleANewFileAndAnEmptyOne) {
  const std::string module = dir + "/m.so", library = dir + "/libnet.a";
  for (const std::string& path : {module, module, write("empty.so", "")}) {
    expect_done(compile(path));
    EXPECT_TRUE(is_module(path)) << path;
  }
  // A module of an older version has no checksum behind it.
  const std::string whole = *read_file(module);
  expect_done(compile(write("older.so", whole.substr(0, whole.size() - 32))));
  expect_done(compile(library));
  expect_done(compile(library));
  expect_done(compile("/dev/null"));
  // A static library in the place of a shared one, too.
  fs::copy_file(module, dir + "/libshared.a");
  expect_done(compile(dir + "/libshared.a"));
}

TEST_F(ModuleFile, KeepsAHeaderOfTheUserBesideAStaticLibrary) {
  const std::string header = write("net.h", "#define MINE 1\n");
  expect_kept(compile(dir + "/libnet.a"), header, refused("a text file"));
  EXPECT_FALSE(fs::exists(dir + "/libnet.a"));
  expect_done(forced(dir + "/libnet.a"));
  EXPECT_NE(*read_file(header), "#define MINE 1\n");
}

TEST_F(ModuleFile, ForceReplacesAnyFile) {
  const std::string path = write("notes.so", "dear diary\n");
  expect_done(forced(path));
  EXPECT_TRUE(is_module(path));
  const std::string model = write("m.onnx", relu_model());
  expect_done(forced(model));
  EXPECT_TRUE(is_module(model));
}

// The model that is compiled would be lost, also with --force.
TEST_F(ModuleFile, NeverTakesThePlaceOfItsModel) {
  const std::string model = write("m.onnx", relu_model());
  for (const bool force : {false, true}) {
    std::vector<std::string> command = {"compile", model, "-o", model};
    if (force) command.push_back("--force");
    const ProgramRun run = run_program(command);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_NE(run.err.find("names the same file, which would be lost"), std::string::npos)
        << run.err;
    EXPECT_EQ(*read_file(model), relu_model());
  }
}

TEST_F(ModuleFile, IsCheckedBeforeASearch) {
  const std::string notes = write("notes", "dear diary\n"), work_dir = dir + "/out";
  expect_kept({"tune", "--op", "relu 64", "--n-trials", "1", "--work-dir", work_dir, "-o", notes},
              notes,
              refused("a text file"));
  EXPECT_FALSE(fs::exists(work_dir));
  // A network's module has a name without -o, too.
  const std::string model = write("m.onnx", relu_model());
  fs::create_directories(work_dir);
  const std::string usual = write("out/m.so", "dear diary\n");
  expect_kept(
      {"tune", model, "--n-trials", "1", "--work-dir", work_dir}, usual, refused("a text file"));
  EXPECT_FALSE(fs::exists(work_dir + "/records.json"));
  expect_kept({"transfer", model, "--pool", dir, "-o", notes}, notes, refused("a text file"));
}

}  // namespace
}  // namespace pruner
