// label: codegen
// Modules of random networks compute what the interpreter computes node by node, on every
// instruction set of x86-64 and with drawn schedules, and touch no byte outside of their inputs and
// outputs. A failure prints the smallest network that still fails, and its seed. The environment:
// - PRUNER_GRAPHS=N checks N networks (300 without it).
// - PRUNER_SEED=S is the seed of the first network (1 without it); the others follow it.
// - PRUNER_TARGETS=one builds each module for one instruction set, another one each time. Without
//   it, or with PRUNER_TARGETS=all, each module is built for all of them.
// - PRUNER_PROGRAMS=1 prints the programs of the kernels of a network that fails, too.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <thread>

#include "deploy/module.h"
#include "lower/lower.h"
#include "pruner/module.hpp"
#include "random/child_process.h"
#include "random/guarded_argument.h"
#include "random/join_graphs.h"
#include "random/random_graph.h"
#include "random/shrink_graph.h"
#include "random/wrong_element.h"
#include "search/search.h"
#include "support/rng.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

constexpr int64_t kBatch = 24;    // networks of one module
constexpr int64_t kShown = 1000;  // networks between two lines that say how far it is

struct Row {
  const char* name;
  Target target;
};

std::vector<Row> rows() {
  std::vector<Row> rows = {{"no AVX", *parse_target("llvm -mcpu=x86-64", 2)}};
  if (__builtin_cpu_supports("avx2"))
    rows.push_back({"AVX2", *parse_target("llvm -mcpu=x86-64-v3", 2)});
  if (__builtin_cpu_supports("avx512vl"))
    rows.push_back({"AVX-512", *parse_target("llvm -mcpu=x86-64-v4", 2)});
  return rows;
}

/// A schedule of each task, which depends on the task and the seed alone: mostly a drawn one, at
/// times the default one, which takes as long to find as five kernels to compile. `log` gets the
/// schedules' texts.
ScheduleChoice drawn_schedules(uint64_t seed, std::string* log) {
  return [seed, log](const Task& task, const Space& space) -> std::optional<Candidate> {
    Rng rng(seed ^ std::hash<std::string>()(task.key));
    std::optional<Candidate> chosen;
    const int64_t kind = rng.below(64);
    if (kind > 0) {
      std::vector<Candidate> drawn = sample_legal(space, kind < 48 ? 1 : 8, rng);
      const std::vector<float> scores = make_draft_model()->predict(task, space, drawn);
      if (!scores.empty()) chosen = drawn[std::ranges::max_element(scores) - scores.begin()];
    }
    if (log != nullptr) {
      const Candidate used = chosen ? *chosen : default_schedule(task, space);
      *log += task.name + ": " + print(space, used) + "\n";
      const Result<Program> program = lower(space, used, "kernel");
      if (std::getenv("PRUNER_PROGRAMS") != nullptr && program.ok())
        *log += print(task.dag) + print(*program);
    }
    return chosen;
  };
}

/// `Wrong` says what is wrong with the network of the number `graph`.
struct Wrong {
  size_t graph;
  std::string what;
};

/// The inputs of a module, in its order.
class Inputs {
 public:
  /// With `poisoned`, floats are no numbers.
  Inputs(std::span<const RandomGraph> graphs, bool poisoned) {
    for (const RandomGraph& graph : graphs)
      for (const ValueId id : graph.graph.inputs)
        add(graph.tensors[static_cast<size_t>(id.value)], graph.seed % 2 == 1, poisoned);
  }
  const void* const* data() const { return pointers_.data(); }

 private:
  void add(const Tensor& tensor, bool at_end, bool poisoned) {
    Tensor used = tensor.clone();
    if (poisoned && is_float(tensor.dtype()))
      for (int64_t i = 0; i < used.num_elements(); ++i) used.set(i, NAN);
    arguments_.emplace_back(used.bytes(), at_end).set(used);
    pointers_.push_back(arguments_.back().data());
  }

  std::vector<GuardedArgument> arguments_;
  std::vector<const void*> pointers_;
};

