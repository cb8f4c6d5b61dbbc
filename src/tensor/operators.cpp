#include "tensor/operators.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "support/ceil_div.h"
#include "tensor/operator_dags.h"
#include "tensor/printed_operator.h"

namespace pruner {

// The arguments of one operator text, checked against its row.
struct OperatorCall {
  bool channels_first = false;
  std::vector<int64_t> data = {};  // the shape that a window reads; empty: the least that does
  std::map<std::string, std::vector<int64_t>, std::less<>> values;

  int64_t operator[](std::string_view name) const { return values.find(name)->second[0]; }
  const std::vector<int64_t>& list(std::string_view name) const {
    return values.find(name)->second;
  }
  /// Value d of an option with one value for all dims, or one a dim.
  int64_t dim(std::string_view name, size_t d) const { return list(name)[d % list(name).size()]; }
};

using BuildOperator = Result<StageId> (*)(DagBuilder& b, const OperatorCall& call);

struct OperatorRow {
  std::string_view name;
  std::string_view extents;  // positional, in this order; "DIMS..." takes all that come
  std::string_view options;  // name=default
  std::string_view help;
  BuildOperator build;
};

// The spatial dimensions of a window operator, outermost first.
struct WindowDims {
  std::span<const std::string_view> out, kernel;
};

// Three where the operator has a KD, else two.
static WindowDims dims_of(const OperatorCall& call) {
  static constexpr std::string_view kOut[] = {"DO", "HO", "WO"}, kKernel[] = {"KD", "KH", "KW"};
  const size_t rank = call.values.contains("KD") ? 3 : 2;
  return {std::span(kOut).last(rank), std::span(kKernel).last(rank)};
}

// padding=1, padding=H,W or padding=TOP,LEFT,BOTTOM,RIGHT; of volumes one more for the depth, first
static Window window_of(const OperatorCall& call) {
  const size_t rank = dims_of(call).out.size();
  Window window;
  window.channels_first = call.channels_first;
  for (size_t d = 0; d < rank; ++d) {
    window.stride.push_back(call.dim("stride", d));
    window.dilation.push_back(call.values.contains("dilation") ? call.dim("dilation", d) : 1);
    window.pad_before.push_back(call.dim("padding", d));
    window.pad_after.push_back(call.dim("padding", rank + d));
  }
  return window;
}

// The shape of the data that a window operator with these outputs reads.
static Result<std::vector<int64_t>> windowed_shape(const OperatorCall& call, int64_t channels) {
  if (!call.data.empty()) return call.data;
  const WindowDims dims = dims_of(call);
  const Window w = window_of(call);
  std::vector<int64_t> shape = {call["N"]};
  for (size_t d = 0; d < dims.out.size(); ++d) {
    const int64_t out = call[dims.out[d]];
    // The least input that has so many outputs.
    const int64_t in = (out - 1) * w.stride[d] + w.dilation[d] * (call[dims.kernel[d]] - 1) + 1 -
                       w.pad_before[d] - w.pad_after[d];
    if (in < 1) {
      return Error(dims.out[d], " ", out, " with this padding leaves an input of ", in);
    }
    shape.push_back(in);
  }
  shape.insert(call.channels_first ? shape.begin() + 1 : shape.end(), channels);
  return shape;
}

static Result<StageId> windowed_data(DagBuilder& b,
                                     const OperatorCall& call,
                                     int64_t channels,
                                     DType dtype = DType::kFloat32) {
  TRY_ASSIGN(std::vector<int64_t> shape, windowed_shape(call, channels));
  return b.placeholder("data", std::move(shape), dtype);
}

// Types of a contraction for bits=32, 19, 16 or 8. Products of float16 or bfloat16 operands are
// added up in float32. With 19 bits, operands of float32 are rounded to tf32. Products of uint8
// data and int8 weights are added up in int32, and the result is float32.
struct OperandType {
  DType data = DType::kFloat32, weight = data;
  Products products = {};
};

static Result<OperandType> operand_type(const OperatorCall& call) {
  const int64_t exponent = call["exponent"];
  if (exponent != 5 && (exponent != 8 || call["bits"] != 16))
    return Error("exponent is ", exponent, ", expected 5 or, with bits=16, 8");
  const DType half = exponent == 8 ? DType::kBFloat16 : DType::kFloat16;
  switch (call["bits"]) {
    case 32: return OperandType{};
    case 19: return OperandType{DType::kFloat32, DType::kFloat32, {std::nullopt, true}};
    case 16: return OperandType{half, half, DType::kFloat32};
    case 8: return OperandType{DType::kUInt8, DType::kInt8, DType::kInt32};
    default: return Error("bits is ", call["bits"], ", expected 32, 19, 16 or 8");
  }
}

static StageId weight_of(DagBuilder& b, std::vector<int64_t> shape, DType dtype = DType::kFloat32) {
  return b.placeholder("weight", std::move(shape), dtype, true);
}

static Result<Unit> check_groups(const OperatorCall& call) {
  for (std::string_view channels : {"CI", "CO"}) {
    if (call[channels] % call["groups"] != 0) {
      return Error("groups ", call["groups"], " does not divide ", channels, " ", call[channels]);
    }
  }
  return Unit{};
}

static Result<StageId> matmul(DagBuilder& b, const OperatorCall& c) {
  TRY_ASSIGN(const OperandType type, operand_type(c));
  const StageId lhs = b.placeholder("A", {c["M"], c["K"]}, type.data);
  const StageId rhs = b.placeholder("B", {c["K"], c["N"]}, type.weight);
  return add_matmul(b, lhs, rhs, false, false, type.products);
}

static Result<StageId> batch_matmul(DagBuilder& b, const OperatorCall& c) {
  TRY_ASSIGN(const OperandType type, operand_type(c));
  const StageId lhs = b.placeholder("A", {c["B"], c["M"], c["K"]}, type.data);
  const bool by_one = c["weights"] != 0;
  std::vector<int64_t> shape = {c["K"], c["N"]};
  if (!by_one) shape.insert(shape.begin(), c["B"]);
  const StageId rhs = b.placeholder("B", std::move(shape), type.weight, by_one);
  return add_matmul(b, lhs, rhs, false, false, type.products);
}

static Result<StageId> dense(DagBuilder& b, const OperatorCall& c) {
  TRY_ASSIGN(const OperandType type, operand_type(c));
  const StageId data = b.placeholder("data", {c["M"], c["K"]}, type.data);
  return add_dense(b, data, weight_of(b, {c["N"], c["K"]}, type.weight), type.products);
}

static Result<StageId> coded_matmul(DagBuilder& b, const OperatorCall& c) {
  CodedMatrix matrix{.bits = static_cast<int>(c["bits"]), .block = c["block"]};
  if (matrix.bits != 8 && matrix.bits != 4)
    return Error("bits is ", matrix.bits, ", expected 8 or 4");
  if (c["K"] % matrix.block != 0 || matrix.block * matrix.bits % 8 != 0)
    return Error("block ", matrix.block, " divides K ", c["K"], " into no whole blocks of bytes");
  const StageId data = b.placeholder("data", {c["M"], c["K"]});
  matrix.codes = b.placeholder("codes", {c["K"] * matrix.bits / 8, c["N"]}, DType::kInt8, true);
  matrix.scales = b.placeholder("scales", {c["K"] / matrix.block, c["N"]}, DType::kFloat32, true);
  return add_coded_matmul(b, data, matrix);
}

// conv2d and conv3d.
static Result<StageId> conv(DagBuilder& b, const OperatorCall& c) {
  TRY(check_groups(c));
  TRY_ASSIGN(const OperandType type, operand_type(c));
  TRY_ASSIGN(const StageId data, windowed_data(b, c, c["CI"], type.data));
  std::vector<int64_t> weight;
  for (const std::string_view kernel : dims_of(c).kernel) weight.push_back(c[kernel]);
  weight.insert(weight.end(), {c["CI"] / c["groups"], c["CO"]});
  return add_conv(
      b, data, weight_of(b, weight, type.weight), {window_of(c), c["groups"], type.products});
}

static Result<StageId> conv2d_nchw(DagBuilder& b, const OperatorCall& c) {
  TRY_ASSIGN(const OperandType type, operand_type(c));
  TRY_ASSIGN(const StageId data, windowed_data(b, c, c["CI"], type.data));
  const StageId weight = weight_of(b, {c["CO"], c["CI"], c["KH"], c["KW"]}, type.weight);
  return add_conv(b, data, weight, {window_of(c), 1, type.products});
}

static Result<StageId> conv2d_transpose(DagBuilder& b, const OperatorCall& c) {
  TRY(check_groups(c));
  const WindowDims dims = dims_of(c);
  const Window w = window_of(c);
  std::vector<int64_t> shape = {c["N"], 0, 0, c["CI"]}, output_padding;
  for (size_t d = 0; d < 2; ++d) {
    const int64_t out = c[dims.out[d]];
    const int64_t steps =
        out + w.pad_before[d] + w.pad_after[d] - w.dilation[d] * (c[dims.kernel[d]] - 1) - 1;
    if (steps < 0) return Error(dims.out[d], " ", out, " is less than one kernel makes");
    // steps = (in - 1) * stride + output_padding.
    shape[d + 1] = steps / w.stride[d] + 1;
    output_padding.push_back(steps % w.stride[d]);
  }
  const StageId data = b.placeholder("data", shape);
  if (c["phases"] == 0) {
    const StageId weight = weight_of(b, {c["KH"], c["KW"], c["CI"] / c["groups"], c["CO"]});
    return add_conv_transpose(b, data, weight, {w, c["groups"], {}}, output_padding);
  }
  if (w.dilation != std::vector<int64_t>{1, 1}) return Error("phases=1 has no dilation");
  TransposedPhases phases{w.stride, w.pad_before, {0, 0}, {}};
  std::vector<int64_t> by_phase = w.stride;
  for (size_t d = 0; d < 2; ++d) {
    by_phase.push_back(ceil_div(c[dims.kernel[d]], w.stride[d]));
    phases.outputs.push_back(ceil_div(c[dims.out[d]], w.stride[d]));
  }
  by_phase.insert(by_phase.end(), {c["CI"] / c["groups"], c["CO"]});
  return add_conv_transpose_phases(b, data, weight_of(b, by_phase), phases, c["groups"]);
}

static Result<StageId> depthwise_conv2d(DagBuilder& b, const OperatorCall& c) {
  TRY_ASSIGN(const StageId data, windowed_data(b, c, c["C"]));
  std::vector<int64_t> shape = {c["KH"], c["KW"], c["C"], c["multiplier"]};
  if (c.channels_first) shape = {c["C"] * c["multiplier"], 1, c["KH"], c["KW"]};
  const StageId weight = weight_of(b, std::move(shape));
  return add_depthwise_conv(b, data, weight, window_of(c));
}

static Result<StageId> pool2d(DagBuilder& b, const OperatorCall& c, PoolKind kind) {
  for (size_t d = 0; d < 4; ++d) {  // else a window could hold nothing but padding
    const std::string_view kernel = d % 2 == 0 ? "KH" : "KW";
    if (c.dim("padding", d) >= c[kernel]) {
      return Error("padding ", c.dim("padding", d), " is not below ", kernel, " ", c[kernel]);
    }
  }
  TRY_ASSIGN(const StageId data, windowed_data(b, c, c["C"]));
  return add_pool(b, data, {kind, {c["KH"], c["KW"]}, window_of(c)});
}

static Result<StageId> max_pool2d(DagBuilder& b, const OperatorCall& c) {
  return pool2d(b, c, PoolKind::kMax);
}

static Result<StageId> avg_pool2d(DagBuilder& b, const OperatorCall& c) {
  return pool2d(b, c, PoolKind::kAverage);
}

static Result<StageId> sum(DagBuilder& b, const OperatorCall& c) {
  const int64_t axes[] = {1};
  const StageId data = b.placeholder("A", {c["ROWS"], c["COLUMNS"]});
  return add_reduce(b, data, axes, false, ReduceKind::kSum);
}

static int64_t last_axis(const OperatorCall& c) {
  return static_cast<int64_t>(c.list("DIMS").size()) - 1;
}

static Result<StageId> softmax(DagBuilder& b, const OperatorCall& c) {
  return add_softmax(b, b.placeholder("A", c.list("DIMS")), last_axis(c));
}

static Result<StageId> attention(DagBuilder& b, const OperatorCall& c) {
  TRY_ASSIGN(const OperandType type, operand_type(c));
  if (!is_float(type.data))
    return Error("bits is 8; the weights of attention are no whole numbers");
  if (c["H"] % c["sharing"] != 0)
    return Error("sharing ", c["sharing"], " does not divide H ", c["H"]);
  if (c["causal"] != 0 && c["N"] < c["M"])
    return Error("causal, with fewer keys N ", c["N"], " than queries M ", c["M"]);
  const std::vector<int64_t> keys = {c["B"], c["H"] / c["sharing"], c["N"], c["D"]};
  AttentionInputs in;
  in.query = b.placeholder("query", {c["B"], c["H"], c["M"], c["D"]}, type.data);
  in.key = b.placeholder("key", keys, type.data);
  in.value = b.placeholder("value", keys, type.data);
  AttentionParams params{.heads = c["H"], .sharing = c["sharing"], .products = type.products};
  params.scale = 1 / std::sqrt(static_cast<double>(c["D"]));
  params.causal = c["causal"] != 0;
  return add_attention(b, in, params);
}

static Result<StageId> layernorm(DagBuilder& b, const OperatorCall& c) {
  const int64_t columns = c.list("DIMS").back();
  const StageId data = b.placeholder("data", c.list("DIMS"));
  const StageId scale = b.placeholder("gamma", {columns}, DType::kFloat32, true);
  const StageId shift = b.placeholder("beta", {columns}, DType::kFloat32, true);
  return add_layernorm(b, data, last_axis(c), scale, shift, 1e-5);
}

static Result<StageId> rms_norm(DagBuilder& b, const OperatorCall& c) {
  const StageId data = b.placeholder("data", c.list("DIMS"));
  const StageId scale = b.placeholder("gamma", {c.list("DIMS").back()}, DType::kFloat32, true);
  return add_rms_norm(b, data, last_axis(c), scale, 1e-5);
}

static Result<StageId> add(DagBuilder& b, const OperatorCall& c) {
  const StageId lhs = b.placeholder("A", c.list("DIMS"));
  return add_add(b, lhs, b.placeholder("B", c.list("DIMS")));
}

static Result<StageId> activation(DagBuilder& b, const OperatorCall& c, std::string_view name) {
  return add_activation(b, b.placeholder("A", c.list("DIMS")), *find_activation(name));
}

static constexpr OperatorRow kOperators[] = {
    {"matmul",
     "M N K",
     "bits=32 exponent=5",
     "[M,K] x [K,N]; bits=16: of float16 (exponent=8: bfloat16), added up in float32; bits=19: of "
     "float32 rounded to tf32; bits=8: uint8 and int8, in int32, as float32",
     matmul},
    {"dense", "M N K", "bits=32 exponent=5", "[M,K] x constant [N,K] transposed", dense},
    {"batch_matmul",
     "B M N K",
     "weights=0 bits=32 exponent=5",
     "B times [M,K] x [K,N]; weights=1: by one constant [K,N]",
     batch_matmul},
    {"coded_matmul",
     "M N K",
     "bits=8 block=32",
     "[M,K] x constant [K,N] of so many bits with a scale for each block of K",
     coded_matmul},
    {"conv2d",
     "N CO HO WO CI KH KW",
     "stride=1 padding=0 dilation=1 groups=1 bits=32 exponent=5",
     "NHWC, HO and WO are the output's",
     conv},
    {"conv3d",
     "N CO DO HO WO CI KD KH KW",
     "stride=1 padding=0 dilation=1 groups=1 bits=32 exponent=5",
     "NDHWC, DO, HO and WO are the output's",
     conv},
    {"conv2d_nchw",
     "N CO HO WO CI KH KW",
     "stride=1 padding=0 dilation=1 bits=32 exponent=5",
     "NCHW, HO and WO are the output's",
     conv2d_nchw},
    {"conv2d_transpose",
     "N CO HO WO CI KH KW",
     "stride=2 padding=0 dilation=1 groups=1 phases=0",
     "NHWC, HO and WO are the output's; phases=1: without products with zeros",
     conv2d_transpose},
    {"depthwise_conv2d",
     "N C HO WO KH KW",
     "stride=1 padding=0 dilation=1 multiplier=1",
     "NHWC",
     depthwise_conv2d},
    {"depthwise_conv2d_nchw",
     "N C HO WO KH KW",
     "stride=1 padding=0 dilation=1 multiplier=1",
     "NCHW",
     depthwise_conv2d},
    {"max_pool2d", "N C HO WO KH KW", "stride=1 padding=0", "NHWC", max_pool2d},
    {"max_pool2d_nchw", "N C HO WO KH KW", "stride=1 padding=0", "NCHW", max_pool2d},
    {"avg_pool2d",
     "N C HO WO KH KW",
     "stride=1 padding=0",
     "NHWC, without the padding",
     avg_pool2d},
    {"avg_pool2d_nchw",
     "N C HO WO KH KW",
     "stride=1 padding=0",
     "NCHW, without the padding",
     avg_pool2d},
    {"sum", "ROWS COLUMNS", "", "of each row", sum},
    {"softmax", "DIMS...", "", "over the last axis", softmax},
    {"attention",
     "B H M N D",
     "sharing=1 causal=0 bits=32 exponent=5",
     "of M queries to N keys, H heads of D; sharing: heads that read the same keys and values",
     attention},
    {"layernorm", "DIMS...", "", "over the last axis, with scale and shift", layernorm},
    {"rms_norm", "DIMS...", "", "over the last axis, with scale", rms_norm},
    {"add", "DIMS...", "", "of two tensors", add},
    {"relu",
     "DIMS...",
     "",
     "",
     [](DagBuilder& b, const OperatorCall& c) { return activation(b, c, "relu"); }},
    {"gelu",
     "DIMS...",
     "",
     "x/2 (1 + erf(x/sqrt(2)))",
     [](DagBuilder& b, const OperatorCall& c) { return activation(b, c, "gelu"); }},
};

// Operators of models by name, at the sizes of their published configurations.
struct NamedOperator {
  std::string_view name, text, help;
};

// The five of Tang et al., "Reasoning Compiler" (2025), section 4. The configurations are those of
// meta-llama/Meta-Llama-3-8B, deepseek-ai/DeepSeek-R1, black-forest-labs/FLUX.1-dev (of its
// transformer and of its decoder's first convolutions) and meta-llama/Llama-4-Scout-17B-16E.
static constexpr NamedOperator kNamedOperators[] = {
    {"llama_3_8b_attention",
     "attention 1 32 2048 2048 128 sharing=4 causal=1",
     "32 heads of 128, 8 of keys and values, 2048 tokens"},
    {"deepseek_r1_expert",
     "dense 16 2048 7168 +silu +gate",
     "7168 wide, 2048 inside; 16 tokens: of 512 in all each goes to 8 of 256 experts"},
    {"flux_attention",
     "attention 1 24 4608 4608 128",
     "24 heads of 128; 512 tokens of text and 64x64 of an image of 1024x1024"},
    {"flux_convolution",
     "conv2d 1 512 128 128 512 3 3 padding=1",
     "512 channels; an image of 1024x1024 is 128x128 here"},
    {"llama_4_mlp",
     "dense 128 8192 5120 +silu +gate",
     "5120 wide, 8192 inside (the expert of all tokens); 128 tokens"},
};

static std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

static std::string usage(const OperatorRow& row) {
  std::string out = std::string(row.name) + " " + std::string(row.extents);
  return row.options.empty() ? out : out + " [" + std::string(row.options) + "]";
}

template <typename Rows>
static std::string names_of(const Rows& rows) {
  std::string out;
  for (const auto& row : rows) out += (out.empty() ? "" : ", ") + std::string(row.name);
  return out;
}

// "3" or "1,2,1,2".
static Result<std::vector<int64_t>> whole_numbers(const std::string& name,
                                                  std::string_view text,
                                                  int64_t least) {
  constexpr int64_t kMost = 1'000'000'000;
  std::vector<int64_t> values;
  while (values.empty() || !text.empty()) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
    const bool more = end != text.end() && *end == ',';
    if (error != std::errc() || (end != text.end() && !more)) {
      return Error(name, " is \"", text, "\", expected a whole number");
    }
    if (value < least || value > kMost) {
      return Error(name, " is ", value, ", expected ", least, " to ", kMost);
    }
    values.push_back(value);
    text = text.substr(static_cast<size_t>(end - text.begin()) + more);
  }
  return values;
}

