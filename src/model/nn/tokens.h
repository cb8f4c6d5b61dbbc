// Tokens are the form in which a network reads programs through one of its inputs: distinct rows,
// and for each program its rows, the tokens. Equal rows of a program may stand as one token with
// their number as its weight. Sums count the weight, and attention has it as a factor in its
// softmax. Nothing is lost, since no network knows positions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/features.h"
#include "analysis/primitives.h"
#include "model/nn/layer.h"

namespace pruner {

/// `InputRow` describes an input.
struct InputRow {
  const char* name;  // in messages
  int64_t width;     // numbers of a row; 0: width of the primitives' form
  /// Names of the scale in our files and in the text beside a .pth; null: numbers are not scaled.
  const char *scale_name, *published_scale;
  /// A program without rows counts as one with `absent_rows` rows of zeros.
  int64_t absent_rows;
  bool repeats;  // rows of one program are often those of others, too
  /// Returns a program's rows, whose numbers are divided by the scale; null: primitives.
  std::span<const float> (*numbers)(const ProgramFeatures& program);
};
inline constexpr size_t kInputs = 3;
inline constexpr Input kScaledInputs[] = {Input::kStatements, Input::kDataflow};
const InputRow& input_row(Input input);

/// `PerInput` holds one T an input.
template <typename T>
struct PerInput : std::array<T, kInputs> {
  using Base = std::array<T, kInputs>;
  T& operator[](Input input) { return Base::operator[](static_cast<size_t>(input)); }
  const T& operator[](Input input) const { return Base::operator[](static_cast<size_t>(input)); }
};

/// `FeatureScales` holds the divisor of each column of an input: its maximum in the training set.
using FeatureScales = PerInput<std::vector<float>>;

struct Tokens {
  int64_t width = 0;
  std::vector<float> rows = {};      // (distinct rows, width)
  std::vector<int64_t> row_of = {};  // (tokens): row of each token, program after program
  std::vector<float> weight = {};    // (tokens): rows of the program that the token stands for
  std::vector<int64_t> begin = {0};  // (programs + 1): start of each program's tokens

  int64_t row_count() const { return static_cast<int64_t>(rows.size()) / width; }
};

/// `RowForm` says how raw numbers become the input of the network's first layer.
struct RowForm {
  std::span<const float> divisor = {};  // one per column
  std::span<const float> mean = {};     // one per column, subtracted before dividing; empty: 0
  PrimitiveForm primitives = {};
};
Tokens make_tokens(Input input,
                   std::span<const ProgramFeatures* const> programs,
                   const RowForm& form);

}  // namespace pruner
