// The ingredients that this project adds to the published searches. Each ingredient is one change
// with a name. A search without ingredients is the search of its paper, and a search mode may take
// every ingredient that its policy and its model can use.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace pruner {

enum class Ingredient : unsigned {
  kDefaultSchedule,
  kOffers,
  kEachSketch,
  kNeighbours,
  kThompsonSampling,
  kExactEpsilon,
  kFreshDrafts,
  kCalibration,
  kStackedDraft,
  kWeights,
  kIncrementalTraining,
  kRankParents,
  kDistinct,
  kCrossover,
  kLegalMutants,
  kIslands,
};

/// An ingredient's name in the names of modes, and what a search with the ingredient does.
struct IngredientRow {
  std::string_view name, effect;
};

/// All ingredients, in the order of the enumeration.
inline constexpr IngredientRow kIngredients[] = {
    {"default-schedule", "The first trial of a task is the schedule that needs no search."},
    {"offers", "A batch takes schedules that other tasks offer."},
    {"each-sketch", "The first batch of a task has the best candidate of each sketch."},
    {"neighbours", "A quarter of a batch is next to the fastest measured candidates."},
    {"thompson-sampling", "The ranked candidates of a batch are drawn by score and doubt."},
    {"exact-epsilon", "The random share of a batch is exact in the mean, and drawn uniformly."},
    {"fresh-drafts", "Drafts evolve from measured candidates, too, and leave once measured."},
    {"calibration", "The measured times correct the draft."},
    {"stacked-draft", "The draft scores beside the learned model."},
    {"weights", "The learned model starts from the program's own weights (CPUs)."},
    {"incremental-training", "The learned model trains on, in place of a new fit each round."},
    {"rank-parents", "Parents are drawn by rank, not by score."},
    {"distinct", "A population has no duplicates, and the best so far stay parents."},
    {"crossover", "Two parents are crossed over where a parent would be copied."},
    {"legal-mutants", "Every mutant is legal, by rules for all decisions of the space."},
    {"islands", "A population is divided into islands that evolve alone."},
};

/// A set of ingredients.
class Ingredients {
 public:
  constexpr Ingredients() = default;
  constexpr Ingredients(std::initializer_list<Ingredient> list) {
    for (const Ingredient i : list) *this = with(i);
  }
  static constexpr Ingredients all() {
    Ingredients all;
    all.bits_ = (1u << std::size(kIngredients)) - 1;
    return all;
  }

  constexpr bool has(Ingredient i) const { return (bits_ >> static_cast<unsigned>(i) & 1) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr Ingredients with(Ingredient i) const {
    Ingredients more = *this;
    more.bits_ |= 1u << static_cast<unsigned>(i);
    return more;
  }
  constexpr Ingredients without(const Ingredients& others) const {
    Ingredients fewer = *this;
    fewer.bits_ &= ~others.bits_;
    return fewer;
  }
  friend constexpr bool operator==(const Ingredients&, const Ingredients&) = default;

 private:
  unsigned bits_ = 0;
};

constexpr std::string_view name_of(Ingredient i) {
  return kIngredients[static_cast<unsigned>(i)].name;
}

constexpr std::optional<Ingredient> parse_ingredient(std::string_view name) {
  for (unsigned i = 0; i < std::size(kIngredients); ++i) {
    if (kIngredients[i].name == name) return Ingredient{i};
  }
  return std::nullopt;
}

/// Returns the names of the ingredients, with commas between them; "none" if there are none.
std::string print(const Ingredients& ingredients, std::string_view comma = ", ");

}  // namespace pruner
