// Finds the workload keys and numbers of calls of the tasks of sets of networks. The tasks come
// from task files of TenSet and from built-in networks. A set is held out of a data set, or is all
// of the data set, or weighs a model's scores.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"

namespace pruner {

/// `NetworkInput` is a network with the shape of its input, as in task files: {1, 3, 224, 224},
/// {1, 128}. An empty shape stands for any input.
struct NetworkInput {
  std::string network;
  std::vector<int64_t> shape;
};

/// Returns the networks of a set. The sets are "all_five" (the networks of TenSet's evaluation, and
/// resnet_18), "resnet-50" (its nine inputs), and "batch-size-1" (each TenSet network at batch 1).
/// `name` may also list networks with commas between them. The error lists sets and networks.
Result<std::vector<NetworkInput>> network_set(std::string_view name);

/// `NetworkCall` is a task of a network.
struct NetworkCall {
  std::vector<std::string> keys;  // canonical keys, any of which matches
  double calls = 1;
};
/// `CalledNetwork` is a network with its input, and all of its tasks.
struct CalledNetwork {
  std::string name;  // "resnet_50 1x3x224x224"
  std::vector<NetworkCall> tasks;
};

class NetworkTasks {
 public:
  /// Without networks there are no tasks.
  explicit NetworkTasks(std::vector<NetworkInput> networks = {});

  /// Adds the keys of a file of tasks. Lines that name no network are passed over.
  Result<Unit> add_file(const std::string& path);
  /// Returns whether the record's task is a task of the networks. For our records, these include
  /// the tasks of built-in networks, which are cut for the record's target at the first call.
  /// Several threads may call holds().
  bool holds(const Record& record);
  /// Returns the networks on a target with their tasks. The tasks are those that a file names for
  /// the target's kind, or else those of the built-in network with the same name.
  std::vector<CalledNetwork> on(const std::string& target) const;
  /// Returns the DAGs of the tasks of the built-in networks, cut for the target.
  std::vector<ComputeDag> built_in_dags(const Target& target) const;
  bool empty() const { return networks_.empty(); }
  /// Returns the networks without a task in any file.
  std::vector<std::string> unnamed() const;

 private:
  /// `NamedTask` is a line of a task file.
  struct NamedTask {
    size_t network = 0;
    std::vector<int64_t> shape;
    std::string kind;  // kind of its target; empty: not said
    NetworkCall call;
  };

  void add(const Json& task);
  std::set<std::string> built_in_keys(const Record& record) const;

  std::vector<NetworkInput> networks_;
  std::vector<bool> named_;  // per network: whether a file has a task of the network
  std::vector<NamedTask> tasks_;
  std::set<std::string> keys_;  // canonical
  std::mutex mutex_;
  std::map<std::string, std::set<std::string>> built_in_;  // keys of built-in tasks by target
};

}  // namespace pruner
