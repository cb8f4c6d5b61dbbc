// label: codegen
// Modules of random models over a range of shapes: at every one of them what the interpreter
// computes of the model as it is imported at that shape alone, touching no byte outside of their
// inputs and outputs. A failure prints the shortest model that still fails, and its seed. A model
// that is refused is no failure; how many are, and why, is printed. The environment:
// - PRUNER_CHAINS=N checks N models (20 without it).
// - PRUNER_SEED=S is the seed of the first model (1 without it); the others follow it.
// - PRUNER_REFUSED=1 prints the models that are refused.
// - PRUNER_CHAIN_TARGET=opencl checks modules for that GPU target, each over a few shapes.
// - PRUNER_CHAIN_FILE=FILE gets the shortest model of the last failure, as ONNX.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <thread>

#include "deploy/module.h"
#include "graph/import_cache.h"
#include "graph/onnx/import.h"
#include "graph/partition_range.h"
#include "pruner/module.hpp"
#include "random/child_process.h"
#include "random/guarded_argument.h"
#include "random/random_chain.h"
#include "random/wrong_element.h"
#include "support/file.h"
#include "support/log.h"
#include "support/temporary_folder.h"
#include "tensor/formula.h"

namespace pruner {
namespace {

constexpr double kTolerance = 2e-4;  // relative to the greatest element
constexpr int64_t kShown = 100;      // models between two lines that say how far it is
constexpr int64_t kCounted = 1000;   // models of which the refused ones are a twentieth at most
constexpr std::string_view kRefused = "refused: ", kDetail = "pruner: debug: ";

NetworkOptions options_at(const std::vector<Symbol>& symbols, const SymbolValues& values) {
  NetworkOptions options;
  for (size_t s = 0; s < symbols.size(); ++s) options.dims[symbols[s].name] = values[s];
  return options;
}

/// Compiles the model as `pruner compile --dim` does. Error: why it is refused.
Result<ModuleSummary> compile(const RandomChain& chain,
                              const Target& target,
                              const TemporaryFolder& folder,
                              const std::string& path) {
  const std::string file = folder.path("chain.onnx");
  TRY(write_file(file, chain.model));
  if (std::getenv("PRUNER_REFUSED") != nullptr) init_log(LogLevel::kDetail);
  const auto cache = std::make_shared<ImportCache>();
  const auto at = [&](const SymbolValues& values,
                      const std::shared_ptr<const RangeHints>& hints) -> Result<Partition> {
    NetworkOptions options = options_at(chain.symbols, values);
    options.cache = cache;
    TRY_ASSIGN(Graph graph, import_onnx(file, options));
    graph.hints = hints;
    return partition(graph, target);
  };
  TRY_ASSIGN(
      NetworkRanges network,
      target.is_gpu() ? partition_each(chain.symbols, at) : partition_over(chain.symbols, at));
  Partition greatest = network.ranges.front().largest;
  const Phase phase{
      "main", std::move(greatest), std::make_shared<const NetworkRanges>(std::move(network))};
  return build_module(
      std::span(&phase, 1), target, nullptr, {.jobs = 1, .work_dir = folder_of_files()}, path);
}

/// Returns the target of the modules.
Target chain_target() {
  const char* const text = std::getenv("PRUNER_CHAIN_TARGET");
  return text == nullptr ? host_target(2) : *parse_target(text, 0);
}

/// Returns the model over a few shapes if a kernel of the target is for one shape.
RandomChain few_shapes(RandomChain chain, const Target& target) {
  if (!target.is_gpu()) return chain;
  for (Symbol& symbol : chain.symbols) symbol.max = std::min(symbol.max, symbol.min + 2);
  return chain;
}

/// Returns what is wrong with the module at one shape; empty: nothing.
std::string wrong_at(Module& module, const RandomChain& chain, const SymbolValues& values) {
  const Result<Graph> graph = import_onnx_bytes(chain.model, options_at(chain.symbols, values));
  if (!graph.ok()) return "cannot be imported: " + graph.error().message();
  Rng rng(chain.seed);
  std::vector<Tensor> tensors;
  for (const ValueId id : graph->inputs) {
    Tensor& tensor = tensors.emplace_back(DType::kFloat32, (*graph)[id].shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, 2 * rng.uniform() - 1);
  }
  const Result<std::vector<Tensor>> expected = interpret_graph(*graph, tensors);
  if (!expected.ok()) return "cannot be interpreted: " + expected.error().message();
  const Tensor& y = expected->front();
  std::vector<int64_t> in, out(y.shape().size());
  for (const Tensor& tensor : tensors)
    in.insert(in.end(), tensor.shape().begin(), tensor.shape().end());
  SymbolValues found(values.size());
  if (!module.extents(0, in.data(), found.data())) return module.error();
  if (found != values) return "other extents are found in the inputs";
  if (module.output(0).rank != static_cast<int32_t>(out.size())) return "another rank";
  if (!module.shapes(0, values.data(), in.data(), out.data())) return module.error();
  if (out != y.shape())
    return fmt::format(
        "the output is {}, expected {}", fmt::join(out, "x"), fmt::join(y.shape(), "x"));
  const bool at_end = values[0] % 2 == 0;
  std::vector<GuardedArgument> arguments;
  std::vector<const void*> inputs;
  for (const Tensor& tensor : tensors) {
    arguments.emplace_back(tensor.bytes(), at_end).set(tensor);
    inputs.push_back(arguments.back().data());
  }
  GuardedArgument output(y.bytes(), at_end);
  void* outputs[] = {output.data()};
  if (!module.run_shaped(0, values.data(), inputs.data(), outputs)) return module.error();
  double greatest = 1;
  for (int64_t i = 0; i < y.num_elements(); ++i) greatest = std::max(greatest, std::abs(y.get(i)));
  std::string wrong = wrong_element(y, output.data(), kTolerance * greatest);
  if (wrong.empty() && !output.intact()) wrong = "bytes beside the output were written";
  return wrong;
}

/// Compiles a model, runs it at every shape, and prints what is wrong.
void check(const RandomChain& chain, const Target& target) {
  const TemporaryFolder folder = *TemporaryFolder::make(folder_of_files());
  const std::string path = folder.path("chain.so");
  const Result<ModuleSummary> built = compile(chain, target, folder, path);
  if (!built.ok()) {
    std::cout << kRefused << built.error().message() << "\n";
    return;
  }
  std::string error;
  std::optional<Module> module = Module::load(path, 1, &error);
  if (!module) {
    std::cout << error << "\n";
    return;
  }
  int wrong = 0;
  for (const SymbolValues& values : checked_shapes(box_of(chain.symbols), {}).shapes) {
    std::cout << "at " << print(chain.symbols, values) << ": " << std::flush;
    const std::string what = wrong_at(*module, chain, values);
    std::cout << (what.empty() ? "right" : what) << std::endl;
    wrong += what.empty() ? 0 : 1;
    if (wrong > 3) break;
  }
  std::cout << (wrong > 0 ? "\n" : "all right\n");
}

enum class Outcome { kRight, kRefused, kWrong };
struct Finding {
  Outcome outcome;
  std::string text;
};

/// Returns what the process that checks a model says, without the shapes that are right.
Finding finding(ChildProcess& child) {
  const auto [text, ended] = child.result();
  Finding found{Outcome::kWrong, ""};
  std::string last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); last = line)
    if (!line.ends_with(": right") && !line.starts_with(kDetail)) found.text += line + "\n";
  if (ended && last == "all right" && found.text == "all right\n") found.outcome = Outcome::kRight;
  if (ended && last.starts_with(kRefused)) found.outcome = Outcome::kRefused;
  return found;
}

