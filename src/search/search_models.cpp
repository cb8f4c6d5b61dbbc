#include "search/search.h"

namespace pruner {

Result<Unit> SearchModels::update(std::span<const Sample> samples) const {
  TRY(draft.update(samples));
  return verify != nullptr ? verify->update(samples) : Unit{};
}

}  // namespace pruner
