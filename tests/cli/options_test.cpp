#include "cli/options.h"

#include <regex>

#include "cli/commands.h"
#include "cli/measurer.h"
#include "cli/model_options.h"
#include "cli/pool.h"
#include "cli/record_files.h"
#include "cli/recorded_source.h"
#include "cli/search_options.h"
#include "cli/source_set.h"
#include "golden.h"

namespace pruner {
namespace {

Result<CommandLine> parse(std::vector<const char*> arguments,
                          std::span<const Command> commands = kCommands) {
  arguments.insert(arguments.begin(), "pruner");
  return parse_command_line(commands, static_cast<int>(arguments.size()), arguments.data());
}

std::string help_of(const Command& command) {
  const std::string name(command.name);
  const size_t space = name.find(' ');
  const std::string first = name.substr(0, space);
  std::vector<const char*> arguments = {first.c_str()};
  if (space != std::string::npos) arguments.push_back(name.c_str() + space + 1);
  arguments.push_back("--help");
  return parse(arguments)->text;
}

/// `Given` has the options that commands share, as a command has them that runs nothing.
struct Given {
  SourceOptions source;
  MeasurerOptions measure;
  ContestantOptions contestant;
  ExplorerOptions explorer;
  OfferOptions offers;
  std::string out_file;

  void add_to(CLI::App& app) {
    source.add_to(app);
    measure.add_to(app);
    contestant.add_to(app);
    explorer.add_to(app, "");
    offers.add_to(app);
    add_out_file(app, out_file, "", {FileKind::kText});
  }
};

/// The fields that a command line of such a command fills.
template <typename T = Given>
Result<T> given(std::vector<const char*> arguments) {
  static T* read = nullptr;
  const auto value = std::make_unique<T>();
  read = value.get();
  const Command commands[] = {{CommandGroup::kOther, "given", "", [](CLI::App& app) -> RunCommand {
                                 read->add_to(app);
                                 return [](const Invocation&) { return kDone; };
                               }}};
  arguments.insert(arguments.begin(), "given");
  TRY_ASSIGN(const CommandLine line, parse(arguments, commands));
  EXPECT_EQ(line.command->name, "given");
  return *value;
}

TEST(ParseCommandLine, ReadsOptionsIntoTheirFields) {
  const Result<CommandLine> line = parse(
      {"tune", "model.onnx", "--n-trials", "200", "--budget=10m", "--fresh", "--threads", "2"});
  ASSERT_TRUE(line.ok()) << line.error().message();
  EXPECT_EQ(line->command->name, "tune");
  EXPECT_FALSE(line->call.json);
  EXPECT_EQ(line->call.command_line,
            "pruner tune model.onnx --n-trials 200 --budget=10m --fresh --threads 2");
  EXPECT_TRUE(parse({"tune", "--json", "--dry-run"})->call.json);
  const Result<Given> read = given(
      {"model.onnx", "--n-trials", "200", "--flush-l2", "--threads=2", "--eps-greedy", "0.5"});
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->source.model_file, "model.onnx");
  EXPECT_EQ(read->explorer.trials, 200);
  EXPECT_EQ(read->explorer.mode.eps_greedy, 0.5);
  EXPECT_EQ(read->explorer.mode.round_size, 0) << "each mode's own";
  EXPECT_EQ(read->measure.target.threads, 2);
  EXPECT_TRUE(read->measure.flush_l2);
}

TEST(ParseCommandLine, ReadsSeveralNetworksToCompare) {
  const Result<NetworkListOptions> list =
      given<NetworkListOptions>({"a.onnx", "resnet_18", "--network", "bert_tiny,vgg_16"});
  ASSERT_TRUE(list.ok()) << list.error().message();
  EXPECT_EQ(list->models, (std::vector<std::string>{"a.onnx", "resnet_18"}));
  EXPECT_EQ(list->source.network, "bert_tiny,vgg_16");
  EXPECT_TRUE(
      parse({"compare", "a.onnx", "resnet_18", "--network", "bert_tiny,vgg_16", "--modes", "a,b"})
          .ok());
  EXPECT_TRUE(parse({"compare", "--set", "ten.json", "--modes", "a,b"}).ok());
  const Result<NetworkListOptions> set = given<NetworkListOptions>({"--set", "ten.json"});
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->set, "ten.json");
  EXPECT_ERROR(parse({"tune", "a.onnx", "b.onnx"}), "b.onnx: nothing is expected here");
}

// The command lines of the project's own documents, with `pruner tune` for the script.
TEST(ParseCommandLine, ReadsTheReferencesCommandLines) {
  const std::vector<const char*> arguments = {"--network",
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
                                              "a100_40"};
  const Result<Given> read = given(arguments);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->source.network, "resnet_50");
  EXPECT_EQ(read->explorer.trials, 2000);
  EXPECT_EQ(read->contestant.cost_model, "pam-siamese-update");
  EXPECT_EQ(read->contestant.load_model, "pam_k80_1500.pkl");
  EXPECT_EQ(read->measure.target.name, "cuda --model=a100");
  EXPECT_EQ(read->measure.target.device, "a100_40");
  std::vector<const char*> tune = arguments;
  tune.insert(tune.begin(), "tune");
  tune.push_back("--continue-tuning");
  EXPECT_TRUE(parse(tune).ok());
}

