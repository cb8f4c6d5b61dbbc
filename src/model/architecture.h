// The cost models' networks as data: a network is a file of networks/, with the table of its
// layers, and a line of kArchitectures. Scorer, trainer, files and command line read nothing else.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/nn/layer.h"

namespace pruner {

/// `PublishedTraining` holds the options in which published trainings from scratch differ.
struct PublishedTraining {
  int patience = 0;             // epochs without a better loss before it stops; 0: never
  int batch = 512;              // programs
  double validation_share = 0;  // share of the programs that is held out
  bool widen_scales = true;     // false: the scales are those of the first training
};

/// `PublishedClass` is the class of the published scripts whose object a .pkl holds.
struct PublishedClass {
  using Attribute = std::pair<const char*, int64_t>;
  std::string_view name;
  std::span<const Attribute> attributes = {};
};

struct Architecture {
  std::string_view name;     // in files: "pacm"
  std::string_view command;  // on the command line: "pam"; `name` is understood, too
  std::string_view title;    // in sentences: "PaCM"
  std::span<const Layer> layers;
  /// `modules` names the modules that hold the layers: the part of a layer's name before its first
  /// dot. Tensors are drawn and written in the order of the published class, which `modules` has. A
  /// module without a layer passes its input through.
  std::span<const char* const> modules;
  /// `head_module` is the module that a network has once for each platform; empty: none.
  std::string_view head_module = "";
  bool has_momentum = false;  // whether Momentum online Adaptation is published for it
  PublishedTraining training = {};
  std::optional<PublishedClass> pickled_class = {};  // none: there are no such files

  bool reads(Input input) const;
};

extern const Architecture kPacm, kTenSetMlp, kTlp;
inline constexpr const Architecture* kArchitectures[] = {&kPacm, &kTenSetMlp, &kTlp};

/// Returns the architecture with this name in files or on the command line; null if there is none.
const Architecture* find_architecture(std::string_view name);

/// Returns "a, b or c": the non-empty texts of `name` for the architectures, and `last`.
std::string or_list(std::string (*name)(const Architecture& architecture),
                    const std::string& last = "");

/// A branch of a network: what it reads, and its first layer.
struct Branch {
  Input input;
  const Layer& first;
};
/// Returns the branches in the order of the layers.
std::vector<Branch> branches_of(const Architecture& architecture);

}  // namespace pruner