// Extents, strides and the like are at least 1, padding and switches at least 0. Windows have one
// value for all of their `rank` dims or one a dim, padding one a side besides.
static Result<std::vector<int64_t>> parse_values(const std::string& name,
                                                 std::string_view text,
                                                 size_t rank) {
  const bool may_be_0 =
      name == "padding" || name == "causal" || name == "weights" || name == "phases";
  TRY_ASSIGN(const std::vector<int64_t> values, whole_numbers(name, text, may_be_0 ? 0 : 1));
  const bool is_window = name == "stride" || name == "padding" || name == "dilation";
  std::vector<size_t> counts = {1};
  if (is_window) counts.push_back(rank);
  if (name == "padding") counts.push_back(2 * rank);
  if (std::ranges::find(counts, values.size()) != counts.end()) return values;
  std::string expected;
  for (const size_t count : counts)
    expected += (expected.empty() ? "" : " or ") + std::to_string(count);
  return Error(name, " has ", values.size(), " values, expected ", expected);
}

// Collects the arguments up to the first epilogue; the names in the row say what is known.
static Result<OperatorCall> parse_arguments(const OperatorRow& row,
                                            std::span<const std::string> arguments) {
  OperatorCall call;
  call.channels_first = row.name.ends_with("_nchw");
  const std::vector<std::string> extents = words(row.extents);
  const bool any_rank = row.extents == "DIMS...";
  const size_t window_rank = std::ranges::find(extents, "KD") == extents.end() ? 2 : 3;
  std::map<std::string, std::string> defaults;
  for (const std::string& option : words(row.options)) {
    const size_t equals = option.find('=');
    defaults[option.substr(0, equals)] = option.substr(equals + 1);
  }
  size_t position = 0;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    if (equals == std::string::npos) {
      if (!any_rank && position >= extents.size())
        return Error("\"", argument, "\" is one too many");
      name = any_rank ? "DIMS" : extents[position++];
    } else if (!defaults.contains(name) &&
               (any_rank || std::ranges::find(extents, name) == extents.end())) {
      return Error("unknown argument \"", name, "\"");
    }
    const size_t start = equals == std::string::npos ? 0 : equals + 1;
    TRY_ASSIGN(const auto values,
               parse_values(name, std::string_view(argument).substr(start), window_rank));
    if (any_rank) {
      call.values["DIMS"].push_back(values[0]);
    } else if (!call.values.emplace(name, values).second) {
      return Error(name, " is given twice");
    }
  }
  for (const auto& [name, value] : defaults) {
    if (call.values.contains(name)) continue;
    TRY_ASSIGN(call.values[name], parse_values(name, value, window_rank));
  }
  for (const std::string& extent : extents) {
    if (!call.values.contains(any_rank ? "DIMS" : extent)) return Error(extent, " is missing");
  }
  return call;
}

