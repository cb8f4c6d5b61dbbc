// pruner train, fine-tune and eval, on files of features that the tests make.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/run_program.h"
#include "dataset/dataset_writer.h"
#include "golden.h"
#include "model/weights.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/json.h"
#include "support/rng.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct TrainCommand : testing::Test {
  TrainCommand() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    dir = (fs::temp_directory_path() / ("pruner_train_" + std::to_string(getpid()) + test->name()))
              .string();
    fs::create_directories(dir);
  }
  ~TrainCommand() override { fs::remove_all(dir); }

  /// A file of `per_task` programs of each workload, whose latency doubles along two columns.
  std::string dataset(const std::string& name,
                      const std::string& target,
                      const std::vector<std::string>& workloads,
                      int per_task = 60) const {
    const std::string path = dir + "/" + name;
    Result<DatasetWriter> writer = DatasetWriter::open(path);
    EXPECT_TRUE(writer.ok());
    std::vector<DatasetRow> rows;
    std::vector<DatasetTask> tasks;
    for (const std::string& workload : workloads) {
      Rng rng(hash64(workload));
      for (int i = 0; i < per_task; ++i) {
        ProgramFeatures features;
        features.rows.resize(kRowFeatures);
        for (size_t j = 0; j < 4; ++j) features.rows[j] = static_cast<float>(rng.uniform());
        const double latency_s =
            i == 7 ? 1e10 : 1e-3 * std::exp2(3 * features.rows[1] - 2 * features.rows[2]);
        rows.push_back({*writer->add(features),
                        static_cast<int32_t>(tasks.size()),
                        latency_s,
                        hash64(workload + target + std::to_string(i))});
      }
      tasks.push_back({workload, target});
    }
    EXPECT_TRUE(writer->finish(rows, tasks, "{}").ok());
    return path;
  }

  std::string file(const std::string& name) const { return dir + "/" + name; }

  /// The line that was printed, without "pruner: ".
  static std::string fail(const std::vector<std::string>& arguments) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    return run.err;
  }

  std::string dir;
};

#define NEEDS_TRAINER(run) \
  if ((run).err.find("plug-in") != std::string::npos) GTEST_SKIP() << (run).err

