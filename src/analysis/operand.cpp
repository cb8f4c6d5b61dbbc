#include "analysis/operand.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "space/read_box.h"
#include "support/ceil_div.h"
#include "target/machine_model.h"

namespace pruner {

namespace {

struct Footprint {
  double bytes, held;  // one entry each of Operand's vectors
};

// Share of a cache's sets that a box is spread over, which grows from its last dimension outwards.
class SetShare {
 public:
  // A line takes its set whatever is read of it.
  explicit SetShare(double line_bytes) : covered_(line_bytes) {}
  // The box has `span` places along a dimension, so many bytes apart.
  void add(double span, int64_t stride_bytes) {
    const int64_t apart = std::gcd(stride_bytes, kSetPeriodBytes);
    const double places = std::min(span, static_cast<double>(kSetPeriodBytes / apart));
    const double further = (places - 1) * static_cast<double>(apart);
    covered_ = static_cast<double>(apart) >= covered_ ? covered_ * places : covered_ + further;
    covered_ = std::min(covered_, static_cast<double>(kSetPeriodBytes));
  }
  double value() const { return covered_ / static_cast<double>(kSetPeriodBytes); }

 private:
  double covered_;  // bytes of the period
};

// Places of the span of an index that it takes while its iterators run over `spans`: all of a
// window's, every second one of a stride that no window fills.
double index_places(const Affine& index, std::span<const int64_t> spans, double span) {
  double places = 1;
  for (const auto& [var, coefficient] : index.terms)
    places *= static_cast<double>(spans[var.value]);
  return std::min(places, span);
}

// The box that iterators of these spans reach, in whole cache lines: a packed operand lies in the
// order in which it is read, so there all of a line is used.
Footprint touched(const SurroundedRead& read, std::span<const int64_t> spans) {
  const auto& [access, producer, attached, packing, iterators, loops, line_bytes, streams] = read;
  const bool packed = packing != nullptr;
  double elements = 1;
  SetShare share(line_bytes);
  int64_t stride_bytes = dtype_bytes(producer.dtype);
  const double element_bytes = static_cast<double>(stride_bytes);
  for (size_t d = access.indices.size(); d-- > 0;) {
    const double extent = static_cast<double>(read.extent(d));
    double span = extent, places = extent;
    const std::optional<SteppedIndex>& stepped = access.stepped[d];
    if (access.indices[d] || stepped) {
      int64_t reach = index_span(stepped ? stepped->rest : *access.indices[d], spans);
      if (stepped) {
        for (const SteppedIndex::Quotient& q : stepped->quotients)
          reach += std::abs(q.coefficient) * ((spans[q.axis] - 1) / q.divisor);
      }
      span = std::min(extent, static_cast<double>(reach));
      places = stepped ? span : index_places(*access.indices[d], spans, span);
    }
    const bool last = !packed && d + 1 == access.indices.size();
    if (last) {
      elements *= std::min(std::max(span, line_bytes / element_bytes), extent);
      share.add(std::max(span * element_bytes / line_bytes, 1.0), static_cast<int64_t>(line_bytes));
    } else {
      elements *= places;
      const double apart = places > 1 ? std::floor((span - 1) / (places - 1)) : 1;
      share.add(places, stride_bytes * static_cast<int64_t>(apart));
    }
    stride_bytes *= read.extent(d);
  }
  const double bytes = elements * element_bytes;
  return {bytes, packed ? bytes : bytes / share.value()};
}

// The outermost loop of which all that it touches fits.
size_t fitting_loop(std::span<const Operand> operands, size_t loops, double capacity) {
  size_t fits = loops;
  for (size_t i = loops + 1; i-- > 0;) {
    double sum = 0;
    for (const Operand& operand : operands) sum += operand.bytes[i];
    if (sum > capacity) break;
    fits = i;
  }
  return fits;
}

// Bytes of an operand that stays only while loop `fits` runs. What one iteration of the first loop
// around it that moves it shares with the next one, lines or windows, is still there then: such a
// loop brings what it touches once. One further out finds nothing of what it left.
double fetched(const Operand& operand, std::span<const SurroundingLoop> loops, size_t fits) {
  double bytes = operand.bytes[fits];
  bool moved = false;
  for (size_t i = fits; i-- > 0;) {
    if (moved) {
      bytes *= static_cast<double>(loops[i].extent);
    } else if (operand.moves[i]) {
      bytes = operand.bytes[i];
      moved = true;
    }
  }
  return bytes;
}

}  // namespace

Operand make_operand(const SurroundedRead& read) {
  const std::span<const SurroundingLoop> loops = read.loops;
  const size_t n = loops.size();
  double whole = static_cast<double>(dtype_bytes(read.producer.dtype));
  for (size_t d = 0; d < read.producer.axes.size(); ++d)
    whole *= static_cast<double>(read.extent(d));
  Operand operand{
      std::vector<double>(n + 1), std::vector<double>(n + 1), 1, std::vector<bool>(n, false)};
  std::vector<int64_t> spans(read.iterators, 1);
  const auto set = [&](size_t i, const Footprint& footprint) {
    operand.bytes[i] = footprint.bytes;
    operand.held[i] = footprint.held;
  };
  set(n, touched(read, spans));
  for (size_t i = n; i-- > 0;) {
    if (loops[i].axis >= 0) {
      spans[loops[i].axis] += (loops[i].extent - 1) * loops[i].step;
      set(i, touched(read, spans));
    } else {
      const auto extent = static_cast<double>(loops[i].extent);
      set(i,
          {std::min(whole, operand.bytes[i + 1] * extent),
           std::min(whole, operand.held[i + 1] * extent)});
    }
    operand.moves[i] = operand.bytes[i] > operand.bytes[i + 1] * 1.001;
  }
  return operand;
}

double fetched_bytes(std::span<const Operand> operands,
                     std::span<const SurroundingLoop> loops,
                     double capacity) {
  const size_t fits = fitting_loop(operands, loops.size(), capacity);
  double total = 0;
  for (const Operand& operand : operands) total += operand.waste * fetched(operand, loops, fits);
  return total;
}

double fetched_bytes_in_sets(std::span<const Operand> operands,
                             std::span<const SurroundingLoop> loops,
                             double capacity,
                             const std::vector<double>& written) {
  const size_t all_fit = fitting_loop(operands, loops.size(), capacity);
  double total = 0;
  for (const Operand& operand : operands) {
    size_t fits = all_fit;
    while (fits < loops.size() && operand.held[fits] + written[fits] > capacity) ++fits;
    total += fetched(operand, loops, fits);
  }
  return total;
}

namespace {

// How far elements lie apart along a dimension: neighbours in a block, and neighbouring blocks.
struct Step {
  int64_t block = 1;
  double inside = 1, outside = 1;
};

std::vector<Step> steps_of(const Stage& producer, const PackSpec* packed) {
  std::vector<Step> steps(producer.axes.size());
  double size = 1;
  if (packed != nullptr) {
    for (auto block = packed->blocks.rbegin(); block != packed->blocks.rend(); ++block) {
      steps[static_cast<size_t>(block->first)] = {block->second, size, 1};
      size *= static_cast<double>(block->second);
    }
  }
  const bool ordered = packed != nullptr && !packed->blocks.empty();
  for (size_t i = steps.size(); i-- > 0;) {
    const size_t d = ordered ? static_cast<size_t>(packed->order[i]) : i;
    const int64_t extent = producer.axes[d].extent, block = steps[d].block;
    steps[d].outside = size;
    size *= static_cast<double>(ceil_div(extent, block));
  }
  return steps;
}

}  // namespace

double run_bytes(const SurroundedRead& read) {
  const auto& [access, producer, attached, packed, iterators, loops, line_bytes, most_streams] =
      read;
  const std::vector<Step> steps = steps_of(producer, packed);
  const auto element = static_cast<double>(dtype_bytes(producer.dtype));
  double run = 1, streams = 1;
  bool go_on = false;  // the streams, with the next bytes of each
  // A tile's steps go around its lanes where they are packed the other way round.
  const bool of_terms = packed != nullptr && packed->blocks.size() > 1;
  std::vector<std::pair<double, double>> in_turns;  // strides and extents of the streams
  const auto extend = [&](double extent) {
    run *= extent;
    for (auto it = in_turns.begin(); it != in_turns.end();) {
      if (it->first != run) {
        ++it;
        continue;
      }
      run *= it->second;
      streams /= it->second;
      in_turns.erase(it);
      it = in_turns.begin();
    }
  };
  for (size_t i = loops.size(); i-- > 0;) {
    const SurroundingLoop& loop = loops[i];
    double stride = 0;
    for (size_t d = 0; d < steps.size() && loop.axis >= 0; ++d) {
      if (!access.indices[d]) continue;
      const int64_t moved = access.indices[d]->coefficient(VarId{loop.axis}) * loop.step;
      const auto [block, inside, outside] = steps[d];
      stride += moved < block ? static_cast<double>(moved) * inside
                              : static_cast<double>(moved) * outside / static_cast<double>(block);
    }
    if (stride == 0 && loop.axis >= 0) continue;  // the same again
    const auto extent = static_cast<double>(loop.extent);
    if (stride == run) {
      go_on = go_on || streams > 1;
      extend(extent);
    } else if (stride > run && run * element <= line_bytes) {
      streams *= extent;
      if (of_terms) in_turns.emplace_back(stride, extent);
    } else {
      break;
    }
  }
  const double of_stream = std::max(run * element, line_bytes);
  if (!go_on) return of_stream;
  return streams <= most_streams ? of_stream * streams : line_bytes;
}

template <typename Extent>
static double stride_of(const Access& access, int axis, const Extent& extent) {
  double stride = 0, size = 1;
  for (size_t d = access.indices.size(); d-- > 0;) {
    if (access.indices[d] || access.stepped[d]) {
      const Affine& index = access.indices[d] ? *access.indices[d] : access.stepped[d]->rest;
      stride += size * static_cast<double>(index.coefficient(VarId{axis}));
    }
    size *= static_cast<double>(extent(d));
  }
  return stride;
}

double element_stride(const Access& access, std::span<const int64_t> extents, int axis) {
  return stride_of(access, axis, [&](size_t d) { return extents[d]; });
}

double element_stride(const Access& access, const Stage& producer, int axis) {
  return stride_of(access, axis, [&](size_t d) { return producer.axes[d].extent; });
}

bool is_held(const LoopNest& nest, const NestStage& operand) {
  return std::ranges::any_of(nest.stages,
                             [&](const NestStage& s) { return s.at == operand.stage; });
}

}  // namespace pruner