// A window that follows an operator: "3", "3,2" or "3,2,1" are its square kernel, its stride and
// its padding.
struct FollowingWindow {
  std::vector<int64_t> kernel;
  Window window;
};
static Result<FollowingWindow> parse_following(std::span<const int64_t> shape,
                                               const std::string& what,
                                               std::string_view text,
                                               std::optional<int64_t> usual_stride,
                                               bool channels_first) {
  if (shape.size() != 4 || channels_first)
    return Error(what, " follows an operator of [n, h, w, c]");
  TRY_ASSIGN(const std::vector<int64_t> v, whole_numbers(what, text, 0));
  const int64_t kernel = v[0], stride = v.size() > 1 ? v[1] : usual_stride.value_or(kernel);
  const int64_t padding = v.size() > 2 ? v[2] : 0;
  if (v.size() > 3 || kernel < 1 || stride < 1 || padding >= kernel ||
      kernel > std::min(shape[1], shape[2]) + 2 * padding)
    return Error(what, " \"", text, "\" does not fit ", shape[1], "x", shape[2]);
  return FollowingWindow{{kernel, kernel},
                         {{stride, stride}, {1, 1}, {padding, padding}, {padding, padding}}};
}

static Result<StageId> pool_epilogue(
    DagBuilder& b, StageId out, PoolKind kind, std::string_view text, bool channels_first) {
  TRY_ASSIGN(const FollowingWindow w,
             parse_following(b.shape(out), "a pooling", text, std::nullopt, channels_first));
  return add_pool(b, out, {kind, w.kernel, w.window});
}

