#include "cli/model_files.h"

#include <fmt/format.h>

#include <filesystem>

namespace pruner {

namespace {

namespace fs = std::filesystem;

/// FILE.ext -> FILE.foldN.ext
std::string fold_file(const fs::path& path, int64_t fold, int64_t folds) {
  if (folds == 1) return path.string();
  fs::path named = path;
  named.replace_filename(
      fmt::format("{}.fold{}{}", path.stem().string(), fold, path.extension().string()));
  return named.string();
}

/// What its scripts take for the dataset's device: the last word but one between underscores.
std::string device_part(const std::string& dataset) {
  const std::string stem = fs::path(dataset).stem().string();
  const size_t end = stem.rfind('_');
  if (end == std::string::npos) return stem;
  const size_t begin = stem.rfind('_', end - 1);
  return begin < end ? stem.substr(begin + 1, end - begin - 1) : stem.substr(0, end);
}

/// fine_tune_pam_k80_313_313.pkl: the model, the dataset's device, its tasks, and of these
/// --ratio's share.
std::string published_name(const TrainingOptions& options,
                           size_t tasks,
                           const PretrainOptions& pretrain) {
  const Architecture* network = find_architecture(pretrain.model);  // null: boosted trees
  const int64_t count = options.file_count > 0 ? options.file_count : static_cast<int64_t>(tasks);
  const auto used = static_cast<int64_t>(static_cast<double>(count) * pretrain.share);
  return fmt::format("{}{}_{}_{}_{}{}",
                     pretrain.load_model.empty() ? "" : "fine_tune_",
                     network == nullptr ? pretrain.model : network->command,
                     device_part(options.datasets[0]),
                     count,
                     used,
                     network == nullptr       ? ".json"
                     : network->pickled_class ? ".pkl"
                                              : ".safetensors");
}

std::string plain_name(const TrainingOptions& options, const PretrainOptions& pretrain) {
  const bool tunes = !pretrain.load_model.empty();
  return fmt::format("{}_{}{}",
                     tunes ? "fine_tune" : pretrain.model,
                     fs::path(tunes ? pretrain.load_model : options.datasets[0]).stem().string(),
                     pretrain.model == "xgb" ? ".json" : ".safetensors");
}

}  // namespace

Result<Unit> name_model_files(const TrainingOptions& options,
                              int64_t fold,
                              size_t tasks,
                              PretrainOptions& pretrain) {
  if (!options.save_path.empty()) {
    const fs::path folder = fs::path(options.save_path) / std::to_string(fold);
    std::error_code code;
    fs::create_directories(folder, code);
    if (code) return Error("--save-path ", options.save_path, ": ", code.message());
    pretrain.checkpoint_dir = folder.string();
    pretrain.out_file = (folder / published_name(options, tasks, pretrain)).string();
    if (options.pretrain.out_file.empty()) return Unit{};
  }
  const std::string file =
      options.pretrain.out_file.empty() ? plain_name(options, pretrain) : options.pretrain.out_file;
  pretrain.out_file = fold_file(file, fold, options.folds);
  return Unit{};
}

std::string training_file(const std::string& model, std::string_view extension) {
  return fs::path(model).replace_extension(fmt::format(".training.{}", extension)).string();
}

}  // namespace pruner