/// Runs a module on the networks' inputs and compares its outputs. The run before leaves no numbers
/// in the module's memory: whoever reads what was not written finds them.
std::vector<Wrong> run_module(const std::string& path, std::span<const RandomGraph> graphs) {
  std::string error;
  const int threads = static_cast<int>(graphs[0].seed / kBatch % 2) + 1;
  std::optional<Module> module = Module::load(path, threads, &error);
  if (!module) return {{0, error}};
  std::vector<GuardedArgument> outputs;
  std::vector<void*> out;
  for (const RandomGraph& graph : graphs) {
    for (const ValueId id : graph.graph.outputs) {
      const Tensor& tensor = graph.tensors[static_cast<size_t>(id.value)];
      out.push_back(outputs.emplace_back(tensor.bytes(), graph.seed % 2 == 1).data());
    }
  }
  // A module may refuse indices that follow from what is no number.
  (void)module->run(Inputs(graphs, true).data(), out.data());
  for (GuardedArgument& output : outputs) output.clear();
  if (!module->run(Inputs(graphs, false).data(), out.data())) return {{0, module->error()}};
  std::vector<Wrong> wrong;
  size_t o = 0;
  for (size_t g = 0; g < graphs.size(); ++g) {
    std::string what;
    for (const ValueId id : graphs[g].graph.outputs) {
      const auto v = static_cast<size_t>(id.value);
      std::string of = wrong_element(graphs[g].tensors[v], out[o], graphs[g].tolerances[v]);
      if (of.empty() && !outputs[o].intact()) of = "bytes beside the output were written";
      if (!of.empty() && what.empty()) what = graphs[g].graph[id].name + ": " + of;
      ++o;
    }
    if (!what.empty()) wrong.push_back({g, what});
  }
  return wrong;
}

/// Builds the networks as one module and runs it.
std::vector<Wrong> check(std::span<const RandomGraph> graphs,
                         const Target& target,
                         uint64_t schedules,
                         std::string* log = nullptr) {
  Graph all;
  all.name = "random";
  for (const RandomGraph& graph : graphs) append_graph(all, graph.graph);
  const Result<TemporaryFolder> folder = TemporaryFolder::make(folder_of_files());
  if (!folder.ok()) return {{0, folder.error().message()}};
  const Result<Partition> cut = partition(all, target);
  if (!cut.ok()) return {{0, cut.error().message()}};
  const std::string path = folder->path("module.so");
  // A kernel that the build's own check finds wrong would be replaced, not found here.
  const Result<ModuleSummary> built =
      build_module(*cut,
                   target,
                   drawn_schedules(schedules, log),
                   {.jobs = 1, .work_dir = folder_of_files(), .check = false},
                   path);
  if (!built.ok()) return {{0, built.error().message()}};
  return run_module(path, graphs);
}

/// Returns what goes wrong with one network alone, in a process of its own; empty: nothing.
std::string failure(const RandomGraph& graph,
                    const Target& target,
                    uint64_t schedules,
                    bool with_schedules = false) {
  ChildProcess child([&] {
    std::string log;
    if (with_schedules) {
      // The schedules are printed before anything can crash.
      const Result<Partition> cut = partition(graph.graph, target);
      const ScheduleChoice choice = drawn_schedules(schedules, &log);
      for (const Group& group : cut.ok() ? cut->groups : std::vector<Group>()) {
        if (group.routine != nullptr) continue;
        const Task task = make_task(group.dag, target, group.name);
        choice(task, make_space(task));
      }
      std::cout << log << std::flush;
    }
    for (const Wrong& wrong : check(std::span(&graph, 1), target, schedules))
      std::cout << wrong.what << "\n";
  });
  const auto [text, ended] = child.result();
  return text.empty() && !ended ? "it ended without a word" : text;
}

/// The smallest network that still fails, by dropping one thing after another.
RandomGraph shrunk(RandomGraph graph, const Target& target, uint64_t schedules) {
  for (bool fails = true; fails;) {
    fails = false;
    for (RandomGraph& smaller : smaller_graphs(graph)) {
      if (failure(smaller, target, schedules).empty()) continue;
      graph = std::move(smaller);
      fails = true;
      break;
    }
  }
  return graph;
}

/// The operators of a network, by which failures are told apart.
std::string operators_of(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) text += (text.empty() ? "" : " ") + node.op;
  return text;
}

/// Networks of consecutive seeds, and the process that checks them on the targets of these rows.
struct Batch {
  uint64_t first;
  int64_t count;
  std::vector<size_t> rows;
  std::unique_ptr<ChildProcess> child;
};

/// The seed of the schedules of a network on target number `row`: all networks that may share a
/// module share their schedules.
uint64_t schedules_of(uint64_t graph, size_t row) { return graph / kBatch * 8 + row; }

