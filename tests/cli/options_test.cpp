#include "cli/options.h"

#include <cstring>

#include "cli/option_table.h"
#include "golden.h"

namespace pruner {
namespace {

Result<CommandLine> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "pruner");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

TEST(ParseCommandLine, ReadsOptionsIntoTheirFields) {
  const Result<CommandLine> line = parse(
      {"tune", "model.onnx", "--n-trials", "200", "--budget=10m", "--fresh", "--threads", "2"});
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_EQ(line->command->name, "tune");
  EXPECT_EQ(line->options.model_file, "model.onnx");
  EXPECT_EQ(line->options.trials, 200);
  EXPECT_EQ(line->options.budget, "10m");
  EXPECT_TRUE(line->options.fresh);
  EXPECT_FALSE(line->options.json);
  EXPECT_EQ(line->options.command_line,
            "pruner tune model.onnx --n-trials 200 --budget=10m --fresh --threads 2");
}

TEST(ParseCommandLine, ReadsSeveralNetworksToCompare) {
  const Result<CommandLine> line =
      parse({"compare", "a.onnx", "resnet_18", "--network", "bert_tiny,vgg_16", "--modes", "a,b"});
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_EQ(line->options.models, (std::vector<std::string>{"a.onnx", "resnet_18"}));
  EXPECT_EQ(line->options.network, "bert_tiny,vgg_16");
  const Result<CommandLine> set = parse({"compare", "--set", "ten.json", "--modes", "a,b"});
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->options.network_set, "ten.json");
  EXPECT_ERROR(parse({"tune", "a.onnx", "b.onnx"}), "b.onnx: nothing is expected here");
}

// The command lines of the project's own documents, with `pruner tune` for the script.
TEST(ParseCommandLine, ReadsTheReferencesCommandLines) {
  const Result<CommandLine> line = parse({"tune",
                                          "--network",
                                          "resnet_50",
                                          "--n-trials",
                                          "2000",
                                          "--cost-model",
                                          "pam-siamese-update",
                                          "--load-model",
                                          "pam_k80_1500.pkl",
                                          "--target",
                                          "cuda --model=a100",
                                          "--psa",
                                          "a100_40",
                                          "--continue-tuning"});
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_EQ(line->options.cost_model, "pam-siamese-update");
  EXPECT_EQ(line->options.target, "cuda --model=a100");
  EXPECT_EQ(line->options.device_abstraction, "a100_40");
}

// The same of the offline scripts: pruner_train_model.py, pruner_fine_tune_model.py and their
// flags.
TEST(ParseCommandLine, ReadsTheReferencesTrainingCommandLines) {
  const Result<CommandLine> train =
      parse({"train", "--dataset", "dataset_pam_k80_500.pkl", "--model", "pam"});
  ASSERT_TRUE(train.ok()) << train.error().message();
  EXPECT_EQ(train->options.datasets, (std::vector<std::string>{"dataset_pam_k80_500.pkl"}));
  EXPECT_EQ(train->options.cost_model, "pam");
  const Result<CommandLine> tune =
      parse({"fine-tune", "--dataset", "pam_a100_dataset.pkl", "--load-model", "pam_k80_1500.pkl"});
  ASSERT_TRUE(tune.ok()) << tune.error().message();
  EXPECT_EQ(tune->options.load_model, "pam_k80_1500.pkl");
  const Result<CommandLine> all =
      parse({"train",          "--dataset", "a.ds",          "b.ds", "--models",   "pam",
             "--seed",         "3",         "--save_path",   "ckpt", "--file_cnt", "0",
             "--ratio",        "0.5",       "--select_cnt",  "-1",   "--fold",     "2",
             "--split-scheme", "by_task",   "--train-ratio", "0.8",  "--use-gpu"});
  ASSERT_TRUE(all.ok()) << all.error().message();
  EXPECT_EQ(all->options.datasets, (std::vector<std::string>{"a.ds", "b.ds"}));
  EXPECT_EQ(all->options.split_scheme, "by_task");
  EXPECT_EQ(all->options.folds, 2);
  EXPECT_EQ(all->options.share, 0.5);
}

