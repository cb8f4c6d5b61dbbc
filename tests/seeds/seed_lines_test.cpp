// label: codegen
// Every command line of the documents that Pruner was founded on, letter by letter, with `pruner
// COMMAND` in place of its script: those of Pruner's tutorial as they stand, those of Transfer-
// Tuning's by the command that does the same. What needs a GPU is parsed and planned (--dry-run);
// what a CPU can do is done, at tiny size.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/run_program.h"
#include "own_path.h"
#include "support/file.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

/// The words of a line, as a shell splits it: quotes hold words together, patterns stay.
std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (const char c : line + " ") {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      if (!word.empty()) words.push_back(std::exchange(word, ""));
    } else {
      word += c;
    }
  }
  return words;
}

/// A line without its script ("python3 tune_network.py"), as arguments of a command.
std::vector<std::string> command_of(const std::string& line, const std::string& command) {
  std::vector<std::string> all = words(command);
  const std::vector<std::string> given = words(line);
  all.insert(all.end(), given.begin() + 2, given.end());
  return all;
}

/// README, blog and tutorial.
const char* const kTuneLines[] = {
    R"(python3 tune_network.py --network resnet_50 --n-trials 2000 --cost-model pam --target "cuda --model=a100" --psa a100_40)",
    R"(python3 tune_network.py --network resnet_50 --n-trials 2000 --cost-model pam-siamese-update --load-model pam_k80_1500.pkl --target "cuda --model=a100" --psa a100_40)",
    R"(python3 tune_network.py --network resnet_50 --n-trials 2000 --cost-model mlp --target "cuda --model=a100")",
    R"(python3 tune_network.py --network resnet_50 --n-trials 2000 --cost-model pam-no-update --load-model pam_finetune.pkl --target "cuda --model=a100" --psa a100_40)",
    R"(python3 tune_network.py --network resnet_50 --n-trials 2000 --cost-model mlp-no-update --load-model mlp_finetune.pkl --target "cuda --model=a100")",
    R"(python3 tune_network.py --network resnet_50 --n-trials 2000 --cost-model pam-no-update --load-model fine_tune_pam_a100.pkl --target "cuda --model=a100" --psa a100_40)",
};
// The tutorial names the weights of a PaCM for TenSetMLP: that is said.
constexpr const char* kWrongWeights =
    R"(python3 tune_network.py --network resnet_50 --n-trials 2000 --cost-model mlp-no-update --load-model pam_finetune.pkl --target "cuda --model=a100")";
constexpr const char* kMakeLine =
    "python make_dataset.py --logs ./dataset/measure_records/k80/*.json --hold-out all_five "
    "--out-file dataset_pam_k80_500.pkl --pam 1 --sample-in-files 500";
constexpr const char* kTrainLine =
    "python3 pruner_train_model.py --dataset dataset_pam_k80_500.pkl --model pam";
constexpr const char* kFineTuneLine =
    "python3 fine_tune_model.py --dataset pam_a100_dataset.pkl --load-model pam_k80_1500.pkl";

struct SeedLines : testing::Test {
  SeedLines() : dir(own_path("seed_lines")), before(fs::current_path()) {
    fs::remove_all(dir);
    fs::create_directories(dir + "/dataset/measure_records/k80");
    fs::current_path(dir);
  }
  ~SeedLines() override {
    fs::current_path(before);
    fs::remove_all(dir);
  }