static Result<StageId> depthwise_epilogue(DagBuilder& b,
                                          StageId out,
                                          std::string_view text,
                                          bool channels_first) {
  const std::vector<int64_t> shape = b.shape(out);
  TRY_ASSIGN(const FollowingWindow w,
             parse_following(shape, "a depthwise convolution", text, 1, channels_first));
  const StageId weight = weight_of(b, {w.kernel[0], w.kernel[1], shape[3], 1}, b.stage(out).dtype);
  return add_depthwise_conv(b, out, weight, w.window);
}

// Heads of WIDTH columns, turned by the angles of their places (Su et al. 2021).
static Result<StageId> rotary_epilogue(DagBuilder& b, StageId out, std::string_view text) {
  const std::vector<int64_t> shape = b.shape(out);
  TRY_ASSIGN(const std::vector<int64_t> v, whole_numbers("rotary_embedding", text, 2));
  const int64_t width = v[0], half = width / 2;
  if (v.size() > 1 || width % 2 != 0 || shape.size() < 2 || shape.back() % width != 0)
    return Error("rotary_embedding \"", text, "\" does not part rows of ", shape.back());
  const StageId heads = add_heads(b, out, width);
  const std::vector<int64_t> table = {shape[shape.size() - 2], half};
  const StageId cosine = b.placeholder("cosine", table), sine = b.placeholder("sine", table);
  return b.compute("T_rotary_embedding", b.shape(heads), [&](std::span<const Expr> i) {
    const Expr& column = i.back();
    const Expr row = i[i.size() - 3];
    const auto half_at = [&](const Expr& at, StageId factor, int64_t of) {
      std::vector<Expr> index(i.begin(), i.end());
      index.back() = at + Expr(of);
      return b.at(heads, index) * b.at(factor, {row, at});
    };
    const Expr late = column - Expr(half);
    return select(column < Expr(half),
                  half_at(column, cosine, 0) - half_at(column, sine, half),
                  half_at(late, sine, 0) + half_at(late, cosine, half));
  });
}

