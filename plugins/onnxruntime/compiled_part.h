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
  /// Returns the open module of the file, or opens the file; an error if the file is no module of
  /// this machine. A file that is written anew is another file.
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
  /// Compiles a part of a graph at once, with the known shapes; unknown extents are those of the
  /// settings' dims or a guess. This shows that the part can be compiled.
  static Result<std::shared_ptr<CompiledPart>> make(const GraphText& graph,
                                                    const Part& part,
                                                    const Settings& settings);
  /// Load a module that was made before, from a file or from its bytes.
  static Result<std::shared_ptr<CompiledPart>> load(const std::string& path,
                                                    const Settings& settings);
  static Result<std::shared_ptr<CompiledPart>> load_bytes(const std::string& bytes,
                                                          const Settings& settings);
  ~CompiledPart();

  bool is_static() const { return is_static_; }
  /// Returns the file of the module of a part whose shapes are all known.
  const std::string& path() const { return modules_.front().second->path(); }
  /// Returns the module for these shapes of `inputs()`, and compiles it if there is none yet. The
  /// first shapes get a module alone; others get one of a range (up to eight), or alone if no range
  /// can be compiled. The latest eight modules of one shape stay loaded.
  Result<std::shared_ptr<Instances>> at(const std::vector<std::vector<int64_t>>& shapes);
  /// The module of a part whose shapes are all known.
  const std::shared_ptr<Instances>& only() const { return modules_.front().second; }
  const std::vector<NamedType>& inputs() const { return inputs_; }

 private:
  using Shapes = std::vector<std::vector<int64_t>>;
  /// Puts the file of the constants into a folder.
  using PutWeights = std::function<Result<Unit>(const std::string& folder)>;

  /// `Ranges` has the least and the greatest extent of each open dimension, by its name.
  using Ranges = std::map<std::string, std::pair<int64_t, int64_t>>;

  /// Returns the extents of the open dimensions; nullopt if one name has two extents.
  std::optional<Dims> extents_of(const Shapes& shapes) const;
  /// Returns the module of a range with these extents; compiles it if there is none yet. Null: no
  /// such range can be compiled.
  std::shared_ptr<Instances> ranged(const Dims& extents);
  /// Compiles a module for these shapes, whose open dimensions, -1, have the ranges.
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
