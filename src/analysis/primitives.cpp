#include "analysis/primitives.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "support/check.h"

namespace pruner {
namespace {

using ansor::Step;

constexpr std::string_view kUnroll = "auto_unroll_max_step$";
constexpr std::string_view kPrefetch = "prefetch$";

// Pragmas as numbers: unrolling by its steps, others below 0.
constexpr int32_t kOtherPragma = -1, kStreaming = -2, kDoubleBuffer = -3, kPrefetched = -4;

int32_t narrow(int64_t value) {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::clamp(value, kLeast, kMost));
}

int32_t number_after(std::string_view prefix, std::string_view text) {
  int32_t value = kOtherPragma;
  text.remove_prefix(prefix.size());
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int32_t pragma_number(std::string_view text) {
  if (text.starts_with(kUnroll)) return std::max(kOtherPragma, number_after(kUnroll, text));
  if (text.starts_with(kPrefetch)) return kPrefetched - std::max(0, number_after(kPrefetch, text));
  if (text == "streaming") return kStreaming;
  return text == "double_buffer" ? kDoubleBuffer : kOtherPragma;
}

int32_t scope_number(std::string_view scope) {
  if (scope == "local") return 1;
  if (scope == "shared") return 2;
  return scope == "global" ? 3 : 0;
}

/// Appends a step's arguments in the record's order.
struct ArgumentWriter {
  std::vector<int32_t>& out;

  void add(std::initializer_list<int64_t> values) {
    for (const int64_t value : values) out.push_back(narrow(value));
  }
  template <typename T>
  void add_list(const std::vector<T>& values) {
    for (const T value : values) out.push_back(narrow(value));
  }

  void operator()(const ansor::AnnotationStep& s) {
    add({s.stage, s.iter, static_cast<int>(s.annotation)});
  }
  void operator()(const ansor::FuseStep& s) {
    add({s.stage});
    add_list(s.iters);
  }
  void operator()(const ansor::PragmaStep& s) { add({s.stage, s.iter, pragma_number(s.pragma)}); }
  void operator()(const ansor::ReorderStep& s) {
    add({s.stage});
    add_list(s.order);
  }
  void operator()(const ansor::SplitStep& s) {
    add({s.stage, s.iter, s.extent});
    add_list(s.lengths);
    add({s.inner_to_outer ? 1 : 0});
  }
  void operator()(const ansor::FollowSplitStep& s) { add({s.stage, s.iter, s.source, s.n_split}); }
  void operator()(const ansor::FollowFusedSplitStep& s) {
    add({s.stage, s.iter});
    add_list(s.sources);
    add({s.level, s.factor ? 1 : 0});
  }
  void operator()(const ansor::StorageAlignStep& s) { add({s.stage, s.iter, s.factor, s.offset}); }
  void operator()(const ansor::ComputeAtStep& s) { add({s.stage, s.target_stage, s.target_iter}); }
  void operator()(const ansor::ComputeInlineStep& s) { add({s.stage}); }
  void operator()(const ansor::ComputeRootStep& s) { add({s.stage}); }
  void operator()(const ansor::CacheReadStep& s) {
    add({s.stage, 1});  // whatever its scope is, as TLP has it
    add_list(s.readers);
  }
  void operator()(const ansor::CacheWriteStep& s) { add({s.stage, scope_number(s.scope)}); }
  void operator()(const ansor::RfactorStep& s) { add({s.stage, s.iter, s.factor_iter}); }
};

// The kinds in the order of Step, which is that of the codes below.
constexpr std::string_view kCodes[] = {
    "AN", "FU", "PR", "RE", "SP", "FSP", "FFSP", "SA", "CA", "CI", "CR", "CHR", "CHW", "RF"};
static_assert(std::size(kCodes) == std::variant_size_v<Step>);
constexpr int32_t kAnnotationKind = 0, kPragmaKind = 2;

/// A table of TLP's files, tlp_make_dataset_str_to_idx_llvm.pkl and ..._cuda.pkl: places from 1.
/// The pragmas after TLP's are those of our own space and of records that TLP's data did not have.
struct Table {
  std::array<std::string_view, kPrimitiveKinds> kinds;
  std::span<const int32_t> pragmas;
};
constexpr int32_t kCpuPragmas[] = {
    16, 0, 512, 64, 128, 32, 8, 256, 1024, kStreaming, kPrefetched - 1024, kPrefetched - 4096};
constexpr int32_t kGpuPragmas[] = {0, 16, 64, 1024, 512, 128, 32, 8, 256, kDoubleBuffer};
constexpr Table kCpuTable = {{"CI", "RE", "AN", "RF", "CHW", "SP", "CR", "CA", "FU", "FSP", "PR"},
                             kCpuPragmas};
constexpr Table kGpuTable = {
    {"AN", "CHR", "CHW", "CI", "CA", "FFSP", "SP", "FU", "RE", "PR", "FSP"}, kGpuPragmas};

const Table& table_of(const PrimitiveForm& form) { return form.gpu ? kGpuTable : kCpuTable; }

/// Returns the place of a kind's 1, from 0; -1 if the table does not have the kind.
int place_of_kind(const Table& table, int32_t kind) {
  const auto found = std::ranges::find(table.kinds, kCodes[kind]);
  return found == table.kinds.end() ? -1 : static_cast<int>(found - table.kinds.begin());
}

int32_t place_of_pragma(const Table& table, int32_t pragma) {
  if (pragma == kOtherPragma) return 0;
  const auto found = std::ranges::find(table.pragmas, pragma);
  return found == table.pragmas.end() ? 0 : static_cast<int32_t>(found - table.pragmas.begin()) + 1;
}

}  // namespace

std::vector<int32_t> primitives(std::span<const Step> steps) {
  std::vector<int32_t> out;
  out.reserve(steps.size() * 8);
  for (const Step& step : steps) {
    out.push_back(static_cast<int32_t>(step.index()));
    const size_t count = out.size();
    out.push_back(0);
    std::visit(ArgumentWriter{out}, step);
    out[count] = static_cast<int32_t>(out.size() - count - 1);
  }
  return out;
}

std::vector<Primitive> primitives_of(std::span<const int32_t> sequence) {
  std::vector<Primitive> steps;
  while (sequence.size() >= 2) {
    const auto count = static_cast<size_t>(sequence[1]);
    CHECK(count <= sequence.size() - 2) << "a torn sequence of primitives";
    steps.push_back({sequence[0], sequence.subspan(2, count)});
    sequence = sequence.subspan(2 + count);
  }
  return steps;
}

void write_primitive(const Primitive& step, const PrimitiveForm& form, float* row) {
  std::fill_n(row, form.width, 0.0f);
  const Table& table = table_of(form);
  const int place = place_of_kind(table, step.kind);
  if (place >= 0) row[place] = 1;
  const auto most = static_cast<size_t>(form.width - kPrimitiveKinds);
  const size_t count = std::min(step.arguments.size(), most);
  for (size_t i = 0; i < count; ++i)
    row[kPrimitiveKinds + i] = static_cast<float>(step.arguments[i]);
  if (step.kind == kPragmaKind && count > 2)
    row[kPrimitiveKinds + 2] = static_cast<float>(place_of_pragma(table, step.arguments[2]));
  if (!form.log) return;
  for (float* x = row + kPrimitiveKinds; x != row + form.width; ++x)
    *x = std::log2(1 + std::max(*x, 0.0f));
}

std::vector<float> primitive_matrix(std::span<const int32_t> sequence, const PrimitiveForm& form) {
  const std::vector<Primitive> steps = primitives_of(sequence);
  const auto width = static_cast<size_t>(form.width), most = static_cast<size_t>(form.steps);
  std::vector<float> matrix(most * width);
  for (size_t i = 0; i < std::min(steps.size(), most); ++i)
    write_primitive(steps[i], form, matrix.data() + i * width);
  return matrix;
}

bool has_gpu_primitives(std::span<const int32_t> sequence) {
  return std::ranges::any_of(primitives_of(sequence), [](const Primitive& step) {
    constexpr auto kFirst = static_cast<int32_t>(ansor::Annotation::kVThread);
    constexpr auto kLast = static_cast<int32_t>(ansor::Annotation::kThreadZ);
    return step.kind == kAnnotationKind && step.arguments.size() == 3 &&
           step.arguments[2] >= kFirst && step.arguments[2] <= kLast;
  });
}

int64_t unlisted_primitives(std::span<const int32_t> sequence, const PrimitiveForm& form) {
  const Table& table = table_of(form);
  return std::ranges::count_if(primitives_of(sequence), [&](const Primitive& step) {
    if (place_of_kind(table, step.kind) < 0) return true;
    return step.kind == kPragmaKind && place_of_pragma(table, step.arguments[2]) == 0;
  });
}

}  // namespace pruner
