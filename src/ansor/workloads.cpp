#include "ansor/workloads.h"

#include <algorithm>
#include <span>

#include "tensor/dag_builder.h"
#include "tensor/operator_dags.h"

namespace pruner::ansor {
namespace {

constexpr int64_t kMaxExtent = 1'000'000'000;  // products of two fit in int64
constexpr double kMaxElements = 1e12;          // most elements of one tensor

// Reads the arguments of a key in order; the first that does not fit is kept.
class Arguments {
 public:
  explicit Arguments(const Json& key) : key_(key) {}

  int64_t extent() {
    const int64_t value = number();
    if (value < 1 || value > kMaxExtent) refuse("is no extent");
    return std::clamp<int64_t>(value, 1, kMaxExtent);
  }
  int64_t number() {
    const Json& json = next();
    if (!json.is_number_integer()) refuse("is no whole number");
    return json.is_number_integer() ? json.get<int64_t>() : 1;
  }
  std::string text(const char* otherwise) {
    if (at_ == key_.size()) return otherwise;
    const Json& json = next();
    if (!json.is_string()) refuse("is no text");
    return json.is_string() ? json.get<std::string>() : otherwise;
  }
  bool flag() { return next() == Json(true); }
  bool more() const { return at_ < key_.size(); }
  bool next_is_text() const { return key_[at_].is_string(); }
  /// One number, or a list of them.
  std::vector<int64_t> numbers() { return numbers_of(next()); }
  std::vector<int64_t> shape() {
    std::vector<int64_t> extents = numbers();
    for (int64_t& extent : extents) {
      if (extent < 1 || extent > kMaxExtent) refuse("is no shape");
      extent = std::clamp<int64_t>(extent, 1, kMaxExtent);
    }
    return extents;
  }
  /// Two strides from one number or a list of two.
  std::vector<int64_t> pair() {
    std::vector<int64_t> values = numbers();
    if (values.size() == 1) values.push_back(values[0]);
    if (values.size() != 2) refuse("is neither a number nor two");
    values.resize(2, 1);
    for (int64_t& value : values) {
      if (value < 1 || value > kMaxExtent) refuse("is no stride");
      value = std::max<int64_t>(value, 1);
    }
    return values;
  }
  /// Top, left, bottom and right padding: "SAME", "VALID", one number, two or four.
  std::vector<int64_t> padding(int64_t height, int64_t width) {
    const Json& json = next();
    if (json == "VALID") return {0, 0, 0, 0};
    if (json == "SAME") {
      return {height / 2, width / 2, (height - 1) / 2, (width - 1) / 2};  // TVM's get_pad_tuple
    }
    std::vector<int64_t> pads = numbers_of(json);
    if (pads.size() == 1) pads.resize(4, pads[0]);
    if (pads.size() == 2) pads = {pads[0], pads[1], pads[0], pads[1]};
    if (pads.size() != 4) refuse("is no padding");
    pads.resize(4, 0);
    for (int64_t& pad : pads) {
      if (pad < 0 || pad > kMaxExtent) refuse("is no padding");
      pad = std::clamp<int64_t>(pad, 0, kMaxExtent);
    }
    return pads;
  }
  void refuse(const char* what) {
    if (wrong_.empty()) wrong_ = "argument " + std::to_string(at_ - 1) + " " + what;
  }
  /// Returns what is wrong, or an empty string.
  std::string wrong() const {
    return wrong_.empty() && more() ? "more arguments than it takes" : wrong_;
  }

 private:
  const Json& next() {
    static const Json kNone;
    if (at_ < key_.size()) return key_[at_++];
    ++at_;
    refuse("is missing");
    --at_;
    return kNone;
  }
  std::vector<int64_t> numbers_of(const Json& json) {
    std::vector<int64_t> values;
    const Json list = json.is_array() ? json : Json::array({json});
    for (const Json& entry : list) {
      if (!entry.is_number_integer()) refuse("has something that is no whole number");
      if (entry.is_number_integer()) values.push_back(entry.get<int64_t>());
    }
    return values;
  }