static Result<StageId> add_epilogue(DagBuilder& b,
                                    StageId out,
                                    std::string_view name,
                                    bool channels_first) {
  const std::vector<int64_t> shape = b.shape(out);
  if (name == "bias") {
    // TVM's shapes: [1, 1, 1, c] for images and so on for volumes; channels first: [1, c, 1, 1].
    std::vector<int64_t> bias(shape.size() >= 4 ? shape.size() : 1, 1);
    bias.back() = shape.empty() ? 1 : shape.back();
    if (channels_first) bias = {1, shape[1], 1, 1};
    return add_add(b, out, b.placeholder("bias", bias, DType::kFloat32, true));
  }
  if (name == "residual") return add_add(b, out, b.placeholder("residual", shape));
  if (name == "gate") {
    const StageId factors[] = {out, b.placeholder("gate", shape)};
    return add_elementwise(b, "T_multiply", factors, [](auto x) { return x[0] * x[1]; });
  }
  for (const auto& [pool, kind] :
       {std::pair{"max_pool2d=", PoolKind::kMax}, {"avg_pool2d=", PoolKind::kAverage}}) {
    if (name.starts_with(pool)) {
      return pool_epilogue(
          b, out, kind, name.substr(std::string_view(pool).size()), channels_first);
    }
  }
  if (constexpr std::string_view kDepthwise = "depthwise_conv2d="; name.starts_with(kDepthwise))
    return depthwise_epilogue(b, out, name.substr(kDepthwise.size()), channels_first);
  if (constexpr std::string_view kRotary = "rotary_embedding="; name.starts_with(kRotary))
    return rotary_epilogue(b, out, name.substr(kRotary.size()));
  if (name == "f16") return add_cast(b, out, DType::kFloat16);
  if (name == "bf16") return add_cast(b, out, DType::kBFloat16);
  if (const Activation* activation = find_activation(name)) {
    return add_activation(b, out, *activation);
  }
  return Error("unknown epilogue \"+",
               name,
               "\", expected +bias, +residual, +gate, +max_pool2d=K,STRIDE,PADDING, "
               "+avg_pool2d=K,STRIDE,PADDING, +depthwise_conv2d=K,STRIDE,PADDING, "
               "+rotary_embedding=WIDTH, +f16, +bf16 or an activation: ",
               names_of(activations()));
}