  static ProgramRun run(std::vector<std::string> arguments,
                        const std::vector<std::string>& more = {}) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramRun done = run_program(arguments);
    std::ostringstream line;
    for (const std::string& argument : arguments) line << argument << ' ';
    EXPECT_EQ(done.exit_code, 0) << line.str() << ": " << done.err;
    return done;
  }

  /// Programs of one task: a split of 5,040 rows by each of its divisors up to 1,024 threads.
  static void write_log(const std::string& path) {
    std::string text;
    for (int factor = 1; factor <= 1024; ++factor) {
      if (5040 % factor != 0) continue;
      text += R"({"i": [["[\"matmul_layer\", 5040, 64, 64]", "cuda"], [[], [["SP", 2, 0, 5040, [)" +
              std::to_string(factor) + R"(], 1], ["AN", 2, 0, 5], ["AN", 2, 1, 6]]]], "r": [[)" +
              std::to_string(1.0 / factor) + R"(], 0, 2.5, 1639461739], "v": "v0.6"})" + "\n";
    }
    ASSERT_TRUE(write_file(path, text).ok());
  }

  std::string dir;
  fs::path before;
};

TEST_F(SeedLines, AreParsed) {
  const auto parse = [](const std::vector<std::string>& arguments) {
    std::vector<const char*> argv = {"pruner"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    const Result<CommandLine> line =
        parse_command_line(kCommands, static_cast<int>(argv.size()), argv.data());
    EXPECT_TRUE(line.ok()) << line.error().message();
    return line.ok() ? line->command->name : "";
  };
  for (const char* line : kTuneLines) EXPECT_EQ(parse(command_of(line, "tune")), "tune");
  EXPECT_EQ(parse(command_of(kWrongWeights, "tune")), "tune");
  EXPECT_EQ(parse(command_of(kMakeLine, "dataset make")), "dataset make");
  EXPECT_EQ(parse(command_of(kTrainLine, "train")), "train");
  EXPECT_EQ(parse(command_of(kFineTuneLine, "fine-tune")), "fine-tune");
}

// Data set, training, fine-tuning, then every line of tuning with the weights that came of it.
TEST_F(SeedLines, OfPrunerRunFromTheDataSetToThePlan) {
  if (!can_train()) GTEST_SKIP() << "built without LibTorch";
  write_log("dataset/measure_records/k80/matmul.json");
  run(command_of(kMakeLine, "dataset make"));
  ASSERT_TRUE(fs::exists("dataset_pam_k80_500.pkl"));
  run(command_of(kTrainLine, "train"), {"--epochs", "2"});
  run(command_of(kTrainLine, "train"), {"--epochs", "2", "-o", "pam_k80_1500.pkl"});
  fs::copy_file("dataset_pam_k80_500.pkl", "pam_a100_dataset.pkl");
  run(command_of(kFineTuneLine, "fine-tune"), {"--epochs", "2", "-o", "fine_tune_pam_a100.pkl"});
  fs::copy_file("fine_tune_pam_a100.pkl", "pam_finetune.pkl");
  std::vector<std::string> mlp = command_of(kTrainLine, "train");
  mlp.back() = "mlp";
  run(mlp, {"--epochs", "2", "-o", "mlp_finetune.pkl"});

  for (const char* line : kTuneLines) {
    const ProgramRun plan = run(command_of(line, "tune"), {"--dry-run"});
    EXPECT_NE(plan.out.find("2000 trials"), std::string::npos) << plan.out;
    // On this CPU, whose draft takes no GPU's numbers.
    std::vector<std::string> here = command_of(line, "tune");
    if (here[here.size() - 2] == "--psa") here.resize(here.size() - 2);
    run(here, {"--target", "llvm", "--network", "bert_tiny", "--n-trials", "6", "--fresh"});
  }
  const ProgramRun wrong = run_program(command_of(kWrongWeights, "tune"));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("weights of pacm, expected tenset-mlp"), std::string::npos) << wrong.err;
}

// generate_model_set, autoschedule_models, distil_logfiles, generate_task_info, split_logfiles,
// tt_single_model; tt_multi_models, --minute_check and visualize.py are `transfer --experiment`,
// which tests/cli/transfer_test.cpp runs.
TEST_F(SeedLines, OfTransferTuningHaveACommandEach) {
  run({"networks", "export", "bert_tiny", "-o", "bert_tiny.onnx"});
  run({"tune",
       "bert_tiny.onnx",
       "--n-trials",
       "12",
       "--cost-model",
       "draft-only",
       "--work-dir",
       "raw"});
  run({"records", "distill", "raw", "-o", "best.json.gz"});
  EXPECT_NE(run({"tasks", "bert_tiny.onnx", "--json"}).out.find("\"weight\""), std::string::npos);
  run({"records", "split", "best.json.gz", "--by", "task", "-o", "split"});
  run({"transfer",
       "--network",
       "bert_tiny",
       "--seq-len",
       "64",
       "--from",
       "split",
       "--verify",
       "1"});
}

}  // namespace
}  // namespace pruner