// The same of the offline scripts: pruner_train_model.py, pruner_fine_tune_model.py and their
// flags.
TEST(ParseCommandLine, ReadsTheReferencesTrainingCommandLines) {
  const Result<TrainingOptions> train =
      given<TrainingOptions>({"--dataset", "dataset_pam_k80_500.pkl", "--model", "pam"});
  ASSERT_TRUE(train.ok()) << train.error().message();
  EXPECT_EQ(train->datasets, (std::vector<std::string>{"dataset_pam_k80_500.pkl"}));
  EXPECT_EQ(train->pretrain.model, "pam");
  EXPECT_TRUE(
      parse({"fine-tune", "--dataset", "pam_a100_dataset.pkl", "--load-model", "pam_k80_1500.pkl"})
          .ok());
  const std::vector<const char*> arguments = {"--dataset",
                                              "a.ds",
                                              "b.ds",
                                              "--models",
                                              "pam",
                                              "--seed",
                                              "3",
                                              "--save_path",
                                              "ckpt",
                                              "--file_cnt",
                                              "0",
                                              "--ratio",
                                              "0.5",
                                              "--fold",
                                              "2",
                                              "--split-scheme",
                                              "by_task",
                                              "--train-ratio",
                                              "0.8"};
  const Result<TrainingOptions> all = given<TrainingOptions>(arguments);
  ASSERT_TRUE(all.ok()) << all.error().message();
  EXPECT_EQ(all->datasets, (std::vector<std::string>{"a.ds", "b.ds"}));
  EXPECT_EQ(all->split_scheme, "by_task");
  EXPECT_EQ(all->folds, 2);
  EXPECT_EQ(all->pretrain.share, 0.5);
  EXPECT_EQ(all->pretrain.split.train_ratio, 0.8);
  EXPECT_EQ(all->pretrain.split.seed, 3u);
  EXPECT_EQ(all->save_path, "ckpt");
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
}

TEST(ParseCommandLine, TakesUnderscoresInNamesForHyphens) {
  const Result<Given> read = given({"--cost_model=pam_x", "--load_model", "a_b.pkl"});
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->contestant.cost_model, "pam_x");
  EXPECT_EQ(read->contestant.load_model, "a_b.pkl");
  EXPECT_EQ(parse({"tune", "--cost_model=pam_x", "--load_model", "a_b.pkl"})->call.command_line,
            "pruner tune --cost_model=pam_x --load_model a_b.pkl");
  const std::regex unreachable("\n  [^ ]*--[a-z-]*_");
  for (const Command& command : kCommands)
    EXPECT_FALSE(std::regex_search(help_of(command), unreachable)) << help_of(command);
  EXPECT_ERROR(parse({"tune", "--n_trial", "3"}),
               "--n-trial: unknown option; did you mean --n-trials?");
}

TEST(ParseCommandLine, KnowsAliasesAndShortForms) {
  EXPECT_EQ(given({"--model", "random"})->contestant.cost_model, "random");
  EXPECT_EQ(given({"-o", "x.so"})->out_file, "x.so");
  const std::vector<std::string> files = {"a.json", "b.json"};
  EXPECT_TRUE(parse({"compile", "--records", "a.json", "--logs", "b.json", "m.onnx"}).ok());
  const Result<RecordedOptions> both =
      given<RecordedOptions>({"--records", "a.json", "--logs", "b.json", "m.onnx"});
  ASSERT_TRUE(both.ok()) << both.error().message();
  EXPECT_EQ(both->records, files);
  EXPECT_EQ(both->source.model_file, "m.onnx");
  EXPECT_EQ(given<RecordFileOptions>({"a.json", "b.json"})->files, files);
  EXPECT_TRUE(parse({"records", "best", "a.json", "b.json"}).ok());
}

TEST(ParseCommandLine, FindsCommandsOfTwoWords) {
  EXPECT_EQ(parse({"networks"})->command->name, "networks");
  EXPECT_EQ(parse({"networks", "export", "resnet_18", "-o", "r.onnx"})->command->name,
            "networks export");
  EXPECT_EQ(parse({"device", "probe"})->command->name, "device probe");
  EXPECT_EQ(parse({"device", "list"})->command->name, "device list");
  EXPECT_ERROR(
      parse({"device"}),
      "device: a second word is missing: list, host, show, probe or fit; see pruner device --help");
  // Older names.
  for (const char* word : {"list", "host"}) EXPECT_TRUE(parse({"devices", word}).ok());
  EXPECT_TRUE(parse({"devices"}).ok());
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
  EXPECT_EQ(parse({"worker", "--help"})->text.find("Build what"), std::string::npos);
}

}  // namespace
}  // namespace pruner
