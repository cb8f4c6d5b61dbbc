#include "search/ingredient.h"

namespace pruner {

std::string print(const Ingredients& ingredients, std::string_view comma) {
  std::string names;
  for (unsigned i = 0; i < std::size(kIngredients); ++i) {
    if (ingredients.has(Ingredient{i}))
      names.append(names.empty() ? "" : comma).append(kIngredients[i].name);
  }
  return names.empty() ? "none" : names;
}

}  // namespace pruner
