// The cache that the imports of one network at several shapes share. A range of shapes is checked
// by hundreds of imports of the same weights. A cache changes no import, but the weights of all
// imports lie in the memory of the first import.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "graph/folded_constants.h"
#include "graph/networks/weight_draws.h"

namespace pruner {

class ParsedModel;  // graph/onnx/parsed_model.h

/// ONNX files that are read once.
struct ParsedModels {
  std::mutex mutex;
  std::map<std::pair<std::string, bool>, std::shared_ptr<ParsedModel>>
      by_file;  // path, and whether its nodes are numbered
};

/// The cache of one network (NetworkOptions::cache). Several threads may import at once.
struct ImportCache {
  ParsedModels models;
  WeightDraws draws;
  FoldedConstants folded;
};

/// Returns the folded constants of a cache, which they keep; null without a cache.
inline std::shared_ptr<FoldedConstants> folded_of(const std::shared_ptr<ImportCache>& cache) {
  return cache == nullptr ? nullptr : std::shared_ptr<FoldedConstants>(cache, &cache->folded);
}

}  // namespace pruner
