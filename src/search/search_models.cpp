#include "search/search.h"

namespace pruner {

Result<Unit> SearchModels::update(std::span<const Sample> samples) const {
  if (verify != nullptr) TRY(verify->update(samples));
  return draft.update(samples);
}

}  // namespace pruner
