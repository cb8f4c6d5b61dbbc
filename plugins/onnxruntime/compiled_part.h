// A part of a graph as modules: one for each range of input shapes that it is run with, or one for
// each combination of them.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "onnxruntime/settings.h"
#include "pruner/module.hpp"

namespace pruner::ort {

/// A module, with an instance for each run that is under way. All sessions of a process share the
/// module of one file; the library is unloaded with the last session.
class Instances {
 public:
  /// Returns the one of the file that is open already, or opens the file. An error of a file that
  /// is no module of this machine. A file that is written anew is another one.
  static Result<std::shared_ptr<Instances>> open(const std::string& path, int threads);
  ~Instances();

  const std::string& path() const { return path_; }
  Result<Module> take();
  void give_back(Module module);

 private:
  Instances(std::string path, std::string name, int threads)
      : path_(std::move(path)), name_(std::move(name)), threads_(threads) {}

  const std::string path_, name_;  // the file, and the name that it is loaded by
  const int threads_;
  std::mutex mutex_;
  std::vector<Module> idle_;
};

/// Compiles what it has not seen, and keeps it in the folder of the settings. Safe for several
/// threads.
class CompiledPart {
 public:
  /// A part of a graph, compiled at once: with the shapes that are known, and of the others those
  /// of the settings' dims or a guess, which shows that it can be compiled.
  static Result<std::shared_ptr<CompiledPart>> make(const GraphText& graph,
                                                    const Part& part,
                                                    const Settings& settings);
  /// A module that was made before; of a file, or of its bytes.
  static Result<std::shared_ptr<CompiledPart>> load(const std::string& path,
                                                    const Settings& settings);
  static Result<std::shared_ptr<CompiledPart>> load_bytes(const std::string& bytes,
                                                          const Settings& settings);
  ~CompiledPart();

  bool is_static() const { return is_static_; }
  /// The module of a part whose shapes are all known.
  const std::string& path() const { return modules_.front().second->path(); }
  /// The module for these shapes of `inputs()`; compiles where there is none yet: for the first
  /// shapes alone, for others in a range of shapes, up to eight ranges, or alone where none can be
  /// compiled. The latest eight modules of one shape stay loaded.
  Result<std::shared_ptr<Instances>> at(const std::vector<std::vector<int64_t>>& shapes);
  /// The module of a part whose shapes are all known.
  const std::shared_ptr<Instances>& only() const { return modules_.front().second; }
  const std::vector<NamedType>& inputs() const { return inputs_; }

 private:
  using Shapes = std::vector<std::vector<int64_t>>;
  /// Puts the file of the constants into a folder.
  using PutWeights = std::function<Result<Unit>(const std::string& folder)>;

  /// The least and the greatest extent of each open dimension, by its name.
  using Ranges = std::map<std::string, std::pair<int64_t, int64_t>>;

  /// The extents of the open dimensions; nullopt: one name has two extents.
  std::optional<Dims> extents_of(const Shapes& shapes) const;
  /// The module of a range that these extents are in; compiles where there is none yet. Null: no
  /// range with them can be compiled.
  std::shared_ptr<Instances> ranged(const Dims& extents);
  /// A module for these shapes, whose open dimensions, -1, have the ranges.
  Result<std::shared_ptr<Instances>> compile(const Shapes& shapes,
                                             const PutWeights& put,
                                             const Ranges& ranges = {}) const;
  Result<Unit> write_module(const Shapes& shapes,
                            const PutWeights& put,
                            const Ranges& ranges,
                            const std::string& path) const;
  Result<Unit> keep_weights(const GraphText& graph, const Part& part) const;
  Result<Unit> link_weights(const std::string& folder) const;

  std::vector<NamedType> inputs_;
  bool is_static_ = true;
  std::string model_;  // without its inputs
  std::string program_, folder_;
  Settings settings_;
  std::string temporary_;  // a file that goes with the part
  std::mutex mutex_;
  std::list<std::pair<Shapes, std::shared_ptr<Instances>>> modules_;  // latest first
  std::vector<std::pair<Ranges, std::shared_ptr<Instances>>> of_ranges_;
  std::vector<Ranges> refused_;
};

}  // namespace pruner::ort
