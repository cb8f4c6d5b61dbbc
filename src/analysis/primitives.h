// The schedule primitives of a program, what TLP reads: Ansor's steps → numbers → the rows of a
// matrix, one a step (Zhai et al., "TLP", ASPLOS 2023). Nothing is replayed or lowered for them.
// The numbers are kept without a table; which place a kind has in a row, and how long rows and
// sequences are, is the form's that a model was trained with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ansor/steps.h"

namespace pruner {

/// How a model sees a sequence: by TLP's table for CPUs or for GPUs, the first `steps` steps, each
/// cut to `width` numbers.
struct PrimitiveForm {
  bool gpu = false;
  int steps = 25;
  int width = 22;
  bool log = false;  // arguments as log2(1 + x), as they are otherwise
  friend bool operator==(const PrimitiveForm&, const PrimitiveForm&) = default;
};
/// TLP's defaults, arguments as they are.
inline constexpr PrimitiveForm kCpuPrimitives = {false, 25, 22, false},
                               kGpuPrimitives = {true, 40, 20, false};

/// Places of a row's one-hot of the step's kind; a kind that the table has not leaves all 0.
inline constexpr int kPrimitiveKinds = 11;

/// The sequence: for each step its kind, the number of its arguments, and these, as the record has
/// them; names as numbers.
std::vector<int32_t> primitives(std::span<const ansor::Step> steps);

/// One step of a sequence.
struct Primitive {
  int32_t kind = 0;
  std::span<const int32_t> arguments;

  /// Numbers of its whole row.
  int64_t row_length() const { return kPrimitiveKinds + static_cast<int64_t>(arguments.size()); }
};
std::vector<Primitive> primitives_of(std::span<const int32_t> sequence);

/// The row of a step, `form.width` numbers: the one-hot, the arguments, zeros. A pragma's text is
/// its place in the table; 0 for one that is not there.
void write_primitive(const Primitive& step, const PrimitiveForm& form, float* row);

/// steps x width; rows after the last step are 0.
std::vector<float> primitive_matrix(std::span<const int32_t> sequence, const PrimitiveForm& form);

/// Whether loops are bound to blocks or threads: the sequence is of a GPU.
bool has_gpu_primitives(std::span<const int32_t> sequence);

/// Steps of the sequence that the form's table has no kind or pragma for.
int64_t unlisted_primitives(std::span<const int32_t> sequence, const PrimitiveForm& form);

}  // namespace pruner
