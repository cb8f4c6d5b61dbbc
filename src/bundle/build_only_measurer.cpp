#include "bundle/build_only_measurer.h"

#include <map>

namespace pruner {

namespace {

class BuildOnlyMeasurer : public Measurer {
 public:
  BuildOnlyMeasurer(std::unique_ptr<LocalMeasurer> builder, BundleWriter bundle, TrialLabels labels)
      : builder_(std::move(builder)), bundle_(std::move(bundle)), labels_(std::move(labels)) {}

  Result<std::vector<MeasureResult>> measure(const Task& task,
                                             std::span<const Candidate> batch,
                                             double /*best_s*/) override {
    TRY_ASSIGN(std::vector<Build> builds, builder_->build(task, batch));
    auto it = spaces_.find(task.key);
    if (it == spaces_.end()) it = spaces_.emplace(task.key, make_space(task)).first;
    std::vector<MeasureResult> results;
    for (size_t i = 0; i < builds.size(); ++i) {  // fewer when stopped
      TRY(make_portable(builds[i]));
      Record record = make_record(task, it->second, batch[i], {});
      record.origin = labels_.origin;
      record.mode = labels_.mode;
      TRY(bundle_.append(task, record, builds[i]));
      MeasureResult& result = results.emplace_back();
      result.build_s = builds[i].build_s;
      result.later = true;
    }
    return results;
  }

  MeasureTimes times() const override { return builder_->times(); }

 private:
  std::unique_ptr<LocalMeasurer> builder_;
  BundleWriter bundle_;
  TrialLabels labels_;
  std::map<std::string, Space> spaces_;  // by the task's key
};

}  // namespace

std::unique_ptr<Measurer> make_build_only_measurer(std::unique_ptr<LocalMeasurer> builder,
                                                   BundleWriter bundle,
                                                   TrialLabels labels) {
  return std::make_unique<BuildOnlyMeasurer>(
      std::move(builder), std::move(bundle), std::move(labels));
}

}  // namespace pruner
