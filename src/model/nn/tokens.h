// Programs → what a network reads of them through one of its inputs: distinct rows, and for each
// program the rows that it has, its tokens. Equal rows of a program may stand as one token that
// weighs as many: attention sees it so (its softmax has the weight as a factor), and a sum does.
// Nothing is lost: no network knows positions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/features.h"
#include "analysis/primitives.h"
#include "model/nn/layer.h"

namespace pruner {

/// What there is to know of an input.
struct InputRow {
  const char* name;  // in messages
  int64_t width;     // numbers of a row; 0: of the primitives' form
  /// Its scale in our files and in the text beside a .pth; null: its numbers are read as they are.
  const char *scale_name, *published_scale;
  /// A program without any counts as one with so many rows of zeros.
  int64_t absent_rows;
  bool repeats;  // rows of one program are often those of others, too
  /// A program's rows, whose numbers are divided by the scale; null: primitives.
  std::span<const float> (*numbers)(const ProgramFeatures& program);
};
inline constexpr size_t kInputs = 3;
inline constexpr Input kScaledInputs[] = {Input::kStatements, Input::kDataflow};
const InputRow& input_row(Input input);

/// One T an input.
template <typename T>
struct PerInput : std::array<T, kInputs> {
  using Base = std::array<T, kInputs>;
  T& operator[](Input input) { return Base::operator[](static_cast<size_t>(input)); }
  const T& operator[](Input input) const { return Base::operator[](static_cast<size_t>(input)); }
};

/// What each column of an input's rows is divided by: its maximum over the training set.
using FeatureScales = PerInput<std::vector<float>>;

struct Tokens {
  int64_t width = 0;
  std::vector<float> rows = {};      // (distinct rows, width)
  std::vector<int64_t> row_of = {};  // (tokens), those of one program after those of another
  std::vector<float> weight = {};    // (tokens): rows of the program that the token stands for
  std::vector<int64_t> begin = {0};  // (programs + 1): of each program's tokens

  int64_t row_count() const { return static_cast<int64_t>(rows.size()) / width; }
};

/// How numbers become those that the network's first layer takes.
struct RowForm {
  std::span<const float> divisor = {};  // of each column
  std::span<const float> mean = {};     // that is taken off before; empty: 0
  PrimitiveForm primitives = {};
};
Tokens make_tokens(Input input,
                   std::span<const ProgramFeatures* const> programs,
                   const RowForm& form);

}  // namespace pruner