static Result<ComputeDag> build(const OperatorRow& row,
                                std::span<const std::string> arguments,
                                const std::vector<int64_t>& data) {
  const auto first = std::ranges::find_if(arguments, [](auto& a) { return a.starts_with('+'); });
  const auto count = static_cast<size_t>(first - arguments.begin());
  TRY_ASSIGN(OperatorCall call, parse_arguments(row, arguments.first(count)));
  call.data = data;
  DagBuilder b;
  TRY_ASSIGN(StageId out, row.build(b, call));
  if (b.stage(out).dtype == DType::kInt32) out = add_cast(b, out, DType::kFloat32);
  for (const std::string& epilogue : arguments.subspan(count)) {
    if (!epilogue.starts_with('+')) return Error("\"", epilogue, "\" comes after an epilogue");
    const std::string_view name = std::string_view(epilogue).substr(1);
    if (b.stage(out).dtype != DType::kFloat32)
      return Error("\"",
                   epilogue,
                   "\" comes after the result was rounded to ",
                   dtype_name(b.stage(out).dtype));
    TRY_ASSIGN(out, add_epilogue(b, out, name, call.channels_first));
  }
  const ComputeDag dag = b.finish({out});
  TRY(check_sizes(dag));
  return dag;
}

// Parses the words of --op: an operator's name and its arguments; `data` is as in OperatorCall.
static Result<ComputeDag> parse_words(const std::vector<std::string>& parts,
                                      const std::vector<int64_t>& data) {
  const auto row = std::ranges::find(kOperators, parts[0], &OperatorRow::name);
  if (row == std::end(kOperators)) {
    return Error("unknown operator \"", parts[0], "\", expected one of: ", names_of(kOperators));
  }
  Result<ComputeDag> dag = build(*row, std::span(parts).subspan(1), data);
  if (!dag.ok()) return Error(row->name, ": ", dag.error().message(), " (", usage(*row), ")");
  return dag;
}