TEST_F(TrainCommand, TrainsFineTunesAndJudges) {
  const std::string k80 = dataset("k80.ds", "cuda -model=k80", {"[\"a\"]", "[\"b\"]", "[\"c\"]"});
  const std::string v100 = dataset("v100.ds", "cuda -model=v100", {"[\"c\"]", "[\"d\"]"});
  const ProgramRun trained = run_program({"train",
                                          "--dataset",
                                          k80,
                                          "--model",
                                          "pam",
                                          "--epochs",
                                          "3",
                                          "--seed",
                                          "1",
                                          "-o",
                                          file("k80.safetensors")});
  NEEDS_TRAINER(trained);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("left out 3 failed trials"), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("ETA"), std::string::npos) << trained.err;
  EXPECT_NE(trained.out.find("average peak score@5"), std::string::npos) << trained.out;

  const ProgramRun tuned = run_program({"fine-tune",
                                        "--dataset",
                                        v100,
                                        "--load-model",
                                        file("k80.safetensors"),
                                        "--epochs",
                                        "2",
                                        "--ratio",
                                        "0.5",
                                        "-o",
                                        file("v100.safetensors"),
                                        "--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const Json said = *parse_json(tuned.out);
  EXPECT_EQ(said["trained_on"], 52);  // half of 106, 26 of each task
  EXPECT_EQ(said["held_out"], 12);
  EXPECT_EQ(said["epochs"], 2);

  const ProgramRun judged =
      run_program({"eval", "--dataset", k80, "--load-model", file("v100.safetensors"), "--json"});
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  const Json seen = *parse_json(judged.out);
  EXPECT_EQ(seen["seen"]["programs"], 159);
  EXPECT_EQ(seen["seen"]["others_of_their_workloads"], 18);
  EXPECT_EQ(seen["programs"], 18);
  EXPECT_GT(seen["random"]["peak"]["1"].get<double>(), 0.1);

  const ProgramRun other = run_program({"eval",
                                        "--dataset",
                                        v100,
                                        "--load-model",
                                        file("k80.safetensors"),
                                        "--new-tasks",
                                        "--json"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ((*parse_json(other.out))["tasks"].size(), 1u);
  EXPECT_EQ((*parse_json(other.out))["tasks"][0]["workload_key"], "[\"d\"]");
}

TEST_F(TrainCommand, FoldsAreTrainingsOfTheirOwn) {
  const std::string k80 = dataset("k80.ds", "cuda", {"[\"a\"]", "[\"b\"]"});
  const ProgramRun run = run_program({"train",
                                      "--dataset",
                                      k80,
                                      "--model",
                                      "mlp",
                                      "--epochs",
                                      "1",
                                      "--fold",
                                      "2",
                                      "--save_path",
                                      file("ckpt")});
  NEEDS_TRAINER(run);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(fs::exists(file("ckpt/1/mlp_k80_2_2.pkl")));
  EXPECT_TRUE(fs::exists(file("ckpt/2/mlp_k80_2_2.pkl")));
}

// The script's own command line but for --epochs, and what it leaves in ckpt/k80/500/1.
TEST_F(TrainCommand, LeavesWhatTheReferencesScriptLeaves) {
  const std::string k80 = dataset("dataset_pam_k80_500.pkl", "cuda", {"[\"a\"]", "[\"b\"]"}, 900);
  const ProgramRun run = run_program({"train",
                                      "--dataset",
                                      k80,
                                      "--model",
                                      "pam",
                                      "--save_path",
                                      file("ckpt/k80/500"),
                                      "--ratio",
                                      "0.5",
                                      "--epochs",
                                      "7",
                                      "--json"});
  NEEDS_TRAINER(run);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string model = file("ckpt/k80/500/1/pam_k80_2_1.pkl");
  const Json said = *parse_json(run.out);
  EXPECT_EQ(said["file"], model);
  EXPECT_EQ(read_file(model)->substr(0, 2), "\x80\x03") << "a pickle";

  // Each of the five best epochs has a file whose name has the epoch's losses.
  const auto losses = said["losses"].get<std::vector<double>>();
  const auto validation = said["validation_losses"].get<std::vector<double>>();
  ASSERT_EQ(validation.size(), 7u);
  std::vector<size_t> epochs = {0, 1, 2, 3, 4, 5, 6};
  std::ranges::sort(epochs, {}, [&](size_t e) { return validation[e]; });
  for (size_t i = 0; i < epochs.size(); ++i) {
    const size_t e = epochs[i];
    const std::string name = file(
        fmt::format("ckpt/k80/500/1/epoch={}-loss={}-val_loss{}.pkl", e, losses[e], validation[e]));
    EXPECT_EQ(fs::exists(name), i < 5) << name;
    if (i > 0) continue;
    ModelWeights best = *load_weights(name), last = *load_weights(model);
    EXPECT_EQ(best, last) << "the model is the best epoch's";
  }

  const std::string tsv = *read_file(file("ckpt/k80/500/1/pam_k80_2_1.training.tsv"));
  EXPECT_EQ(std::ranges::count(tsv, '\n'), 8) << tsv;
  EXPECT_NE(tsv.find(fmt::format("\n7\t{}\t{}\t", losses[6], validation[6])), std::string::npos)
      << tsv;
  EXPECT_TRUE(fs::exists(file("ckpt/k80/500/1/pam_k80_2_1.training.svg")));
  const std::string printed =
      fmt::format("7/7: loss {:.4f}, validation {:.4f} ", losses[6], validation[6]);
  EXPECT_NE(run.err.find(printed), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("learning rate"), std::string::npos) << run.err;

  const ProgramRun tuned = run_program({"fine-tune",
                                        "--dataset",
                                        k80,
                                        "--load_model",
                                        model,
                                        "--save_path",
                                        file("tuned"),
                                        "--file_cnt",
                                        "313",
                                        "--epochs",
                                        "1"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_EQ(load_weights(file("tuned/1/fine_tune_pam_k80_313_313.pkl"))->mode,
            "fine_tune_mix_task");
}

TEST_F(TrainCommand, JudgesARandomOrderToo) {
  const std::string k80 = dataset("k80.ds", "cuda", {"[\"a\"]"}, 500);
  const ProgramRun run =
      run_program({"eval", "--dataset", k80, "--model", "random", "--seed", "2", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = *parse_json(run.out);
  EXPECT_EQ(json["programs"], 499);
  EXPECT_NEAR(json["pairwise_accuracy"].get<double>(), 0.5, 0.1);
}

TEST_F(TrainCommand, SaysWhatIsWrongInOneLine) {
  const std::string k80 = dataset("k80.ds", "cuda", {"[\"a\"]"});
  const std::string cpu = dataset("cpu.ds", "llvm -mcpu=haswell", {"[\"a\"]"});
  const std::string model = file("model.safetensors");
  const auto says = [&](const std::vector<std::string>& arguments, const char* words) {
    const std::string line = fail(arguments);
    EXPECT_NE(line.find(words), std::string::npos) << line;
  };
  says({"train", "--dataset", k80, cpu, "-o", model},
       "the datasets mix targets of kind llvm and cuda");
  says({"train", "-o", model}, "train: no dataset is named");
  says({"train", "--dataset", file("none.ds"), "-o", model}, "none.ds");
  says({"train", "--dataset", k80, "--train-ratio", "2", "-o", model}, "--train-ratio is 2");
  says({"train", "--dataset", k80, "--split", "by_file", "-o", model}, "\"by_file\" is unknown");
  says({"fine-tune", "--dataset", k80, "-o", model}, "no model to start from");
  says({"eval", "--dataset", k80}, "eval: no model is named");
  const std::string whole = dataset("whole.ds", "cuda", {"[\"a\"]"}, 7);  // nothing failed
  says({"train", "--dataset", whole, "--model", "tlp", "-o", "tlp.pkl"},
       "tlp.pkl: a .pkl holds PaCM or TenSetMLP; name the file of a TLP .safetensors");
  says({"train", "--dataset", whole, "--model", "xgb", "-o", "trees.pkl"},
       "trees.pkl: trees are kept in xgboost's JSON; name the file .json");
  says({"train", "--dataset", whole, "--save_path", whole + "/ckpt"}, "/ckpt: Not a directory");
  EXPECT_TRUE(write_file(file("text.safetensors"), "weights").ok());
  says({"eval", "--dataset", k80, "--load-model", file("text.safetensors")}, "not a checkpoint");
  EXPECT_FALSE(fs::exists(model));
}

}  // namespace
}  // namespace pruner
