#include "measure/kernel_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "support/hash.h"

namespace pruner {

static constexpr int kFresh = 64;  // elements that are drawn for one candidate

double form_error(const Artifact& artifact) {
  double error = 0;
  for (const Artifact::Argument& argument : artifact.arguments)
    error = std::max(error, transform_error(argument.pack.transform));
  return error;
}

KernelCheck::KernelCheck(const Workload& workload,
                         const Artifact& artifact,
                         const KernelArguments& arguments,
                         Rng fresh)
    : workload_(workload),
      artifact_(artifact),
      arguments_(arguments),
      rng_(fresh),
      form_error_(form_error(artifact)) {}

std::span<void* const> KernelCheck::outputs() const {
  return std::span(arguments_.pointers).subspan(workload_.inputs.size());
}

uint64_t KernelCheck::fingerprint() const {
  Hasher64 hasher;
  for (size_t i = 0; i < workload_.outputs.size(); ++i) {
    const auto bytes = static_cast<size_t>(workload_.outputs[i].bytes());
    hasher.add({static_cast<const char*>(outputs()[i]), bytes});
  }
  return hasher.hash();
}

std::optional<std::string> KernelCheck::compare_with_peer(size_t i) {
  const PeerOutputs& peer = *workload_.peer;
  const ExpectedOutput& expected = workload_.outputs[i];
  const double form_error = std::max(form_error_, peer.form_error());
  const Differences differences =
      find_differences(expected, outputs()[i], peer.output(i), form_error, rng_);
  const int64_t count = expected.num_elements();
  if (static_cast<double>(differences.count) <= expected.jumps * static_cast<double>(count))
    return std::nullopt;
  const ExpectedOutput there =
      expect_elsewhere(workload_.task.dag, workload_.inputs, expected, differences.some);
  if (auto wrong = find_wrong_sample(there, outputs()[i], form_error_)) {
    return fmt::format(
        "{} ({} of {} differ from another kernel's)", *wrong, differences.count, count);
  }
  refuted_ |= find_wrong_sample(there, peer.output(i), peer.form_error()).has_value();
  return std::nullopt;
}

std::optional<std::string> KernelCheck::find_wrong_in(size_t i) {
  const ExpectedOutput& expected = workload_.outputs[i];
  if (auto wrong = find_wrong_element(expected, outputs()[i], form_error_)) return wrong;
  std::vector<int64_t> fresh(kFresh);
  for (int64_t& element : fresh) element = rng_.below(expected.num_elements());
  const ExpectedOutput there =
      expect_elsewhere(workload_.task.dag, workload_.inputs, expected, std::move(fresh));
  if (auto wrong = find_wrong_sample(there, outputs()[i], form_error_)) return wrong;
  return workload_.peer->held() ? compare_with_peer(i) : std::nullopt;
}

std::string KernelCheck::name(size_t output) const {
  return argument_name(artifact_, static_cast<int>(workload_.inputs.size() + output));
}

std::optional<std::string> KernelCheck::find_written_outside() const {
  for (size_t i = 0; i < workload_.outputs.size(); ++i) {
    if (!arguments_.arguments[workload_.inputs.size() + i]->intact())
      return "wrote outside " + name(i);
  }
  if (!arguments_.workspace().intact()) return "wrote outside the workspace";
  return std::nullopt;
}

std::optional<std::string> KernelCheck::find_wrong_elements() {
  for (size_t i = 0; i < workload_.outputs.size(); ++i) {
    if (const auto wrong = find_wrong_in(i)) return name(i) + " " + *wrong;
  }
  return std::nullopt;
}

std::optional<std::string> KernelCheck::find_wrong() {
  if (auto wrong = find_written_outside()) return wrong;
  if (auto wrong = find_wrong_elements()) return wrong;
  first_ = fingerprint();
  if (!workload_.peer->held() || refuted_) workload_.peer->hold(outputs(), form_error_);
  return std::nullopt;
}

std::optional<std::string> KernelCheck::find_wrong_again() {
  if (auto wrong = find_written_outside()) return wrong;
  return fingerprint() == first_ ? std::nullopt : find_wrong_elements();
}

void KernelCheck::refill() const {
  for (size_t i = 0; i < workload_.outputs.size(); ++i) {
    std::memset(outputs()[i],
                std::to_integer<int>(kRefilled),
                static_cast<size_t>(workload_.outputs[i].bytes()));
  }
}

}  // namespace pruner