class RandomGraphs : public testing::Test {
 protected:
  /// The rows of the targets that the module of these networks is built for.
  std::vector<size_t> targets_of(uint64_t first) const {
    const char* text = std::getenv("PRUNER_TARGETS");
    if (text != nullptr && std::string_view(text) == "one") return {first / kBatch % rows_.size()};
    std::vector<size_t> all(rows_.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  Batch start(uint64_t first, int64_t count) {
    const std::vector<size_t> targets = targets_of(first);
    auto child = std::make_unique<ChildProcess>([&] {
      std::vector<RandomGraph> graphs;
      for (int64_t i = 0; i < count; ++i)
        graphs.push_back(random_graph(first + static_cast<uint64_t>(i)));
      for (const size_t r : targets)
        for (const Wrong& wrong : check(graphs, rows_[r].target, schedules_of(first, r)))
          std::cout << r << " " << wrong.graph << " " << wrong.what << "\n";
    });
    return {first, count, targets, std::move(child)};
  }

  void finish(Batch& batch) {
    const auto [text, ended] = batch.child->result();
    if (text.empty() && ended) return;
    bool found = false;
    for (int64_t i = 0; i < batch.count; ++i) {
      const RandomGraph graph = random_graph(batch.first + static_cast<uint64_t>(i));
      for (const size_t r : batch.rows) {
        const uint64_t schedules = schedules_of(graph.seed, r);
        const std::string what = failure(graph, rows_[r].target, schedules);
        if (what.empty()) continue;
        found = true;
        ++failures_;
        report(graph, rows_[r], schedules, what);
      }
    }
    if (!found) {
      ++failures_;
      report_together(batch, text);
    }
  }

  /// Networks of which none fails alone: as few of them as still fail together.
  void report_together(const Batch& batch, const std::string& whole) {
    std::vector<RandomGraph> graphs;
    for (int64_t i = 0; i < batch.count; ++i)
      graphs.push_back(random_graph(batch.first + static_cast<uint64_t>(i)));
    const auto failure_of = [&](std::span<const RandomGraph> some) {
      ChildProcess child([&] {
        for (const size_t r : batch.rows)
          for (const Wrong& wrong : check(some, rows_[r].target, schedules_of(batch.first, r)))
            std::cout << rows_[r].name << ": " << wrong.what << "\n";
      });
      const auto [text, ended] = child.result();
      return text.empty() && !ended ? "it ended without a word" : text;
    };
    for (size_t i = graphs.size(); i-- > 0;) {
      std::vector<RandomGraph> fewer = graphs;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (!fewer.empty() && !failure_of(fewer).empty()) graphs = std::move(fewer);
    }
    std::string text;
    for (const RandomGraph& graph : graphs)
      text += "seed " + std::to_string(graph.seed) + ":\n" + print(graph.graph);
    ADD_FAILURE() << "the networks of the seeds " << batch.first << " to "
                  << batch.first + static_cast<uint64_t>(batch.count) - 1
                  << " fail together, none of them alone:\n"
                  << whole << "So do these:\n"
                  << text << failure_of(graphs);
  }

  void report(const RandomGraph& graph,
              const Row& row,
              uint64_t schedules,
              const std::string& whole) {
    const RandomGraph small = shrunk(graph, row.target, schedules);
    const std::string what = failure(small, row.target, schedules, true);
    const std::string kind = operators_of(small.graph);
    if (kinds_[kind]++ > 0) {
      ADD_FAILURE() << "seed " << graph.seed << ", " << row.name << ": as before, " << kind;
      return;
    }
    ADD_FAILURE() << "PRUNER_GRAPHS=1 PRUNER_SEED=" << graph.seed << ", " << row.name << ":\n"
                  << print(small.graph) << what << "which is all that fails of\n"
                  << print(graph.graph) << whole;
  }

  const std::vector<Row> rows_ = rows();
  std::map<std::string, int> kinds_;  // failures by the operators of the smallest network
  int64_t failures_ = 0;
};

TEST_F(RandomGraphs, ComputeWhatTheInterpreterDoes) {
  const int64_t count = number_of("PRUNER_GRAPHS", 300);
  const auto seed = static_cast<uint64_t>(number_of("PRUNER_SEED", 1));
  const auto processes = std::max(1u, std::thread::hardware_concurrency());
  std::deque<Batch> running;
  int64_t checked = 0, shown = 0;
  for (int64_t done = 0; done < count || !running.empty();) {
    if (done < count && running.size() < processes) {
      const uint64_t first = seed + static_cast<uint64_t>(done);
      const auto size = std::min(kBatch - static_cast<int64_t>(first % kBatch), count - done);
      running.push_back(start(first, size));
      done += size;
      continue;
    }
    finish(running.front());
    checked += running.front().count;
    running.pop_front();
    if (checked / kShown == shown) continue;
    shown = checked / kShown;
    std::cout << checked << " of " << count << " networks, " << failures_ << " failures"
              << std::endl;
  }
}

}  // namespace
}  // namespace pruner
