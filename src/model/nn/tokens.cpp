#include "model/nn/tokens.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

namespace pruner {
namespace {

std::span<const float> statement_rows(const ProgramFeatures& program) { return program.rows; }

std::span<const float> dataflow_steps(const ProgramFeatures& program) {
  if (std::ranges::all_of(program.dataflow, [](float v) { return v == 0; })) return {};
  return program.dataflow;
}

constexpr InputRow kInputRows[kInputs] = {
    {"statement rows", kRowFeatures, "scale.rows", "statement_scale", 0, false, statement_rows},
    {"data flow",
     kDataflowFeatures,
     "scale.dataflow",
     "access_scale",
     kDataflowSteps,
     false,
     dataflow_steps},
    {"primitives", 0, nullptr, nullptr, 0, true, nullptr}};

/// The first row is 0, what fills the published matrix up.
Tokens primitive_tokens(std::span<const ProgramFeatures* const> programs,
                        const PrimitiveForm& form) {
  Tokens tokens{.width = form.width};
  std::vector<float> row(static_cast<size_t>(form.width));
  std::unordered_map<std::string, int64_t> places;
  const auto place = [&] {
    std::string bytes(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
    const auto [entry, fresh] = places.try_emplace(std::move(bytes), std::ssize(places));
    if (fresh) tokens.rows.insert(tokens.rows.end(), row.begin(), row.end());
    return entry->second;
  };
  place();
  const auto most = static_cast<size_t>(form.steps);
  for (const ProgramFeatures* program : programs) {
    const std::vector<Primitive> steps = primitives_of(program->primitives);
    const size_t count = std::min(steps.size(), most);
    for (size_t i = 0; i < count; ++i) {
      write_primitive(steps[i], form, row.data());
      tokens.row_of.push_back(place());
    }
    tokens.weight.resize(tokens.row_of.size(), 1.0f);
    if (count < most) {
      tokens.row_of.push_back(0);
      tokens.weight.push_back(static_cast<float>(most - count));
    }
    tokens.begin.push_back(std::ssize(tokens.row_of));
  }
  return tokens;
}

/// Appends what `form` makes of the numbers.
void add_rows(std::span<const float> values, const RowForm& form, std::vector<float>& rows) {
  const size_t width = form.divisor.size(), first = rows.size();
  rows.insert(rows.end(), values.begin(), values.end());
  for (size_t i = 0; i < values.size(); i += width) {
    float* row = rows.data() + first + i;
    for (size_t j = 0; j < form.mean.size(); ++j) row[j] -= form.mean[j];
    for (size_t j = 0; j < width; ++j) row[j] /= form.divisor[j];
  }
}

}  // namespace

const InputRow& input_row(Input input) { return kInputRows[static_cast<size_t>(input)]; }

Tokens make_tokens(Input input,
                   std::span<const ProgramFeatures* const> programs,
                   const RowForm& form) {
  const InputRow& row = input_row(input);
  if (row.numbers == nullptr) return primitive_tokens(programs, form.primitives);
  Tokens tokens{.width = row.width};
  std::optional<int64_t> absent;  // the row of zeros
  for (const ProgramFeatures* program : programs) {
    const std::span<const float> numbers = row.numbers(*program);
    const int64_t first = tokens.row_count();
    if (numbers.empty() && row.absent_rows > 0) {
      if (!absent) add_rows(std::vector<float>(form.divisor.size()), form, tokens.rows);
      absent = absent.value_or(first);
      tokens.row_of.push_back(*absent);
      tokens.weight.push_back(static_cast<float>(row.absent_rows));
    } else {
      add_rows(numbers, form, tokens.rows);
      for (int64_t r = first; r < tokens.row_count(); ++r) tokens.row_of.push_back(r);
      tokens.weight.resize(tokens.row_of.size(), 1.0f);
    }
    tokens.begin.push_back(std::ssize(tokens.row_of));
  }
  return tokens;
}

}  // namespace pruner
