#include "bundle/build_only_measurer.h"

namespace pruner {

class BundleBuild::Measurers : public Measurer {
 public:
  Measurers(std::shared_ptr<BundleBuild> build, TrialLabels labels)
      : build_(std::move(build)), labels_(std::move(labels)) {}

  Result<std::vector<MeasureResult>> measure(const Task& task,
                                             std::span<const Candidate> batch,
                                             double /*best_s*/) override {
    TRY_ASSIGN(std::vector<Build> builds, build_->builder_->build(task, batch));
    std::vector<MeasureResult> results;
    for (size_t i = 0; i < builds.size(); ++i) {  // fewer when stopped
      TRY(make_portable(builds[i]));
      Record record = make_record(task, build_->space_of(task), batch[i], {});
      record.origin = labels_.origin;
      record.mode = labels_.mode;
      TRY(build_->bundle_.append(task, record, builds[i]));
      MeasureResult& result = results.emplace_back();
      result.build_s = builds[i].build_s;
      result.error = builds[i].error;
      result.error_text = builds[i].error_text;
      result.later = true;
    }
    return results;
  }

  MeasureTimes times() const override { return build_->builder_->times(); }

 private:
  std::shared_ptr<BundleBuild> build_;
  TrialLabels labels_;
};

std::shared_ptr<BundleBuild> BundleBuild::make(std::unique_ptr<LocalMeasurer> builder,
                                               BundleWriter bundle) {
  return std::shared_ptr<BundleBuild>(new BundleBuild(std::move(builder), std::move(bundle)));
}

std::unique_ptr<Measurer> BundleBuild::measurer(TrialLabels labels) {
  return std::make_unique<Measurers>(shared_from_this(), std::move(labels));
}

const Space& BundleBuild::space_of(const Task& task) {
  auto it = spaces_.find(task.key);
  if (it == spaces_.end()) it = spaces_.emplace(task.key, make_space(task)).first;
  return it->second;
}

}  // namespace pruner
