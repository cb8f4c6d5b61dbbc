// Operators that choose elements by indices, or by where they stand.
#include <algorithm>

#include "graph/ops/op.h"
#include "graph/routines/routines.h"
#include "tensor/operator_dags.h"

namespace pruner {

using enum Fusion;

using Axes = std::span<const Expr>;

static std::vector<Expr> copy(Axes axes) { return {axes.begin(), axes.end()}; }

static StageId add_choice(const OpCall& call,
                          StageSink& to,
                          const char* name,
                          const std::function<Expr(Axes)>& body) {
  return to.dag.compute(name, call.output().shape, body, "injective");
}

static Expr immediate(double value, DType dtype) {
  return is_float(dtype) ? float_imm(value, dtype) : int_imm(static_cast<int64_t>(value), dtype);
}

// The indices' last dimension holds places along the data's dimensions behind the batch_dims that
// both have in common.
static Types infer_gather_nd(const OpCall& call) {
  TRY(check_index_type(call, 1, "indices"));
  const std::vector<int64_t>&data = call.shape(0), &indices = call.shape(1);
  const int64_t batch = call.integer("batch_dims", 0), depth = indices.empty() ? 0 : indices.back();
  const bool ranks =
      batch >= 0 && batch < call.rank(1) && depth > 0 && batch + depth <= call.rank();
  if (!ranks || !std::equal(data.begin(), data.begin() + batch, indices.begin())) {
    return Error("indices of ",
                 print_shape(indices),
                 " for data of ",
                 print_shape(data),
                 " with batch_dims ",
                 batch);
  }
  TensorType out{call.input(0).dtype, {indices.begin(), indices.end() - 1}};
  out.shape.insert(out.shape.end(), data.begin() + batch + depth, data.end());
  return {{out}};
}

// The extents of the data's dimensions that the indices hold places along.
static std::vector<int64_t> gathered_extents(const OpCall& call) {
  const auto first = call.shape(0).begin() + call.integer("batch_dims", 0);
  return {first, first + call.shape(1).back()};
}

static StageId lower_gather_nd(const OpCall& call, StageSink& to) {
  const std::vector<int64_t>& data = call.shape(0);
  const auto batch = static_cast<size_t>(call.integer("batch_dims", 0));
  const auto depth = static_cast<size_t>(call.shape(1).back());
  const StageId from = to.input(call, 0), indices = to.input(call, 1);
  mark_indices(call, to);
  return add_choice(call, to, "T_gather_nd", [&](Axes axes) {
    const Axes tuple = axes.first(call.shape(1).size() - 1);
    std::vector<Expr> at = copy(axes.first(batch));
    for (size_t d = 0; d < depth; ++d) {
      std::vector<Expr> place = copy(tuple);
      place.emplace_back(static_cast<int64_t>(d));
      const Expr raw = cast(DType::kInt64, to.dag.at(indices, place));
      at.push_back(select(raw < 0, raw + data[batch + d], raw));
    }
    const Axes rest = axes.subspan(tuple.size());
    at.insert(at.end(), rest.begin(), rest.end());
    return to.dag.at(from, at);
  });
}

static Types infer_one_hot(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", -1, call.rank() + 1));
  const std::optional<double> depth = call.scalar(1);
  if (!depth) return computed_at_run_time(call.graph, call.node.inputs[1], "depth");
  if (!(*depth >= 1 && *depth <= 1e9)) return Error("depth is ", *depth);
  if (call.shape(2) != std::vector<int64_t>{2}) {
    return Error("values are ", print_shape(call.shape(2)), ", expected 2: off and on");
  }
  TensorType out{call.input(2).dtype, call.shape(0)};
  out.shape.insert(out.shape.begin() + axis, static_cast<int64_t>(*depth));
  return {{out}};
}

// An index below 0 counts from the end; one outside of the depth is nowhere on.
static StageId lower_one_hot(const OpCall& call, StageSink& to) {
  const int64_t axis = *call.axis("axis", -1, call.rank() + 1);
  const int64_t depth = call.output().shape[axis];
  const StageId indices = to.input(call, 0), values = to.input(call, 2);
  if (to.dag.stage(indices).is_placeholder()) to.dag.stage(indices).index_bound = depth;
  return add_choice(call, to, "T_one_hot", [&](Axes axes) {
    std::vector<Expr> at = copy(axes);
    at.erase(at.begin() + axis);
    const Expr raw = cast(DType::kInt64, to.dag.at(indices, at));
    const Expr index = select(raw < 0, raw + depth, raw);
    const Expr on = binary(BinaryOp::kEq, index, axes[axis]);
    return select(on, to.dag.at(values, {1}), to.dag.at(values, {0}));
  });
}

// The number of the diagonal, no further out than those of the matrix.
static Expr diagonal_of(const OpCall& call, StageSink& to) {
  if (!call.has(1)) return 0;
  const int64_t rows = call.shape(0)[call.rank() - 2], columns = call.shape(0).back();
  if (const std::optional<Tensor>& k = call.input(1).constant)
    return std::clamp(k->get_int(0), -rows, columns);
  const Expr k = to.dag.at(to.input(call, 1), std::vector<Expr>(call.shape(1).size(), Expr(0)));
  return min(max(cast(DType::kInt64, k), Expr(-rows)), Expr(columns));
}

static Types infer_trilu(const OpCall& call) {
  if (call.has(1)) {
    TRY(check_index_type(call, 1, "k"));
    const int64_t elements = element_count(call.shape(1));
    if (elements != 1) return Error("k has ", elements, " elements, expected 1");
  }
  if (call.rank() < 2) return Error("data of shape ", print_shape(call.shape(0)), " are no matrix");
  return {{call.type(0)}};
}

// Keeps the elements on the k-th diagonal and above it (upper) or below it; all others become 0.
static StageId lower_trilu(const OpCall& call, StageSink& to) {
  const Expr k = diagonal_of(call, to);
  const bool upper = call.integer("upper", 1) != 0;
  const StageId data = to.input(call, 0);
  return add_choice(call, to, "T_trilu", [&](Axes axes) {
    const Expr row = axes[axes.size() - 2], column = axes.back();
    const BinaryOp kept = upper ? BinaryOp::kGe : BinaryOp::kLe;
    return select(binary(kept, column, row + k),
                  to.dag.at(data, copy(axes)),
                  immediate(0, call.input(0).dtype));
  });
}

static Result<int64_t> block_of(const OpCall& call) {
  const int64_t block = call.integer("blocksize", 0);
  if (call.rank() != 4)
    return Error("data of shape ", print_shape(call.shape(0)), ", expected 4 dimensions");
  if (block < 1 || block > (1 << 15)) return Error("blocksize is ", block);
  const std::string mode = call.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return Error("mode is \"", mode, "\", expected DCR or CRD");
  return block;
}

static Types infer_depth_to_space(const OpCall& call) {
  TRY_ASSIGN(const int64_t block, block_of(call));
  const std::vector<int64_t>& in = call.shape(0);
  if (in[1] % (block * block) != 0) {
    return Error("blocks of ", block, "x", block, " do not divide ", in[1], " channels");
  }
  return {{{call.input(0).dtype, {in[0], in[1] / (block * block), in[2] * block, in[3] * block}}}};
}

// The channel among `channels` times block * block: the place in the block stands before (DCR) or
// behind the channel (CRD).
static Expr deep_channel(const OpCall& call, const Expr& place, const Expr& c, int64_t channels) {
  const int64_t block = call.integer("blocksize", 0);
  if (call.text("mode", "DCR") == "DCR") return place * channels + c;
  return c * (block * block) + place;
}

static StageId lower_depth_to_space(const OpCall& call, StageSink& to) {
  const int64_t block = *block_of(call);
  const StageId data = to.input(call, 0);
  return add_choice(call, to, "T_depth_to_space", [&](Axes axes) {
    const Expr place = floor_mod(axes[2], block) * block + floor_mod(axes[3], block);
    const Expr channel = deep_channel(call, place, axes[1], call.output().shape[1]);
    return to.dag.at(data,
                     {axes[0], channel, floor_div(axes[2], block), floor_div(axes[3], block)});
  });
}

static Types infer_space_to_depth(const OpCall& call) {
  TRY_ASSIGN(const int64_t block, block_of(call));
  const std::vector<int64_t>& in = call.shape(0);
  if (in[2] % block != 0 || in[3] % block != 0) {
    return Error("a block of ", block, " does not divide an image of ", in[2], "x", in[3]);
  }
  return {{{call.input(0).dtype, {in[0], in[1] * block * block, in[2] / block, in[3] / block}}}};
}

static StageId lower_space_to_depth(const OpCall& call, StageSink& to) {
  const int64_t block = *block_of(call), channels = call.shape(0)[1], area = block * block;
  const bool depth_first = call.text("mode", "DCR") == "DCR";
  const StageId data = to.input(call, 0);
  return add_choice(call, to, "T_space_to_depth", [&](Axes axes) {
    const Expr place = depth_first ? floor_div(axes[1], channels) : floor_mod(axes[1], area);
    const Expr channel = depth_first ? floor_mod(axes[1], channels) : floor_div(axes[1], area);
    return to.dag.at(data,
                     {axes[0],
                      channel,
                      axes[2] * block + floor_div(place, block),
                      axes[3] * block + floor_mod(place, block)});
  });
}

static Types infer_reverse_sequence(const OpCall& call) {
  TRY(check_index_type(call, 1, "sequence_lens"));
  TRY_ASSIGN(const int64_t time, call.axis("time_axis", 0, call.rank()));
  TRY_ASSIGN(const int64_t batch, call.axis("batch_axis", 1, call.rank()));
  if (time == batch) return Error("time_axis and batch_axis are both ", time);
  const std::vector<int64_t> expected = {call.shape(0)[batch]};
  if (call.shape(1) != expected)
    return Error("sequence_lens is ", print_shape(call.shape(1)), ", expected ", expected[0]);
  return {{call.type(0)}};
}

// A length is at most the number of steps.
static std::vector<int64_t> length_extent(const OpCall& call) {
  return {call.shape(0)[*call.axis("time_axis", 0, call.rank())] + 1};
}

// The first elements of each sequence in reverse, as many as its length says.
static StageId lower_reverse_sequence(const OpCall& call, StageSink& to) {
  const int64_t time = *call.axis("time_axis", 0, call.rank());
  const int64_t batch = *call.axis("batch_axis", 1, call.rank());
  const StageId data = to.input(call, 0), lengths = to.input(call, 1);
  mark_indices(call, to);
  return add_choice(call, to, "T_reverse_sequence", [&](Axes axes) {
    const Expr length = cast(DType::kInt64, to.dag.at(lengths, {axes[batch]}));
    std::vector<Expr> at = copy(axes);
    at[time] = select(axes[time] < length, length - 1 - axes[time], axes[time]);
    return to.dag.at(data, at);
  });
}

static Types infer_center_crop_pad(const OpCall& call) {
  TRY_ASSIGN(const std::vector<int64_t> extents, call.constant_integers(1, "shape"));
  std::vector<int64_t> axes = call.integers("axes");
  if (!call.has_attribute("axes")) {
    for (int64_t d = 0; d < call.rank(); ++d) axes.push_back(d);
  }
  if (axes.size() != extents.size()) {
    return Error("shape has ", extents.size(), " elements, expected ", axes.size());
  }
  TRY(normal_axes(axes, call.rank()));  // each once
  TensorType out = call.type(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (extents[i] < 0) return Error("shape has the extent ", extents[i]);
    out.shape[*normal_axis(axes[i], call.rank())] = extents[i];
  }
  return {{out}};
}

// Half of what is cut or added stands before the data, the rest and an odd element behind.
static StageId lower_center_crop_pad(const OpCall& call, StageSink& to) {
  std::vector<int64_t> before, after;
  for (size_t d = 0; d < call.shape(0).size(); ++d) {
    const int64_t more = call.output().shape[d] - call.shape(0)[d];
    before.push_back(more / 2);
    after.push_back(more - more / 2);
  }
  return add_pad(to.dag, to.input(call, 0), before, after, 0, "T_center_crop_pad");
}

// Below how many the first places of an update lie, so that all of it lies in the cache.
static std::vector<int64_t> first_place_extents(const OpCall& call) {
  const int64_t axis = *call.axis("axis", -2, call.rank());
  const int64_t written = call.shape(1)[axis];
  const bool circular = call.text("mode", "linear") == "circular";
  return {call.shape(0)[axis] - (circular ? 1 : written) + 1};
}

static Types infer_tensor_scatter(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", -2, call.rank()));
  const std::string mode = call.text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return Error("mode is \"", mode, "\", expected linear or circular");
  std::vector<int64_t> expected = call.shape(0);
  if (axis == 0) return Error("axis 0 is that of the batch");
  if (call.rank(1) == call.rank()) expected[axis] = std::min(expected[axis], call.shape(1)[axis]);
  if (call.shape(1) != expected || call.input(1).dtype != call.input(0).dtype) {
    return Error("an update of ",
                 print_shape(call.shape(1)),
                 " does not fit a cache of ",
                 print_shape(call.shape(0)));
  }
  if (!call.has(2)) return {{call.type(0)}};
  TRY(check_index_type(call, 2, "write_indices"));
  if (call.shape(2) != std::vector<int64_t>{expected[0]})
    return Error("write_indices is ", print_shape(call.shape(2)), ", expected ", expected[0]);
  return {{call.type(0)}};
}

// The update stands in the cache from each sequence's index on; a circular one goes on at 0.
static StageId lower_tensor_scatter(const OpCall& call, StageSink& to) {
  const int64_t axis = *call.axis("axis", -2, call.rank());
  const int64_t extent = call.shape(0)[axis], written = call.shape(1)[axis];
  const bool circular = call.text("mode", "linear") == "circular";
  const StageId cache = to.input(call, 0), update = to.input(call, 1);
  const StageId first = call.has(2) ? to.input(call, 2) : StageId{};
  if (first.valid()) mark_indices(call, to);
  return add_choice(call, to, "T_tensor_scatter", [&](Axes axes) {
    Expr place = axes[axis];
    if (first.valid()) place = place - cast(DType::kInt64, to.dag.at(first, {axes[0]}));
    if (circular) place = floor_mod(place, extent);
    std::vector<Expr> at = copy(axes);
    at[axis] = place;
    return select(
        place >= 0 && place < written, to.dag.at(update, at), to.dag.at(cache, copy(axes)));
  });
}

// UpdateState, of ours: TensorScatter of a state, with its indices.
static std::vector<int64_t> update_state_parameters(const OpCall& call) {
  const std::vector<int64_t>& state = call.shape(0);
  const auto axis = static_cast<size_t>(*call.axis("axis", -2, call.rank()));
  const auto inner = element_count(std::span(state).subspan(axis + 1));
  return {static_cast<int64_t>(call.input(2).dtype),
          state[0],
          element_count(std::span(state).first(axis).subspan(1)),
          state[axis],
          call.shape(1)[axis],
          inner * dtype_bytes(call.input(0).dtype),
          call.text("mode", "linear") == "circular" ? 1 : 0};
}

static constexpr Routine kUpdateState = {.symbol = "pruner_update_state",
                                         .function = pruner_update_state,
                                         .tensors = 3,
                                         .parameters = update_state_parameters,
                                         .in_place = true,
                                         .on_gpus = true};

// Lookup, of ours: what a table of int32 has for each of the 256 numbers of a byte, least first.
static Types infer_lookup(const OpCall& call) {
  const DType of = call.input(1).dtype;
  const std::optional<DType> to = parse_dtype(call.text("to", ""));
  if (!to || is_float(*to) || is_only_moved(*to))
    return Error("attribute \"to\" is ", call.text("to", "missing"));
  if (of != DType::kUInt8 && of != DType::kInt8)
    return Error("data are ", dtype_name(of), ", expected bytes");
  if (call.type(0) != TensorType{DType::kInt32, {256}})
    return Error("a table of ", print_shape(call.shape(0)), ", expected 256 of int32");
  return {{{*to, call.shape(1)}}};
}

static StageId lower_lookup(const OpCall& call, StageSink& to) {
  const StageId table = to.input(call, 0), data = to.input(call, 1);
  return to.dag.compute(
      "T_lookup",
      call.shape(1),
      [&](std::span<const Expr> axes) {
        const Expr x = cast(DType::kInt64, to.dag.at(data, {axes.begin(), axes.end()}));
        return cast(call.output().dtype, to.dag.at(table, {x - least_int(call.input(1).dtype)}));
      },
      "injective");
}

// clang-format off
static constexpr GraphOp kIndexingOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"CenterCropPad", kInjective, 2, 2, "axes:I", infer_center_crop_pad, lower_center_crop_pad}.from(18).with(kReadsOnce),
    GraphOp{"DepthToSpace", kInjective, 1, 1, "blocksize:i mode:s", infer_depth_to_space, lower_depth_to_space}.with(kReadsOnce),
    GraphOp{"GatherND", kInjective, 2, 2, "batch_dims:i", infer_gather_nd, lower_gather_nd}.reads_at(1, gathered_extents),
    GraphOp{"Lookup", kInjective, 2, 2, "to:s", infer_lookup, lower_lookup}.with(kReadsOnce | kOwn),
    GraphOp{"OneHot", kInjective, 3, 3, "axis:i", infer_one_hot, lower_one_hot},
    GraphOp{"ReverseSequence", kInjective, 2, 2, "batch_axis:i time_axis:i", infer_reverse_sequence, lower_reverse_sequence}.reads_from_zero_at(1, length_extent),
    GraphOp{"SpaceToDepth", kInjective, 1, 1, "blocksize:i mode:s", infer_space_to_depth, lower_space_to_depth}.with(kReadsOnce),
    GraphOp{"TensorScatter", kInjective, 2, 3, "axis:i mode:s", infer_tensor_scatter, lower_tensor_scatter}.from(24).with(kReadsOnce).reads_from_zero_at(2, first_place_extents),
    GraphOp{"Trilu", kInjective, 1, 2, "upper:i", infer_trilu, lower_trilu}.from(14).with(kReadsOnce),
    GraphOp{"UpdateState", kOpaque, 3, 3, "axis:i mode:s", infer_tensor_scatter, nullptr}.with(kOwn).run_by(kUpdateState).reads_from_zero_at(2, first_place_extents),
};
// clang-format on

std::span<const GraphOp> indexing_ops() { return kIndexingOps; }

}  // namespace pruner
