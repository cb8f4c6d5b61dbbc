// Col2Im: the columns of windows added up to the image that they were taken from.
#include <algorithm>

#include "graph/ops/op.h"

namespace pruner {

using enum Fusion;

namespace {

// The image, the windows' extents and how they move, by spatial dimension; `count` windows.
struct Columns {
  std::vector<int64_t> image, block, stride, dilation, before, after, count;
};

}  // namespace

static Result<Columns> columns_of(const OpCall& call) {
  Columns c;
  TRY_ASSIGN(c.image, call.constant_integers(1, "image_shape"));
  TRY_ASSIGN(c.block, call.constant_integers(2, "block_shape"));
  const size_t dims = c.image.size();
  c.stride = call.integers("strides");
  c.dilation = call.integers("dilations");
  std::vector<int64_t> pads = call.integers("pads");
  if (c.stride.empty()) c.stride.assign(dims, 1);
  if (c.dilation.empty()) c.dilation.assign(dims, 1);
  if (pads.empty()) pads.assign(2 * dims, 0);
  if (dims == 0 || c.block.size() != dims || c.stride.size() != dims || c.dilation.size() != dims ||
      pads.size() != 2 * dims) {
    return Error("image_shape, block_shape, strides, dilations and pads differ in dimensions");
  }
  c.before.assign(pads.begin(), pads.begin() + static_cast<long>(dims));
  c.after.assign(pads.begin() + static_cast<long>(dims), pads.end());
  for (size_t d = 0; d < dims; ++d) {
    if (c.image[d] < 1 || c.block[d] < 1 || c.stride[d] < 1 || c.dilation[d] < 1)
      return Error("an extent, stride or dilation is below 1");
    const int64_t room = c.image[d] + c.before[d] + c.after[d];
    const int64_t free = room - (c.block[d] - 1) * c.dilation[d] - 1;
    if (free < 0) return Error("a block of ", c.block[d], " does not fit an extent of ", room);
    c.count.push_back(free / c.stride[d] + 1);
  }
  const int64_t taps = element_count(c.block), windows = element_count(c.count);
  if (call.rank() != 3 || call.shape(0)[1] % taps != 0 || call.shape(0)[2] != windows) {
    return Error("columns of ",
                 print_shape(call.shape(0)),
                 " for ",
                 windows,
                 " blocks of ",
                 taps,
                 " elements");
  }
  return c;
}

static Types infer_col2im(const OpCall& call) {
  TRY_ASSIGN(const Columns c, columns_of(call));
  if (call.input(0).dtype == DType::kBool) return Error("Col2Im of bool");
  TensorType out = call.type(0);
  out.shape[1] /= element_count(c.block);
  out.shape.pop_back();
  out.shape.insert(out.shape.end(), c.image.begin(), c.image.end());
  return {{out}};
}

// An element of the image is the sum, over the taps of a window, of what the window that has it at
// this tap says, where there is one.
static StageId lower_col2im(const OpCall& call, StageSink& to) {
  const Columns c = *columns_of(call);
  const StageId data = to.input(call, 0);
  const DType dtype = call.input(0).dtype;
  const auto term = [&](std::span<const Expr> axes, std::span<const Expr> taps) {
    Expr row = axes[1], column = 0, is_there = int_imm(1, DType::kBool);
    for (size_t d = 0; d < taps.size(); ++d) {
      const Expr from = axes[d + 2] + c.before[d] - taps[d] * c.dilation[d];
      const Expr window = floor_div(from, c.stride[d]);
      is_there = is_there && window >= 0 && window < c.count[d];
      if (c.stride[d] > 1)
        is_there = is_there && binary(BinaryOp::kEq, floor_mod(from, c.stride[d]), Expr(0));
      row = row * c.block[d] + taps[d];
      column = column * c.count[d] + window;
    }
    return select(is_there,
                  to.dag.at(data, {axes[0], row, column}),
                  combiner_identity(Combiner::kSum, dtype));
  };
  return to.dag.reduce(
      "T_col2im", call.output().shape, c.block, Combiner::kSum, term, "comm_reduce");
}

// clang-format off
static constexpr GraphOp kCol2imOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"Col2Im", kOutEWiseFusable, 3, 3, "dilations:I pads:I strides:I", infer_col2im, lower_col2im}.from(18),
};
// clang-format on

std::span<const GraphOp> col2im_ops() { return kCol2imOps; }

}  // namespace pruner