// `pruner dataset make` for make_dataset.py; the shell puts files in the pattern's place.
TEST(ParseCommandLine, ReadsTheReferencesDatasetCommandLine) {
  const Result<CommandLine> line = parse({"dataset",
                                          "make",
                                          "--logs",
                                          "./dataset/measure_records/k80/a.json",
                                          "./dataset/measure_records/k80/b.json",
                                          "--hold-out",
                                          "all_five",
                                          "--out-file",
                                          "dataset_pam_k80_500.pkl",
                                          "--pam",
                                          "1",
                                          "--sample-in-files",
                                          "500"});
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_EQ(line->command->name, "dataset make");
  EXPECT_EQ(line->options.records.size(), 2u);
  EXPECT_EQ(line->options.hold_out, "all_five");
  EXPECT_EQ(line->options.out_file, "dataset_pam_k80_500.pkl");
  EXPECT_EQ(line->options.sample_in_files, 500);
  EXPECT_EQ(line->options.min_sample_size, -1) << "what the command takes unasked";
}

TEST(ParseCommandLine, TakesUnderscoresInNamesForHyphens) {
  const Result<CommandLine> line = parse({"tune", "--cost_model=pam_x", "--load_model", "a_b.pkl"});
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_EQ(line->options.cost_model, "pam_x");
  EXPECT_EQ(line->options.load_model, "a_b.pkl");
  EXPECT_EQ(line->options.command_line, "pruner tune --cost_model=pam_x --load_model a_b.pkl");
  for (const OptionRow& row : option_table())
    EXPECT_TRUE(row.flags[0] != '-' || !std::strchr(row.flags, '_'))
        << row.flags << " cannot be reached";
  EXPECT_ERROR(parse({"tune", "--n_trial", "3"}),
               "--n-trial: unknown option; did you mean --n-trials?");
}

TEST(ParseCommandLine, KnowsAliasesAndShortForms) {
  EXPECT_EQ(parse({"tune", "--model", "random"})->options.cost_model, "random");
  EXPECT_EQ(parse({"compile", "-o", "x.so"})->options.out_file, "x.so");
  const std::vector<std::string> files = {"a.json", "b.json"};
  EXPECT_EQ(
      parse({"compile", "--records", "a.json", "--logs", "b.json", "m.onnx"})->options.records,
      files);
  EXPECT_EQ(parse({"records", "best", "a.json", "b.json"})->options.files, files);
}

TEST(ParseCommandLine, FindsCommandsOfTwoWords) {
  EXPECT_EQ(parse({"networks"})->command->name, "networks");
  EXPECT_EQ(parse({"networks", "export", "resnet_18", "-o", "r.onnx"})->command->name,
            "networks export");
  EXPECT_EQ(parse({"device", "probe"})->command->name, "device probe");
  EXPECT_ERROR(parse({"device"}), "device: a second word is missing; see pruner device --help");
}

TEST(ParseCommandLine, ExplainsWhatItDoesNotKnow) {
  EXPECT_ERROR(parse({"tume"}), "tume: unknown command; did you mean tune? see pruner --help");
  EXPECT_ERROR(parse({"xyzzy", "--n-trials", "3"}), "xyzzy: unknown command; see pruner --help");
  EXPECT_ERROR(parse({"tune", "--n-trial", "3"}),
               "--n-trial: unknown option; did you mean --n-trials? see pruner tune --help");
  EXPECT_ERROR(parse({"bench", "--n-trials", "3"}),
               "--n-trials: unknown option; see pruner bench --help");
  EXPECT_ERROR(parse({"tune", "a.onnx", "b.onnx"}), "b.onnx: nothing is expected here");
}

TEST(ParseCommandLine, ExplainsValuesThatDoNotFit) {
  EXPECT_ERROR(parse({"tune", "--n-trials", "many"}), "--n-trials: \"many\" is not a whole number");
  EXPECT_ERROR(parse({"tune", "--n-trials", "0"}), "--n-trials: 0 is less than 1");
  EXPECT_ERROR(parse({"tune", "--threads=-1"}), "--threads: -1 is less than 0");
  EXPECT_ERROR(parse({"tune", "--n-trials"}), "--n-trials: a value is missing");
  EXPECT_ERROR(parse({"bench", "--min-time", "1s"}), "--min-time: \"1s\" is not a number");
}

TEST(ParseCommandLine, HelpAndVersionAreTexts) {
  EXPECT_NE(parse({"--help"})->text.find("tune"), std::string::npos);
  EXPECT_NE(parse({"tune", "--help"})->text.find("--n-trials"), std::string::npos);
  EXPECT_TRUE(parse({"--version"})->text.starts_with("pruner "));
  EXPECT_EQ(parse({"--help"})->text.find("worker"), std::string::npos);
}

}  // namespace
}  // namespace pruner
