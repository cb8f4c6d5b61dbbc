// AffineGrid: the points of a regular grid, each moved by the matrix of its image.
#include "graph/functions/body.h"

namespace pruner {

// [points, dimensions + 1]: the place of each point, the last dimension's first, and a 1. From -1
// to 1, at the pixels' centres; the first and the last pixel are at -1 and 1 where corners are
// aligned.
static Tensor grid_points(std::span<const int64_t> extents, bool align_corners, DType dtype) {
  const auto width = static_cast<int64_t>(extents.size()) + 1;
  Tensor points(dtype, {element_count(extents), width});
  for (int64_t p = 0; p < points.shape()[0]; ++p) {
    int64_t rest = p;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      const auto i = static_cast<double>(rest % extents[d]), n = static_cast<double>(extents[d]);
      const double at = align_corners ? 2 * i / (n - 1) - 1 : (2 * i + 1) / n - 1;
      points.set(p * width + width - 2 - static_cast<int64_t>(d), at);
    }
    points.set(p * width + width - 1, 1);
  }
  return points;
}

static void affine_grid(Body& b) {
  const Term theta = b.input(0);
  const Result<std::vector<int64_t>> size = b.call().constant_integers(1, "size");
  if (!size.ok()) return b.fail(size.error());
  const auto dims = static_cast<int64_t>(size->size()) - 2;
  if (dims < 2 || dims > 3 || theta.shape() != std::vector<int64_t>{(*size)[0], dims, dims + 1}) {
    return b.fail(Error("matrices of ",
                        print_shape(theta.shape()),
                        " for a size of ",
                        size->size(),
                        " extents, expected [batch, 2, 3] and 4 or [batch, 3, 4] and 5"));
  }
  std::vector<int64_t> extents(size->begin() + 2, size->end());
  const bool align = b.call().integer("align_corners", 0) != 0;
  for (const int64_t extent : extents) {
    if (extent < (align ? 2 : 1)) return b.fail(Error("size has the extent ", extent));
  }
  const Term points = b.constant(grid_points(extents, align, theta.dtype()));
  const Term moved = b.add("MatMul", {points, b.transpose(theta, {0, 2, 1})});
  std::vector<int64_t> shape = extents;
  shape.insert(shape.begin(), theta.extent(0));
  shape.push_back(dims);
  b.output(0, b.reshape(moved, shape));
}

static constexpr Function kAffineGridFunctions[] = {
    {"AffineGrid", 2, 2, "align_corners:i", affine_grid},
};

std::span<const Function> affine_grid_functions() { return kAffineGridFunctions; }

}  // namespace pruner