class RandomRanges : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> start(const RandomChain& chain) const {
    return std::make_unique<ChildProcess>([&] { check(few_shapes(chain, target_), target_); });
  }

  /// The shortest model that still fails.
  RandomChain shortest(RandomChain chain) const {
    for (bool fails = true; fails;) {
      fails = false;
      for (RandomChain& shorter : shorter_chains(chain)) {
        if (finding(*start(shorter)).outcome != Outcome::kWrong) continue;
        chain = std::move(shorter);
        fails = true;
        break;
      }
    }
    return chain;
  }

  void report(const RandomChain& chain, const std::string& what) const {
    const RandomChain small = shortest(chain);
    if (const char* file = std::getenv("PRUNER_CHAIN_FILE")) {
      EXPECT_TRUE(write_file(file, small.model).ok());
    }
    ADD_FAILURE() << "PRUNER_CHAINS=1 PRUNER_SEED=" << chain.seed << ":\n"
                  << small.text << finding(*start(small)).text << "which is all that fails of\n"
                  << chain.text << what;
  }

  const Target target_ = chain_target();
};

TEST_F(RandomRanges, ComputeWhatTheInterpreterDoesAtEveryShape) {
  struct Running {
    RandomChain chain;
    std::unique_ptr<ChildProcess> child;
  };
  const int64_t count = number_of("PRUNER_CHAINS", 20);
  const auto seed = static_cast<uint64_t>(number_of("PRUNER_SEED", 1));
  const bool show = std::getenv("PRUNER_REFUSED") != nullptr;
  const auto processes = std::max(1u, std::thread::hardware_concurrency());
  std::deque<Running> running;
  int64_t started = 0, checked = 0, refused = 0, wrong = 0;
  while (started < count || !running.empty()) {
    if (started < count && running.size() < processes) {
      RandomChain chain = random_chain(seed + static_cast<uint64_t>(started++));
      auto child = start(chain);
      running.push_back({std::move(chain), std::move(child)});
      continue;
    }
    const RandomChain& chain = running.front().chain;
    const Finding found = finding(*running.front().child);
    if (found.outcome == Outcome::kRefused) {
      ++refused;
      std::cout << chain.seed << ": " << found.text << (show ? chain.text : "") << std::flush;
    }
    if (found.outcome == Outcome::kWrong) {
      ++wrong;
      report(chain, found.text);
    }
    running.pop_front();
    if (++checked % kShown == 0) {
      std::cout << checked << " of " << count << " models, " << refused << " refused, " << wrong
                << " wrong" << std::endl;
    }
  }
  if (count >= kCounted) {
    EXPECT_LE(refused * 20, count);
  }
}

}  // namespace
}  // namespace pruner