Result<ComputeDag> parse_operator(std::string_view text) {
  std::vector<std::string> parts = words(text);
  if (parts.empty()) return Error("empty operator, expected one of: ", names_of(kOperators));
  const auto named = std::ranges::find(kNamedOperators, parts[0], &NamedOperator::name);
  if (named != std::end(kNamedOperators)) {
    const std::vector<std::string> meant = words(named->text);
    parts.erase(parts.begin());
    parts.insert(parts.begin(), meant.begin(), meant.end());
  }
  if (!is_printed(parts)) return parse_words(parts, {});
  if (const std::optional<PrintedOperator> printed = read_printed(parts)) {
    Result<ComputeDag> dag = parse_words(printed->words, printed->data);
    if (dag.ok()) return dag;
  }
  return Error("\"",
               text,
               "\": only networks have such a task; tune it there: --network NAME or MODEL.onnx, ",
               "with --tasks REGEX");
}

static std::string help_line(std::string line, std::string_view help) {
  line.resize(std::max<size_t>(line.size() + 2, 83), ' ');
  line += help;
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string operator_help() {
  std::string out;
  for (const OperatorRow& row : kOperators) out += help_line(usage(row), row.help);
  out +=
      "then any of: +bias, +residual, +gate (times a tensor), +max_pool2d=K,STRIDE,PADDING, "
      "+avg_pool2d=K,STRIDE,PADDING, +depthwise_conv2d=K,STRIDE,PADDING, +rotary_embedding=WIDTH "
      "(heads of)";
  for (const Activation& row : activations()) out += ", +" + std::string(row.name);
  out += ", at last +f16 or +bf16 (rounded to that)\nby name, of models:\n";
  for (const NamedOperator& row : kNamedOperators)
    out += help_line(std::string(row.name) + ": " + std::string(row.text), row.help);
  return out;
}

}  // namespace pruner
