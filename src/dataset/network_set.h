// Names of sets of networks -> the workload keys of their tasks, and how often each is called:
// those that task files of TenSet name, and those of built-in networks. What is held out of a data
// set, or is all of it, or weighs a model's scores.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"

namespace pruner {

/// A network with its input, as task files name it: {1, 3, 224, 224}, {1, 128}; without numbers:
/// of any.
struct NetworkInput {
  std::string network;
  std::vector<int64_t> shape;
};

/// "all_five" (the networks that TenSet's evaluation uses, resnet_18 besides), "resnet-50" (its
/// nine inputs), "batch-size-1" (every network of TenSet's at batch 1), or names of networks with
/// commas between them. The error lists what there is.
Result<std::vector<NetworkInput>> network_set(std::string_view name);

/// A task of a network.
struct NetworkCall {
  std::vector<std::string> keys;  // canonical, any of them
  double calls = 1;
};
/// A network as it is called: with its input, and all of its tasks.
struct CalledNetwork {
  std::string name;  // "resnet_50 1x3x224x224"
  std::vector<NetworkCall> tasks;
};

class NetworkTasks {
 public:
  /// No networks: no tasks.
  explicit NetworkTasks(std::vector<NetworkInput> networks = {});

  /// Adds the keys of a file of tasks, where it says which network they are of; lines that say none
  /// are passed over.
  Result<Unit> add_file(const std::string& path);
  /// Whether the record's task is one of them. Of ours: of a built-in network as it is cut for the
  /// record's target, made when first asked for. May be asked by several threads.
  bool holds(const Record& record);
  /// The networks on a target, each with its tasks: those that a file names for the target's kind,
  /// or those of the built-in network of that name.
  std::vector<CalledNetwork> on(const std::string& target) const;
  /// DAGs of the tasks of the networks that are built in, as cut for the target.
  std::vector<ComputeDag> built_in_dags(const Target& target) const;
  bool empty() const { return networks_.empty(); }
  /// Networks of which no file has a task.
  std::vector<std::string> unnamed() const;

 private:
  /// A line of a task file.
  struct NamedTask {
    size_t network = 0;
    std::vector<int64_t> shape;
    std::string kind;  // of its target; empty: not said
    NetworkCall call;
  };

  void add(const Json& task);
  std::set<std::string> built_in_keys(const Record& record) const;

  std::vector<NetworkInput> networks_;
  std::vector<bool> named_;  // by network: a file has a task of it
  std::vector<NamedTask> tasks_;
  std::set<std::string> keys_;  // canonical
  std::mutex mutex_;
  std::map<std::string, std::set<std::string>> built_in_;  // by target
};

}  // namespace pruner
