#include "model/train_state.h"

#include <cmath>

#include "model/safetensors.h"
#include "support/file.h"
#include "support/json.h"

namespace pruner {
namespace {

constexpr const char* kRun = "run";
constexpr const char* kReport = "report";

struct Part {
  std::string prefix;
  Tensors TrainState::*tensors;
};
const Part kParts[] = {{"now.", &TrainState::tensors},
                       {"best.", &TrainState::best},
                       {"optimizer.", &TrainState::optimizer}};

Json report_of(const TrainState& state) {
  const TrainReport& report = state.report;
  Json json = {{"epochs", report.epochs},
               {"best_epoch", report.best_epoch},
               {"losses", report.losses},
               {"learning_rates", report.learning_rates},
               {"validation_losses", report.validation_losses},
               {"validation_accuracy", report.validation_accuracy},
               {"seconds", report.seconds},
               {"average", state.average},
               {"without_better", state.without_better}};
  if (std::isfinite(state.least_loss)) json["least_loss"] = state.least_loss;
  return json;
}

Result<Unit> read_report(const Json& json, TrainState& state) {
  TrainReport& report = state.report;
  TRY_ASSIGN(report.epochs, json_get<int>(json, "epochs"));
  TRY_ASSIGN(report.best_epoch, json_get<int>(json, "best_epoch"));
  TRY_ASSIGN(report.losses, json_get<std::vector<double>>(json, "losses"));
  TRY_ASSIGN(report.learning_rates, json_get<std::vector<double>>(json, "learning_rates"));
  TRY_ASSIGN(report.validation_losses, json_get<std::vector<double>>(json, "validation_losses"));
  TRY_ASSIGN(report.validation_accuracy,
             json_get<std::vector<double>>(json, "validation_accuracy"));
  TRY_ASSIGN(report.seconds, json_get<double>(json, "seconds"));
  TRY_ASSIGN(state.average, json_get<double>(json, "average"));
  TRY_ASSIGN(state.without_better, json_get<int>(json, "without_better"));
  if (json.contains("least_loss")) {
    TRY_ASSIGN(state.least_loss, json_get<double>(json, "least_loss"));
  }
  return Unit{};
}

Result<TrainState> parse(const std::string& bytes, const std::string& run) {
  TRY_ASSIGN(SafetensorsFile file, parse_safetensors(bytes));
  if (file.metadata[kRun] != run)
    return Error("of a run with other options or programs; without --resume it starts anew");
  TRY_ASSIGN(const Json report, parse_json(file.metadata[kReport]));
  TrainState state;
  TRY(read_report(report, state));
  for (auto& [name, tensor] : file.tensors) {
    for (const Part& part : kParts) {
      if (name.starts_with(part.prefix))
        (state.*part.tensors)[name.substr(part.prefix.size())] = std::move(tensor);
    }
  }
  return state;
}

}  // namespace

Result<Unit> save_train_state(const std::string& path,
                              const TrainState& state,
                              const std::string& run) {
  SafetensorsFile file;
  file.metadata[kRun] = run;
  file.metadata[kReport] = report_of(state).dump();
  for (const Part& part : kParts) {
    for (const auto& [name, tensor] : state.*part.tensors)
      file.tensors[part.prefix + name] = tensor;
  }
  return write_file(path, print_safetensors(file));
}

Result<TrainState> load_train_state(const std::string& path, const std::string& run) {
  TRY_ASSIGN(const std::string bytes, read_file(path));
  Result<TrainState> state = parse(bytes, run);
  if (!state.ok()) return Error(path, ": ", state.error().message());
  return state;
}

}  // namespace pruner
