#include "cli/model_options.h"

#include <filesystem>

#include "golden.h"
#include "own_path.h"

namespace pruner {
namespace {

PretrainOptions named(const TrainingOptions& options,
                      const char* model = "pam",
                      const char* load_model = "",
                      int64_t fold = 1) {
  PretrainOptions pretrain = options.pretrain;
  pretrain.model = model;
  pretrain.load_model = load_model;
  EXPECT_TRUE(name_model_files(options, fold, 313, pretrain).ok());
  return pretrain;
}

TEST(NameModelFiles, GivesTheNamesOfThePublishedScripts) {
  const std::string folder = own_path("ckpt");
  TrainingOptions options;
  options.datasets = {"sets_of/dataset_pam_k80_500.pkl"};
  options.save_path = folder;
  EXPECT_EQ(named(options).out_file, folder + "/1/pam_k80_313_313.pkl");
  EXPECT_EQ(named(options).checkpoint_dir, folder + "/1");
  EXPECT_EQ(named(options, "pacm", "a.pkl", 2).out_file,
            folder + "/2/fine_tune_pam_k80_313_313.pkl");
  options.pretrain.share = 0.5;
  EXPECT_EQ(named(options, "tenset-mlp").out_file, folder + "/1/mlp_k80_313_156.pkl");
  options.file_count = 1000;
  EXPECT_EQ(named(options, "tlp").out_file, folder + "/1/tlp_k80_1000_500.safetensors");
  options.datasets = {"x_/v100.ds"};
  EXPECT_EQ(named(options, "xgb").out_file, folder + "/1/xgb_v100_1000_500.json");
  options.datasets = {"k80_500.ds"};
  EXPECT_EQ(named(options).out_file, folder + "/1/pam_k80_1000_500.pkl");
  options.pretrain.out_file = "own.pkl";
  EXPECT_EQ(named(options).out_file, "own.pkl");
  EXPECT_EQ(named(options).checkpoint_dir, folder + "/1");
  std::filesystem::remove_all(folder);
}

TEST(NameModelFiles, WithoutAFolderNamesAFileHere) {
  TrainingOptions options;
  options.datasets = {"sets/k80.ds"};
  EXPECT_EQ(named(options).out_file, "pam_k80.safetensors");
  EXPECT_EQ(named(options).checkpoint_dir, "");
  EXPECT_EQ(named(options, "xgb").out_file, "xgb_k80.json");
  EXPECT_EQ(named(options, "pam", "in/pam_k80.pkl").out_file, "fine_tune_pam_k80.safetensors");
  options.pretrain.out_file = "out/k80.pkl";
  options.folds = 2;
  EXPECT_EQ(named(options, "pam", "", 2).out_file, "out/k80.fold2.pkl");
}

TEST(TrainingFile, StandsBesideTheModel) {
  EXPECT_EQ(training_file("out/k80.pkl", "tsv"), "out/k80.training.tsv");
}

}  // namespace
}  // namespace pruner
