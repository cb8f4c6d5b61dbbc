// Operators on images that others make.
#include "graph/functions/body.h"

namespace pruner {

namespace {

/// `DeformedReads` computes the places that the kernel of a DeformConv reads. Each point of the
/// kernel has a row and a column, placed at each point of the result and moved by the offsets.
class DeformedReads {
 public:
  explicit DeformedReads(Body& b);
  /// Returns an error if extents and attributes do not fit.
  Result<Unit> check() const;
  /// Returns [n, c, points of the kernel * points of the result], mixed of the four pixels around.
  Term values();
  int64_t kernel_points() const { return kernel_[0] * kernel_[1]; }
  int64_t height() const { return out_[0]; }
  int64_t width() const { return out_[1]; }

 private:
  std::vector<int64_t> pair_of(const char* attribute) const;
  Term placed(size_t dimension);
  Term corner(Term y, Term x, Term share);

  Body& b_;
  Term x_;
  int64_t groups_;  // groups of offsets
  std::vector<int64_t> kernel_, strides_, dilations_, pads_, out_;
};

}  // namespace

std::vector<int64_t> DeformedReads::pair_of(const char* attribute) const {
  std::vector<int64_t> given = b_.call().integers(attribute);
  return given.empty() ? std::vector<int64_t>{1, 1} : given;
}

DeformedReads::DeformedReads(Body& b)
    : b_(b),
      x_(b.input(0)),
      groups_(b.call().integer("offset_group", 1)),
      kernel_{b.input(1).extent(2), b.input(1).extent(3)},
      strides_(pair_of("strides")),
      dilations_(pair_of("dilations")),
      pads_(b.call().integers("pads")) {
  if (pads_.empty()) pads_ = {0, 0, 0, 0};
  out_ = {b.input(2).extent(2), b.input(2).extent(3)};
}

Result<Unit> DeformedReads::check() const {
  const bool sizes = strides_.size() == 2 && dilations_.size() == 2 && pads_.size() == 4;
  if (x_.rank() != 4 || b_.call().rank(1) != 4 || !sizes)
    return Error("data of ", print_shape(x_.shape()), ", expected images and a kernel of theirs");
  if (groups_ < 1 || x_.extent(1) % groups_ != 0)
    return Error(groups_, " offset groups do not part ", x_.extent(1), " channels");
  std::vector<int64_t> expected = {x_.extent(0), 2 * groups_ * kernel_points()};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t padded = x_.extent(static_cast<int64_t>(d) + 2) + pads_[d] + pads_[d + 2];
    const int64_t reach = dilations_[d] * (kernel_[d] - 1) + 1;
    if (strides_[d] < 1) return Error("a stride is ", strides_[d]);
    expected.push_back(padded < reach ? 0 : (padded - reach) / strides_[d] + 1);
  }
  if (b_.call().shape(2) == expected) return Unit{};
  return Error("offset has the shape ",
               print_shape(b_.call().shape(2)),
               ", expected ",
               print_shape(expected));
}

// Row or column of each read: [n, groups, points of the kernel * points of the result].
Term DeformedReads::placed(size_t dimension) {
  const int64_t points = height() * width(), reads = kernel_points() * points;
  Tensor base(x_.dtype(), {1, 1, reads});
  for (int64_t i = 0; i < reads; ++i) {
    const int64_t tap = i / points, point = i % points;
    const int64_t k = dimension == 0 ? tap / kernel_[1] : tap % kernel_[1];
    const int64_t o = dimension == 0 ? point / width() : point % width();
    const int64_t at = o * strides_[dimension] - pads_[dimension] + k * dilations_[dimension];
    base.set(i, static_cast<double>(at));
  }
  const auto d = static_cast<int64_t>(dimension);
  const Term both = b_.reshape(b_.input(2), {x_.extent(0), groups_ * kernel_points(), 2, points});
  const Term moved = b_.reshape(b_.slice(both, 2, d, d + 1), {x_.extent(0), groups_, reads});
  return moved + b_.constant(std::move(base));
}

// The pixel at (y, x), times its share; nothing outside the image.
Term DeformedReads::corner(Term y, Term x, Term share) {
  const DType dtype = x_.dtype();
  const int64_t rows = x_.extent(2), columns = x_.extent(3);
  const auto bounded = [&](Term at, int64_t extent) {
    const auto last = static_cast<double>(extent - 1);
    return b_.add("Clip", {at, b_.scalar(0, dtype), b_.scalar(last, dtype)});
  };
  const Term row = bounded(y, rows), column = bounded(x, columns);
  const Term inside = b_.add("And", {b_.add("Equal", {row, y}), b_.add("Equal", {column, x})});
  const Term index =
      b_.cast(row, DType::kInt64) * static_cast<double>(columns) + b_.cast(column, DType::kInt64);
  const int64_t each = x_.extent(1) / groups_, reads = y.extent(2);
  const Term repeated = b_.add(
      "Expand", {b_.unsqueeze(index, 2), b_.integers({{x_.extent(0), groups_, each, reads}})});
  const Term pixels = b_.reshape(x_, {x_.extent(0), groups_, each, rows * columns});
  const Term found = b_.add("GatherElements", {pixels, repeated}, {{"axis", int64_t{3}}});
  return found * b_.unsqueeze(b_.add("Where", {inside, share, b_.scalar(0, dtype)}), 2);
}

Term DeformedReads::values() {
  const Term y = placed(0), x = placed(1);
  const Term top = b_.add("Floor", {y}), left = b_.add("Floor", {x});
  const Term down = y - top, right = x - left;
  Term sum = corner(top, left, (1.0 - down) * (1.0 - right)) +
             corner(top, left + 1, (1.0 - down) * right) +
             corner(top + 1, left, down * (1.0 - right)) + corner(top + 1, left + 1, down * right);
  const int64_t reads = kernel_points() * height() * width();
  if (b_.has(4)) sum = sum * b_.reshape(b_.input(4), {x_.extent(0), groups_, 1, reads});
  return b_.reshape(sum, {x_.extent(0), x_.extent(1), reads});
}

static void deform_conv(Body& b) {
  DeformedReads reads(b);
  if (const Result<Unit> checked = reads.check(); !checked.ok()) return b.fail(checked.error());
  const Term x = b.input(0), w = b.input(1);
  const int64_t groups = b.call().integer("group", 1), made = w.extent(0);
  if (groups < 1 || made % groups != 0 || w.extent(1) * groups != x.extent(1))
    return b.fail(Error(groups, " groups do not fit weights of ", print_shape(w.shape())));
  const int64_t inner = w.extent(1) * reads.kernel_points();
  const int64_t points = reads.height() * reads.width();
  const Term columns = b.reshape(reads.values(), {x.extent(0), groups, inner, points});
  const Term rows = b.reshape(w, {1, groups, made / groups, inner});
  Term y = b.reshape(b.add("MatMul", {rows, columns}),
                     {x.extent(0), made, reads.height(), reads.width()});
  if (b.has(3)) y = y + b.reshape(b.input(3), {1, made, 1, 1});
  b.output(0, y);
}

// clang-format off
static constexpr Function kImageFunctions[] = {
    {"DeformConv", 3, 5, "dilations:I group:i kernel_shape:I offset_group:i pads:I strides:I", deform_conv},
};
// clang-format on

std::span<const Function> image_functions() { return kImageFunctions; }

}  // namespace pruner
