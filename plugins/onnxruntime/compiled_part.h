// A part of a graph as modules: one for each combination of input shapes that it is run with.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>

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
  /// The module for these shapes of `inputs()`; compiles where there is none yet. Of the latest
  /// eight the modules stay loaded.
  Result<std::shared_ptr<Instances>> at(const std::vector<std::vector<int64_t>>& shapes);
  /// The module of a part whose shapes are all known.
  const std::shared_ptr<Instances>& only() const { return modules_.front().second; }
  const std::vector<NamedType>& inputs() const { return inputs_; }

 private:
  using Shapes = std::vector<std::vector<int64_t>>;
  /// Puts the file of the constants into a folder.
  using PutWeights = std::function<Result<Unit>(const std::string& folder)>;

  Result<std::shared_ptr<Instances>> compile(const Shapes& shapes, const PutWeights& put) const;
  Result<Unit> write_module(const Shapes& shapes,
                            const PutWeights& put,
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
};

}  // namespace pruner::ort
