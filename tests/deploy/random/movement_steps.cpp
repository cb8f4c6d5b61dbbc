#include "steps.h"

namespace pruner {

bool slice(GraphMaker& m) {
  const ValueId x = m.pick_any();
  Ints starts, ends, axes, steps;
  for (int64_t d = 0; d < m.rank(x); ++d) {
    if (m.one_in(2)) continue;
    const int64_t n = m.shape_of(x)[static_cast<size_t>(d)];
    int64_t low = m.rng().below(n), high = m.between(low + 1, n),
            step = m.choose<int64_t>({1, 1, 2, 3});
    if (m.one_in(3)) {
      step = -step;
      std::swap(low, high);
      --low, --high;
    }
    starts.push_back(low >= 0 && m.one_in(3) ? low - n : low);
    ends.push_back(high < 0 ? -n - 1 : m.one_in(3) && high < n ? high - n : high);
    axes.push_back(m.written(d, x));
    steps.push_back(step);
  }
  if (starts.empty()) return false;
  return m.one("Slice",
               {x, m.integers(starts), m.integers(ends), m.integers(axes), m.integers(steps)},
               Kind::kMoves);
}

bool pad(GraphMaker& m) {
  const ValueId x = m.pick_any();
  if (!m.number(x)) return false;
  const std::string mode =
      m.choose<const char*>({"constant", "constant", "edge", "reflect", "wrap"});
  Ints before, after;
  for (const int64_t n : m.shape_of(x)) {
    const int64_t most = mode == "reflect" ? std::min<int64_t>(n - 1, 3) : 3;
    const bool cut = n > 3 && m.one_in(8);
    before.push_back(m.one_in(2) ? 0 : cut ? -1 : m.between(0, most));
    after.push_back(m.one_in(2) ? 0 : cut ? -1 : m.between(0, most));
  }
  Ints pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  Ids operands = {x, m.integers(pads)};
  if (mode == "constant" && m.one_in(2)) operands.push_back(m.scalar(2, m.dtype(x)));
  return m.one("Pad", operands, Kind::kMoves, {{"mode", mode}});
}

bool tile(GraphMaker& m) {
  const ValueId x = m.pick_any();
  Ints repeats;
  for (int64_t d = 0; d < m.rank(x); ++d) repeats.push_back(m.one_in(2) ? 1 : m.between(1, 3));
  return m.one("Tile", {x, m.integers(repeats)}, Kind::kMoves);
}

bool expand(GraphMaker& m) {
  const ValueId x = m.pick([&](ValueId id) { return std::ranges::count(m.shape_of(id), 1) > 0; },
                           {m.between(1, 5), 1, m.between(1, 9)});
  Ints to = m.shape_of(x);
  for (int64_t& n : to)
    if (n == 1) n = m.extent();
  if (m.one_in(3)) to.insert(to.begin(), m.between(1, 3));
  return m.one("Expand", {x, m.integers(to)}, Kind::kMoves);
}

bool transpose(GraphMaker& m) {
  const ValueId x = m.pick_any();
  return m.one("Transpose", {x}, Kind::kMoves, {{"perm", m.permutation(m.rank(x))}});
}

bool reshape(GraphMaker& m) {
  const ValueId x = m.pick_any();
  Ints to = m.shape_of(x);
  if (m.one_in(3)) return m.one("Flatten", {x}, Kind::kMoves, {{"axis", m.between(0, m.rank(x))}});
  if (m.one_in(2)) {  // two dimensions become one
    if (to.size() < 2) return false;
    const auto d = static_cast<size_t>(m.rng().below(std::ssize(to) - 1));
    to[d] *= to[d + 1];
    to.erase(to.begin() + static_cast<long>(d) + 1);
  } else {  // one becomes two
    const auto d = static_cast<size_t>(m.rng().below(std::ssize(to)));
    int64_t factor = 1;
    for (int64_t f = 2; f <= to[d]; ++f)
      if (to[d] % f == 0 && m.one_in(2)) factor = f;
    to[d] /= factor;
    to.insert(to.begin() + static_cast<long>(d), factor);
  }
  return m.one("Reshape", {x, m.integers(to)}, Kind::kMoves);
}

bool squeeze(GraphMaker& m) {
  const ValueId x = m.pick_any();
  const Ints& of = m.shape_of(x);
  const auto one_extent = std::ranges::find(of, 1);
  if (one_extent != of.end() && of.size() > 1)
    return m.one("Squeeze", {x, m.integers({one_extent - of.begin()})}, Kind::kMoves);
  if (of.size() > 4) return false;
  return m.one("Unsqueeze", {x, m.integers({m.between(0, m.rank(x))})}, Kind::kMoves);
}

bool trilu(GraphMaker& m) {
  const ValueId x = m.pick_number(2);
  if (m.rank(x) < 2) return false;
  Ids operands = {x};
  if (m.one_in(2))
    operands.push_back(m.scalar(static_cast<double>(m.between(-3, 3)), DType::kInt64));
  return m.one("Trilu", operands, Kind::kMoves, {{"upper", int64_t{m.one_in(2)}}});
}

bool depth_to_space(GraphMaker& m) {
  const ValueId x =
      m.pick([&](ValueId id) { return m.rank(id) == 4 && m.shape_of(id)[1] % 4 == 0; },
             {1, 4 * m.between(1, 4), m.between(1, 7), m.between(1, 9)});
  return m.one(
      "DepthToSpace",
      {x},
      Kind::kMoves,
      {{"blocksize", int64_t{2}}, {"mode", std::string(m.choose<const char*>({"DCR", "CRD"}))}});
}

bool space_to_depth(GraphMaker& m) {
  const auto even = [&](ValueId id) {
    return m.rank(id) == 4 && m.shape_of(id)[2] % 2 == 0 && m.shape_of(id)[3] % 2 == 0;
  };
  const ValueId x = m.pick(even, {1, m.between(1, 5), 2 * m.between(1, 5), 2 * m.between(1, 5)});
  return m.one("SpaceToDepth", {x}, Kind::kMoves, {{"blocksize", int64_t{2}}});
}

bool reverse_sequence(GraphMaker& m) {
  const ValueId x = m.pick_any();
  if (m.rank(x) < 2) return false;
  const int64_t time = m.rng().below(2);
  const int64_t batches = m.shape_of(x)[static_cast<size_t>(1 - time)];
  Tensor lengths(DType::kInt64, {batches});
  for (int64_t i = 0; i < batches; ++i)
    lengths.set_int(i, m.between(0, m.shape_of(x)[static_cast<size_t>(time)]));
  return m.one("ReverseSequence",
               {x, m.constant(lengths)},
               Kind::kMoves,
               {{"time_axis", time}, {"batch_axis", 1 - time}});
}

bool center_crop_pad(GraphMaker& m) {
  const ValueId x = m.pick_any();
  Ints to;
  for (const int64_t n : m.shape_of(x))
    to.push_back(std::max<int64_t>(1, m.one_in(2) ? n : n + m.between(-3, 3)));
  return m.one("CenterCropPad", {x, m.integers(to)}, Kind::kMoves);
}

}  // namespace pruner
