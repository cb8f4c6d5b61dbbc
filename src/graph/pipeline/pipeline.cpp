#include "graph/pipeline/pipeline.h"

#include "graph/found_values.h"
#include "graph/import_cache.h"

namespace pruner {

std::shared_ptr<FoundExtents> greatest_extents(const Pipeline& pipeline) {
  auto found = std::make_shared<FoundExtents>();
  found->all_known = true;
  found->joined = pipeline.joined;
  found->limits = pipeline.limits;
  found->expanded = pipeline.expanded;
  for (const Symbol& symbol : pipeline.symbols) found->extents[symbol.name] = symbol.max;
  return found;
}

ImportStage import_from(const std::string& file, NetworkOptions options) {
  options.cache = std::make_shared<ImportCache>();
  return [file, options](const std::shared_ptr<const FoundExtents>& found,
                         const std::shared_ptr<const ImportPart>& part) {
    NetworkOptions of = options;
    of.found = found;
    of.part = part;
    return import_onnx(file, of);
  };
}

}  // namespace pruner