  const Json& key_;
  size_t at_ = 1;
  std::string wrong_;
};

DType type_of(Arguments& in) {
  const std::optional<DType> dtype = parse_dtype(in.text("float32"));
  if (!dtype) in.refuse("is no type");
  return dtype.value_or(DType::kFloat32);
}

// C[i, j] = sum of A[i, k] * B[k, j].
StageId add_product(DagBuilder& b, StageId lhs, StageId rhs, std::string name) {
  const int64_t m = b.shape(lhs)[0], k = b.shape(lhs)[1], n = b.shape(rhs)[1];
  return b.reduce(std::move(name),
                  {m, n},
                  {k},
                  Combiner::kSum,
                  [&](auto i, auto r) {
                    return b.at(lhs, {i[0], r[0]}) * b.at(rhs, {r[0], i[1]});
                  },
                  "matmul",
                  {"i", "j", "k"});
}

// [name, m, k, n, type]; a type may be left out.
ComputeDag matmul(Arguments& in) {
  DagBuilder b;
  const int64_t m = in.extent(), k = in.extent(), n = in.extent();
  const DType dtype = type_of(in);
  const StageId lhs = b.placeholder("A", {m, k}, dtype);
  return b.finish({add_product(b, lhs, b.placeholder("B", {k, n}, dtype), "C")});
}

// [name, m, k, n, type]: the product plus a third input [m, n].
ComputeDag matmul_add(Arguments& in) {
  DagBuilder b;
  const int64_t m = in.extent(), k = in.extent(), n = in.extent();
  const DType dtype = type_of(in);
  const StageId lhs = b.placeholder("A", {m, k}, dtype), rhs = b.placeholder("B", {k, n}, dtype);
  const StageId product = add_product(b, lhs, rhs, "matmul");
  const StageId bias = b.placeholder("C", {m, n}, dtype);
  return b.finish({b.compute("out",
                             {m, n},
                             [&](auto i) {
                               return b.at(product, {i[0], i[1]}) + b.at(bias, {i[0], i[1]});
                             },
                             "elemwise",
                             {"i", "j"})});
}

// [name, batches, heads, m, k, n].
ComputeDag batch_matmul(Arguments& in) {
  DagBuilder b;
  const int64_t batch = in.extent() * in.extent(), m = in.extent(), k = in.extent(),
                n = in.extent();
  const StageId lhs = b.placeholder("A", {batch, m, k}), rhs = b.placeholder("B", {batch, k, n});
  return b.finish({b.reduce("T_batch_matmul_NN",
                            {batch, m, n},
                            {k},
                            Combiner::kSum,
                            [&](auto i, auto r) {
                              return b.at(lhs, {i[0], i[1], r[0]}) * b.at(rhs, {i[0], r[0], i[2]});
                            },
                            "batch_matmul",
                            {"b", "i", "j", "k"})});
}

// A copy of [n, c, h, w] with `value` around; also where nothing is padded, as TVM's pad().
StageId add_pad_nchw(
    DagBuilder& b, StageId data, const std::vector<int64_t>& pads, double value, std::string name) {
  const std::vector<int64_t> in = b.shape(data);
  const int64_t h = in[2], w = in[3];
  const auto body = [&](std::span<const Expr> i) {
    Expr inside = int_imm(1, DType::kBool);
    const auto within = [&](const Expr& at, int64_t before, int64_t after, int64_t extent) {
      if (before > 0 || after > 0) inside = inside && at >= Expr(before);
      if (before > 0 || after > 0) inside = inside && at < Expr(before + extent);
    };
    within(i[2], pads[0], pads[2], h);
    within(i[3], pads[1], pads[3], w);
    const Expr read = b.at(data, {i[0], i[1], i[2] - Expr(pads[0]), i[3] - Expr(pads[1])});
    return select(inside, read, float_imm(value));
  };
  return b.compute(std::move(name),
                   {in[0], in[1], h + pads[0] + pads[2], w + pads[1] + pads[3]},
                   body,
                   "injective,pad",
                   {"i0", "i1", "i2", "i3"});
}

int64_t window_extent(Arguments& in, int64_t padded, int64_t kernel, int64_t stride) {
  if (padded < kernel) in.refuse("leaves no room for the window");
  return padded < kernel ? 1 : window_output(padded, kernel, stride, 1, 0, 0);
}

// Epilogue is the operator that follows a convolution; kBias has one value per channel. Epilogues
// holds the first and the second operator.
enum class Epilogue : uint8_t { kNone, kRelu, kAdd, kBias };
using Epilogues = std::pair<Epilogue, Epilogue>;

StageId add_epilogue(DagBuilder& b, StageId data, Epilogue epilogue) {
  if (epilogue == Epilogue::kNone) return data;
  const std::vector<int64_t> shape = b.shape(data);
  if (epilogue == Epilogue::kRelu) {
    return b.compute("relu", shape, [&](auto i) {
      return max(b.at(data, {i.begin(), i.end()}), float_imm(0));
    });
  }
  if (epilogue == Epilogue::kBias) {
    const StageId bias = b.placeholder("bias", {1, shape[1], 1, 1});
    return b.compute("T_add", shape, [&](auto i) {
      return b.at(data, {i.begin(), i.end()}) + b.at(bias, {0, i[1], 0, 0});
    });
  }
  const StageId other = b.placeholder("input2", shape);
  return b.compute("T_add", shape, [&](auto i) {
    return b.at(data, {i.begin(), i.end()}) + b.at(other, {i.begin(), i.end()});
  });
}

ComputeDag conv2d_of(Arguments& in,
                     const std::vector<int64_t>& data_shape,
                     const std::vector<int64_t>& weight_shape,
                     const std::vector<int64_t>& stride,
                     const std::vector<int64_t>& pads,
                     const Epilogues& epilogues = {}) {
  DagBuilder b;
  const StageId padded = add_pad_nchw(b, b.placeholder("data", data_shape), pads, 0, "pad_temp");
  const StageId weight = b.placeholder("kernel", weight_shape);
  const int64_t kh = weight_shape[2], kw = weight_shape[3];
  const int64_t h = window_extent(in, b.shape(padded)[2], kh, stride[0]);
  const int64_t w = window_extent(in, b.shape(padded)[3], kw, stride[1]);
  const StageId conv = b.reduce(
      "compute",
      {data_shape[0], weight_shape[0], h, w},
      {data_shape[1], kh, kw},
      Combiner::kSum,
      [&](auto i, auto r) {
        return b.at(padded,
                    {i[0], r[0], i[2] * Expr(stride[0]) + r[1], i[3] * Expr(stride[1]) + r[2]}) *
               b.at(weight, {i[1], r[0], r[1], r[2]});
      },
      "conv2d_nchw",
      {"nn", "ff", "yy", "xx", "rc", "ry", "rx"});
  return b.finish({add_epilogue(b, add_epilogue(b, conv, epilogues.first), epilogues.second)});
}

// [name, n, ci, h, w, co, kh, kw, stride, padding].
template <Epilogue first = Epilogue::kNone, Epilogue second = Epilogue::kNone>
ComputeDag conv2d(Arguments& in) {
  const int64_t n = in.extent(), ci = in.extent(), h = in.extent(), w = in.extent();
  const int64_t co = in.extent(), kh = in.extent(), kw = in.extent();
  const std::vector<int64_t> stride = in.pair(), pads = in.padding(kh, kw);
  return conv2d_of(in, {n, ci, h, w}, {co, ci, kh, kw}, stride, pads, {first, second});
}

// [name, n, h, w, co, ci, kh, kw, stride, padding].
// The key gives height and width before the channels; a bias and a ReLU follow, as in TVM's
// tutorial.
ComputeDag conv2d_bias_relu(Arguments& in) {
  const int64_t n = in.extent(), h = in.extent(), w = in.extent(), co = in.extent();
  const int64_t ci = in.extent(), kh = in.extent(), kw = in.extent();
  const std::vector<int64_t> stride = in.pair(), pads = in.padding(kh, kw);
  const Epilogues epilogues = {Epilogue::kBias, Epilogue::kRelu};
  return conv2d_of(in, {n, ci, h, w}, {co, ci, kh, kw}, stride, pads, epilogues);
}

// [name, data's shape, weight's shape, stride, padding]; the last two are 1 if left out.
ComputeDag conv2d_shapes(Arguments& in) {
  std::vector<int64_t> data = in.shape(), weight = in.shape();
  if (data.size() != 4 || weight.size() != 4 || data[1] != weight[1]) {
    in.refuse("is no weight of the data");
    data.assign(4, 1);
    weight.assign(4, 1);
  }
  const std::vector<int64_t> stride = in.more() ? in.pair() : std::vector<int64_t>{1, 1};
  const std::vector<int64_t> pads =
      in.more() ? in.padding(weight[2], weight[3]) : std::vector<int64_t>{1, 1, 1, 1};
  return conv2d_of(in, data, weight, stride, pads);
}

// [name, n, c, h, w, kh, kw, stride, padding].
ComputeDag depthwise_conv2d(Arguments& in) {
  const int64_t n = in.extent(), c = in.extent(), h = in.extent(), w = in.extent();
  const int64_t kh = in.extent(), kw = in.extent();
  const std::vector<int64_t> stride = in.pair(), pads = in.padding(kh, kw);
  DagBuilder b;
  const StageId data = b.placeholder("data", {n, c, h, w});
  const StageId padded = add_pad_nchw(b, data, pads, 0, "PaddedInput");
  const StageId weight = b.placeholder("kernel", {c, 1, kh, kw});
  const int64_t out_h = window_extent(in, b.shape(padded)[2], kh, stride[0]);
  const int64_t out_w = window_extent(in, b.shape(padded)[3], kw, stride[1]);
  return b.finish({b.reduce(
      "DepthwiseConv2d",
      {n, c, out_h, out_w},
      {kh, kw},
      Combiner::kSum,
      [&](auto i, auto r) {
        return b.at(padded,
                    {i[0], i[1], i[2] * Expr(stride[0]) + r[0], i[3] * Expr(stride[1]) + r[1]}) *
               b.at(weight, {i[1], 0, r[0], r[1]});
      },
      "depthwise_conv2d_nchw",
      {"b", "c", "i", "j", "di", "dj"})});
}

ComputeDag pool_of(Arguments& in,
                   const std::vector<int64_t>& shape,
                   bool is_max,
                   std::vector<int64_t> kernel,
                   const std::vector<int64_t>& stride,
                   const std::vector<int64_t>& pads) {
  DagBuilder b;
  StageId data = b.placeholder("data", shape);
  if (std::ranges::any_of(pads, [](int64_t pad) { return pad > 0; })) {
    const double around = is_max ? -greatest_float(DType::kFloat32) : 0;
    data = add_pad_nchw(b, data, pads, around, "pad_temp");
  }
  const int64_t h = window_extent(in, b.shape(data)[2], kernel[0], stride[0]);
  const int64_t w = window_extent(in, b.shape(data)[3], kernel[1], stride[1]);
  const StageId pooled = b.reduce(
      is_max ? "tensor" : "pool_sum",
      {shape[0], shape[1], h, w},
      kernel,
      is_max ? Combiner::kMax : Combiner::kSum,
      [&](auto i, auto r) {
        return b.at(data,
                    {i[0], i[1], i[2] * Expr(stride[0]) + r[0], i[3] * Expr(stride[1]) + r[1]});
      },
      is_max ? "pool_max" : "pool_sum",
      {"ax0", "ax1", "ax2", "ax3", "dh", "dw"});
  if (is_max) return b.finish({pooled});
  const auto taps = static_cast<double>(kernel[0] * kernel[1]);
  return b.finish({b.compute("tensor", b.shape(pooled), [&](auto i) {
    return b.at(pooled, {i.begin(), i.end()}) / float_imm(taps);
  })});
}

// [name, "max" or "avg", n, c, h, w, kh, kw, stride, padding].
ComputeDag pool(Arguments& in) {
  const std::string kind = in.text("max");
  if (kind != "max" && kind != "avg") in.refuse("is neither max nor avg");
  const int64_t n = in.extent(), c = in.extent(), h = in.extent(), w = in.extent();
  const int64_t kh = in.extent(), kw = in.extent();
  const std::vector<int64_t> stride = in.pair(), pads = in.padding(kh, kw);
  return pool_of(in, {n, c, h, w}, kind == "max", {kh, kw}, stride, pads);
}

// [name, shape, type].
// A 1x1 average with a stride of 2.
ComputeDag pool_points(Arguments& in) {
  std::vector<int64_t> shape = in.shape();
  if (shape.size() != 4) in.refuse("is no shape of four");
  shape.resize(4, 1);
  type_of(in);
  return pool_of(in, shape, false, {1, 1}, {2, 2}, {0, 0, 0, 0});
}

// [name, shape, axes, whether reduced dims stay as 1]: a sum.
ComputeDag reduction(Arguments& in) {
  const std::vector<int64_t> shape = in.shape();
  std::vector<int64_t> axes = in.numbers();
  const bool keep_dims = in.flag();
  const auto rank = static_cast<int64_t>(shape.size());
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) in.refuse("has an axis that the data have not");
    if (axis < -rank || axis >= rank) axis = 0;
    if (axis < 0) axis += rank;
  }
  std::ranges::sort(axes);
  if (axes.empty() || std::ranges::adjacent_find(axes) != axes.end() || shape.empty()) {
    in.refuse("has no axes, or one twice");
    return {};
  }
  DagBuilder b;
  const StageId data = b.placeholder("data", shape);
  return b.finish({add_reduce(b, data, axes, keep_dims, ReduceKind::kSum)});
}

