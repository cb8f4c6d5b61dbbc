#include "model/nn/primitive_batch.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace pruner {
namespace {

/// Rows and their places among the distinct ones.
class RowTable {
 public:
  RowTable(const PrimitiveForm& form, std::vector<float>& rows)
      : form_(form), row_(static_cast<size_t>(form.width)), rows_(rows) {
    place();
  }

  int64_t of(const Primitive& step) {
    write_primitive(step, form_, row_.data());
    return place();
  }

 private:
  int64_t place() {
    std::string bytes(reinterpret_cast<const char*>(row_.data()), row_.size() * sizeof(float));
    const auto next = static_cast<int64_t>(places_.size());
    const auto [entry, fresh] = places_.try_emplace(std::move(bytes), next);
    if (fresh) rows_.insert(rows_.end(), row_.begin(), row_.end());
    return entry->second;
  }

  const PrimitiveForm& form_;
  std::vector<float> row_;
  std::vector<float>& rows_;
  std::unordered_map<std::string, int64_t> places_;
};

}  // namespace

PrimitiveBatch make_primitive_batch(std::span<const ProgramFeatures* const> programs,
                                    const PrimitiveForm& form) {
  PrimitiveBatch batch{.programs = static_cast<int64_t>(programs.size())};
  RowTable table(form, batch.rows);
  const auto most = static_cast<size_t>(form.steps);
  std::vector<std::vector<int64_t>> places;
  for (const ProgramFeatures* program : programs) {
    std::vector<Primitive> steps = primitives_of(program->primitives);
    steps.resize(std::min(steps.size(), most));
    std::vector<int64_t>& of = places.emplace_back();
    for (const Primitive& step : steps) of.push_back(table.of(step));
    const bool filled = of.size() < most;
    batch.tokens = std::max(batch.tokens, static_cast<int64_t>(of.size()) + (filled ? 1 : 0));
  }
  batch.row_of.reserve(programs.size() * static_cast<size_t>(batch.tokens));
  for (const std::vector<int64_t>& of : places) {
    const size_t end = batch.row_of.size() + static_cast<size_t>(batch.tokens);
    batch.row_of.insert(batch.row_of.end(), of.begin(), of.end());
    batch.row_of.resize(end);
    batch.weight.resize(batch.weight.size() + of.size(), 1.0f);
    if (of.size() < most) batch.weight.push_back(static_cast<float>(most - of.size()));
    batch.weight.resize(end);
  }
  return batch;
}

}  // namespace pruner