ComputeDag relu_of(const std::vector<int64_t>& shape, DType dtype) {
  DagBuilder b;
  const StageId data = b.placeholder("data", shape, dtype);
  const auto body = [&](std::span<const Expr> i) {
    return max(b.at(data, {i.begin(), i.end()}), float_imm(0));
  };
  return b.finish({b.compute("compute", shape, body)});
}

// The extents, and perhaps a type.
ComputeDag relu(Arguments& in) {
  std::vector<int64_t> shape;
  while (in.more() && !in.next_is_text()) shape.push_back(in.extent());
  if (shape.empty()) in.refuse("is missing");
  return relu_of(shape, type_of(in));
}

struct WorkloadRow {
  const char* name;
  ComputeDag (*build)(Arguments& in);
};
constexpr WorkloadRow kWorkloads[] = {
    {"ansor_mm", matmul},
    {"ansor_pool2d", pool_points},
    {"ansor_relu", relu},
    {"batch_matmul_layer", batch_matmul},
    {"conv2d_ansor", conv2d_shapes},
    {"conv2d_layer", conv2d<>},
    {"conv2d_layer", conv2d<Epilogue::kRelu>},
    {"conv2d_layer", conv2d<Epilogue::kAdd>},
    {"conv2d_layer", conv2d<Epilogue::kAdd, Epilogue::kRelu>},
    {"conv2d_layer", conv2d<Epilogue::kRelu, Epilogue::kAdd>},
    {"conv2d_layer", conv2d_bias_relu},
    {"depthwise_conv2d_layer", depthwise_conv2d},
    {"matmul", matmul},
    {"matmul_add", matmul_add},
    {"matmul_layer", matmul},
    {"pool_layer", pool},
    {"reduction_layer", reduction},
    {"relu_layer", relu},
};

}  // namespace

bool is_registered_workload(const std::string& name) {
  return std::ranges::find(kWorkloads, name, &WorkloadRow::name) != std::end(kWorkloads);
}

Result<std::vector<ComputeDag>> registered_workload(const Json& key) {
  if (!key.is_array() || key.empty() || !key[0].is_string()) {
    return Error("the workload key names no function");
  }
  const auto name = key[0].get<std::string>();
  std::vector<ComputeDag> dags;
  std::string wrong;
  for (const WorkloadRow& row : kWorkloads) {
    if (name != row.name) continue;
    Arguments in(key);
    ComputeDag dag = row.build(in);
    for (const Stage& stage : dag.stages) {
      double elements = 1;
      for (const Iterator& axis : stage.axes) elements *= static_cast<double>(axis.extent);
      if (elements > kMaxElements) in.refuse("makes a tensor of over 1e12 elements");
    }
    if (in.wrong().empty()) {
      dags.push_back(std::move(dag));
    } else if (wrong.empty()) {
      wrong = in.wrong();
    }
  }
  if (!dags.empty()) return dags;
  if (!wrong.empty()) return Error(name, ": ", wrong);
  return Error("no registered function \"", name, "\"");
}

}  // namespace pruner::ansor
