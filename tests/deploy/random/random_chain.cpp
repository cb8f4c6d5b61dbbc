#include "random_chain.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "graph/onnx/onnx_model.h"
#include "support/rng.h"

namespace pruner {
namespace {

constexpr int64_t kMostLength = 2000;  // bound on a tensor between two steps
constexpr int64_t kShapes = 300;
constexpr int64_t kFar = int64_t{1} << 31;  // an end of a Slice that takes all

/// A model while it is drawn. `x` is what the last step gave.
class ChainMaker {
 public:
  explicit ChainMaker(uint64_t seed) : rng_(seed), model_(19) { begin(); }

  /// Draws a step; leaves the model as it was, and returns false, where the model cannot be
  /// imported with it.
  bool add_step(uint64_t seed);

  const std::vector<Symbol>& symbols() const { return symbols_; }
  std::string text() const { return text_ + fmt::format("{}\n", x_); }
  std::string bytes() const {
    OnnxModel whole = model_;
    whole.node("Identity", {x_}, {"y"});
    whole.output("y");
    return whole.bytes();
  }

 private:
  using Step = void (ChainMaker::*)();

  void begin();
  void open_input(const std::string& name, const std::vector<std::string>& dims);
  std::vector<int64_t> shape_at(bool greatest) const;

  void pool();
  void conv();
  void conv_transpose();
  void slice();
  void pad();
  void windows();
  void halves();
  void join();
  void subtract_mean();
  void softmax();
  void instance_norm();
  void product();
  void elementwise();
  void positions();
  void position_table();
  void resize();
  void last_row();
  void cumulative_sum();
  void expand();
  void shuffle_channels();
  void parts();
  void flatten();
  void mask();
  void attention();
  void top_k();
  void scatter();

  int64_t draw(int64_t least, int64_t most) { return least + rng_.below(most - least + 1); }
  bool coin() { return rng_.below(2) == 0; }

  std::string name() { return "v" + std::to_string(names_++); }
  /// The node's output, which the model computes from these; the node, for its attributes.
  std::pair<std::string, onnx::NodeProto*> node(const std::string& op,
                                                const std::vector<std::string>& inputs) {
    const std::string output = name();
    onnx::NodeProto& made = model_.node(op, inputs, {output});
    text_ += fmt::format("{} = {}({})\n", output, op, fmt::join(inputs, ", "));
    return {output, &made};
  }
  std::string simple(const std::string& op, const std::vector<std::string>& inputs) {
    return node(op, inputs).first;
  }
  void say(const std::string& what) { text_ += "    " + what + "\n"; }

  std::string integers(const std::vector<int64_t>& values) {
    const std::string constant = name();
    model_.integers(constant, values);
    text_ += fmt::format("{} = [{}]\n", constant, fmt::join(values, ", "));
    return constant;
  }
  std::string integer(int64_t value) {
    const std::string constant = name();
    model_.integer(constant, value);
    text_ += fmt::format("{} = {}\n", constant, value);
    return constant;
  }
  std::string floats(const std::vector<int64_t>& shape, double most) {
    const std::string constant = name();
    onnx::TensorProto& proto = model_.initializer(constant, onnx::TensorProto::FLOAT, shape);
    int64_t elements = 1;
    for (const int64_t extent : shape) elements *= extent;
    for (int64_t i = 0; i < elements; ++i)
      proto.add_float_data(static_cast<float>((2 * rng_.uniform() - 1) * most));
    text_ += fmt::format("{} = floats [{}]\n", constant, fmt::join(shape, ", "));
    return constant;
  }
  std::string given_floats(const std::vector<float>& values) {
    const std::string constant = name();
    onnx::TensorProto& proto = model_.initializer(
        constant, onnx::TensorProto::FLOAT, {static_cast<int64_t>(values.size())});
    for (const float value : values) proto.add_float_data(value);
    text_ += fmt::format("{} = [{}]\n", constant, fmt::join(values, ", "));
    return constant;
  }
  /// The length of x, as [1].
  std::string length() { return simple("Gather", {simple("Shape", {x_}), integers({2})}); }
  /// An axis of x from..to of it; names of integers [1].
  std::string cut(const std::string& from, const std::string& to) {
    return simple("Slice", {x_, from, to, integers({2})});
  }
  std::string reduce(const std::string& op, const std::string& of, int64_t axis) {
    return simple(op, {of, integers({axis})});
  }
  std::string reshape(const std::string& of, const std::string& shape) {
    return simple("Reshape", {of, shape});
  }
  std::string transpose(const std::string& of, const std::vector<int64_t>& perm) {
    const auto [output, made] = node("Transpose", {of});
    set_ints(*made, "perm", perm);
    return output;
  }
  std::string concat(const std::vector<std::string>& of, int64_t axis) {
    const auto [output, made] = node("Concat", of);
    set_int(*made, "axis", axis);
    return output;
  }

  Rng rng_;
  OnnxModel model_;
  std::vector<Symbol> symbols_;
  std::string x_, other_, text_;  // other_: an input that is not joined yet
  int64_t channels_ = 4;
  int names_ = 0;
};

void ChainMaker::open_input(const std::string& input, const std::vector<std::string>& dims) {
  onnx::ValueInfoProto& proto = *model_.graph().add_input();
  proto.set_name(input);
  auto& tensor = *proto.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx::TensorProto::FLOAT);
  for (const std::string& dim : dims) {
    auto& extent = *tensor.mutable_shape()->add_dim();
    if (dim == "n" || dim == "m") {
      extent.set_dim_param(dim);
    } else {
      extent.set_dim_value(std::stoll(dim));
    }
  }
  text_ += fmt::format("{} = input [{}]\n", input, fmt::join(dims, ", "));
}

void ChainMaker::begin() {
  constexpr int64_t kLeast[] = {2, 5, 9, 17, 33, 64};
  const auto symbol = [&](const char* symbol_name, int64_t shapes) {
    const int64_t least = kLeast[rng_.below(std::ssize(kLeast))];
    symbols_.push_back({symbol_name, least, least + shapes - 1, {}});
  };
  channels_ = draw(1, 6);
  const std::string channels = std::to_string(channels_);
  const int64_t kind = draw(0, 9);
  symbol("n", kind < 6 ? kShapes : kind < 7 ? 60 : 20);
  x_ = "x";
  if (kind < 6) {
    open_input("x", {std::to_string(draw(1, 2)), channels, "n"});
  } else if (kind < 7) {  // an image, whose rows are summed up
    open_input("x", {"1", channels, "n", coin() ? "n" : "7"});
    const auto [columns, made] = node(coin() ? "ReduceMean" : "ReduceMax", {"x", integers({3})});
    set_int(*made, "keepdims", 0);
    x_ = columns;
  } else {
    symbol("m", 15);
    if (kind < 8) {
      open_input("x", {"m", channels, "n"});
    } else {
      open_input("x", {"1", channels, "n"});
      open_input("other", {"1", channels, "m"});
      other_ = "other";
      if (kind < 9) join();
    }
  }
}

std::vector<int64_t> ChainMaker::shape_at(bool greatest) const {
  NetworkOptions options;
  for (const Symbol& symbol : symbols_)
    options.dims[symbol.name] = greatest ? symbol.max : symbol.min;
  const Result<Graph> graph = import_onnx_bytes(bytes(), options);
  if (!graph.ok()) return {};
  return (*graph)[graph->outputs.front()].shape;
}

void ChainMaker::pool() {
  const int64_t kernel = draw(1, 5), stride = draw(1, 4), ceil = draw(0, 1);
  const std::vector<int64_t> pads = {draw(0, kernel / 2), draw(0, kernel / 2)};
  const bool max = coin();
  const int64_t dilation = max && kernel > 1 ? draw(1, 3) : 1, counts = draw(0, 1);
  const auto [output, made] = node(max ? "MaxPool" : "AveragePool", {x_});
  set_ints(*made, "kernel_shape", {kernel});
  set_ints(*made, "strides", {stride});
  set_ints(*made, "pads", pads);
  set_int(*made, "ceil_mode", ceil);
  if (max) {
    set_ints(*made, "dilations", {dilation});
  } else {
    set_int(*made, "count_include_pad", counts);
  }
  say(fmt::format("kernel {} stride {} pads {} {} ceil {} dilation {} counts {}",
                  kernel,
                  stride,
                  pads[0],
                  pads[1],
                  ceil,
                  dilation,
                  counts));
  x_ = output;
}

void ChainMaker::conv() {
  const int64_t kernel = draw(1, 7), stride = draw(1, 5), dilation = draw(1, 3);
  const std::vector<int64_t> pads = {draw(0, kernel), draw(0, kernel)};
  const bool depthwise = coin();
  const int64_t to = depthwise ? channels_ : draw(1, 8), from = depthwise ? 1 : channels_;
  const double most = 1.5 / std::sqrt(static_cast<double>(from * kernel));
  const auto [output, made] = node("Conv", {x_, floats({to, from, kernel}, most)});
  set_ints(*made, "strides", {stride});
  set_ints(*made, "dilations", {dilation});
  set_ints(*made, "pads", pads);
  set_int(*made, "group", depthwise ? channels_ : 1);
  say(fmt::format("stride {} pads {} {} dilation {}", stride, pads[0], pads[1], dilation));
  channels_ = to;
  x_ = output;
}

void ChainMaker::conv_transpose() {
  const int64_t kernel = draw(1, 5), stride = draw(1, 3), to = draw(1, 6);
  const std::vector<int64_t> pads = {draw(0, kernel - 1), draw(0, kernel - 1)};
  const int64_t more = draw(0, stride - 1);
  const double most = 1.5 / std::sqrt(static_cast<double>(channels_ * kernel));
  const auto [output, made] = node("ConvTranspose", {x_, floats({channels_, to, kernel}, most)});
  set_ints(*made, "strides", {stride});
  set_ints(*made, "pads", pads);
  set_ints(*made, "output_padding", {more});
  say(fmt::format("stride {} pads {} {} output_padding {}", stride, pads[0], pads[1], more));
  channels_ = to;
  x_ = output;
}

void ChainMaker::slice() {
  const bool back = rng_.below(4) == 0;
  const int64_t step = draw(1, 3);
  const int64_t from = coin() ? draw(0, 3) : -draw(1, 9), to = coin() ? kFar : -draw(1, 4);
  x_ = back
           ? simple(
                 "Slice",
                 {x_, integers({-draw(1, 3)}), integers({-kFar}), integers({2}), integers({-step})})
           : simple("Slice",
                    {x_, integers({from}), integers({to}), integers({2}), integers({step})});
}

void ChainMaker::pad() {
  constexpr const char* kModes[] = {"constant", "reflect", "edge", "wrap"};
  const char* mode = kModes[rng_.below(4)];
  const int64_t before = draw(0, 3), after = draw(mode[0] == 'c' ? -2 : 0, 3);
  const auto [output, made] = node("Pad", {x_, integers({0, 0, before, 0, 0, after})});
  set_text(*made, "mode", mode);
  say(mode);
  x_ = output;
}

// Windows of d, and what is over is cut off, or d is what the length is filled up to a multiple of.
void ChainMaker::windows() {
  const int64_t d = draw(2, 7);
  const std::string divisor = integers({d});
  std::string whole = x_, count = simple("Div", {length(), divisor});
  if (coin()) {
    whole = cut(integers({0}), simple("Mul", {count, divisor}));
  } else {
    const std::string sum = simple("Add", {length(), integers({d - 1})});
    count = simple("Div", {sum, divisor});
    const std::string over = simple("Sub", {simple("Mul", {count, divisor}), length()});
    const std::string pads = concat({integers({0, 0, 0, 0, 0}), over}, 0);
    whole = simple("Pad", {x_, pads});
  }
  const std::string split = reshape(whole, concat({integers({0, 0}), count, divisor}, 0));
  if (coin()) {
    constexpr const char* kReductions[] = {"ReduceMean", "ReduceMax", "ReduceSum"};
    const std::string reduced = reduce(kReductions[rng_.below(3)], split, 3);
    x_ = reshape(reduced, integers({0, 0, -1}));
  } else if (coin()) {  // the windows' elements change places
    x_ = reshape(transpose(split, {0, 1, 3, 2}), integers({0, 0, -1}));
  } else {  // channels of each place
    x_ = reshape(transpose(split, {0, 1, 3, 2}), integers({0, channels_ * d, -1}));
    channels_ *= d;
  }
}

void ChainMaker::halves() {
  const std::string half = simple("Div", {length(), integers({draw(2, 3)})});
  const std::string first = cut(integers({0}), half), second = cut(half, length());
  switch (draw(0, 2)) {
    case 0: x_ = first; break;
    case 1: x_ = second; break;
    default: x_ = concat({simple("Neg", {second}), first}, 2);
  }
}

void ChainMaker::join() {
  if (!other_.empty()) {
    x_ = concat(coin() ? std::vector{x_, other_} : std::vector{other_, x_}, 2);
    other_.clear();
    return;
  }
  const std::string before = x_;
  slice();
  x_ = concat({before, x_}, 2);
}

void ChainMaker::subtract_mean() {
  constexpr const char* kReductions[] = {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1"};
  const std::string op = kReductions[rng_.below(4)];
  std::string reduced = reduce(op, x_, 2);
  if (op == "ReduceL1") reduced = simple("Div", {reduced, given_floats({100})});
  x_ = coin() ? reduced : simple("Sub", {x_, reduced});
}

void ChainMaker::softmax() {
  const auto [output, made] = node("Softmax", {x_});
  set_int(*made, "axis", coin() ? 2 : 1);
  x_ = output;
}

void ChainMaker::instance_norm() {
  const auto [output, made] =
      node("InstanceNormalization", {x_, floats({channels_}, 1), floats({channels_}, 1)});
  set_float(*made, "epsilon", 0.01F);
  x_ = output;
}

void ChainMaker::product() {
  const int64_t to = draw(1, 9);
  const std::string weights =
      floats({channels_, to}, 1.5 / std::sqrt(static_cast<double>(channels_)));
  const std::string y = simple("MatMul", {transpose(x_, {0, 2, 1}), weights});
  x_ = transpose(coin() ? simple("Add", {y, floats({to}, 1)}) : y, {0, 2, 1});
  channels_ = to;
}

void ChainMaker::elementwise() {
  constexpr const char* kFunctions[] = {"Relu", "Tanh", "Sigmoid", "Neg", "Abs"};
  if (coin()) {
    x_ = simple(kFunctions[rng_.below(5)], {x_});
  } else {
    x_ = simple(coin() ? "Add" : "Mul", {x_, floats({channels_, 1}, 1)});
  }
}

// Adds to each place its number, divided by the length or not, or the sine of that number.
void ChainMaker::positions() {
  const std::string size = simple("Squeeze", {length(), integers({0})});
  const std::string range = simple("Range", {integer(0), size, integer(1)});
  const auto [places, made] = node("Cast", {range});
  set_int(*made, "to", onnx::TensorProto::FLOAT);
  std::string parts = places;
  if (coin()) {
    const auto [of, cast] = node("Cast", {size});
    set_int(*cast, "to", onnx::TensorProto::FLOAT);
    parts = simple("Div", {places, of});
  } else {
    parts = simple("Mul", {places, given_floats({0.01F})});
  }
  x_ = simple("Add", {x_, coin() ? simple("Sin", {parts}) : parts});
}

// The first rows of a table, which is as long as the greatest length.
void ChainMaker::position_table() {
  const std::vector<int64_t> greatest = shape_at(true);
  if (greatest.size() != 3) return;
  const std::string table = floats({channels_, greatest[2] + draw(0, 5)}, 1);
  const std::string rows = simple("Slice", {table, integers({0}), length(), integers({1})});
  x_ = simple(coin() ? "Add" : "Mul", {x_, rows});
}

void ChainMaker::resize() {
  constexpr float kScales[] = {2, 3, 0.5, 1.5, 0.7F};
  const bool nearest = coin();
  const auto [output, made] =
      node("Resize", {x_, "", given_floats({1, 1, kScales[rng_.below(5)]})});
  set_text(*made, "mode", nearest ? "nearest" : "linear");
  if (nearest) {
    set_text(*made, "coordinate_transformation_mode", "asymmetric");
    set_text(*made, "nearest_mode", "floor");
  }
  x_ = output;
}

void ChainMaker::last_row() {
  const std::string last = simple("Sub", {length(), integers({draw(1, 2)})});
  const auto [row, made] = node("Gather", {x_, last});
  set_int(*made, "axis", 2);
  x_ = coin() ? row : simple("Add", {x_, row});
}

void ChainMaker::cumulative_sum() {
  const auto [sum, made] = node("CumSum", {x_, integer(2)});
  if (coin()) set_int(*made, "exclusive", 1);
  if (coin()) set_int(*made, "reverse", 1);
  x_ = simple("Mul", {sum, given_floats({0.1F})});
}

// A constant of each channel, as large as x, beside it.
void ChainMaker::expand() {
  const std::string spread = simple("Expand", {floats({channels_, 1}, 1), simple("Shape", {x_})});
  x_ = coin() ? simple("Add", {x_, spread}) : concat({x_, spread}, 2);
}

void ChainMaker::shuffle_channels() {
  if (channels_ % 2 != 0) return elementwise();
  const std::string split = reshape(x_, concat({integers({0, 2, channels_ / 2}), length()}, 0));
  x_ = reshape(transpose(split, {0, 2, 1, 3}), integers({0, channels_, -1}));
}

// Parts of equal length, but for the last one.
void ChainMaker::parts() {
  const int64_t count = draw(2, 3);
  std::vector<std::string> outputs;
  for (int64_t i = 0; i < count; ++i) outputs.push_back(name());
  onnx::NodeProto& made = model_.node("Split", {x_}, outputs);
  set_int(made, "axis", 2);
  set_int(made, "num_outputs", count);
  text_ += fmt::format("{} = Split({})\n", fmt::join(outputs, ", "), x_);
  if (coin()) {
    x_ = outputs[static_cast<size_t>(rng_.below(count))];
  } else {
    std::swap(outputs.front(), outputs.back());
    x_ = concat(outputs, 2);
  }
}

// Channels and places are one axis for a while.
void ChainMaker::flatten() {
  const std::string shape = simple("Shape", {x_}), flat = reshape(x_, integers({0, -1}));
  const auto [probabilities, made] = node("Softmax", {flat});
  set_int(*made, "axis", 1);
  x_ =
      reshape(coin() ? probabilities : simple("Sub", {flat, reduce("ReduceMean", flat, 1)}), shape);
}

// Places from the middle on are not zero.
void ChainMaker::mask() {
  const std::string size = simple("Squeeze", {length(), integers({0})});
  const std::string range = simple("Range", {integer(0), size, integer(1)});
  const std::string half = simple("Div", {size, integer(2)});
  x_ = simple("Where", {simple(coin() ? "Less" : "Greater", {range, half}), x_, given_floats({0})});
}

// Attention of places to places, at times to those before them alone.
void ChainMaker::attention() {
  const std::string rows = transpose(x_, {0, 2, 1});
  std::string scores = simple("MatMul", {rows, x_});
  if (coin()) {
    const std::string square = concat({length(), length()}, 0);
    const auto [mask, made] = node("ConstantOfShape", {square});
    onnx::AttributeProto& attribute = *made->add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    attribute.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    attribute.mutable_t()->add_dims(1);
    attribute.mutable_t()->add_float_data(-1e9F);
    const auto [upper, trilu] = node("Trilu", {mask, integer(1)});
    set_int(*trilu, "upper", 1);
    scores = simple("Add", {scores, upper});
  }
  const auto [probabilities, made] = node("Softmax", {scores});
  set_int(*made, "axis", 2);
  x_ = transpose(simple("MatMul", {probabilities, rows}), {0, 2, 1});
}

// The k greatest along the symbol or the least: of all, a part of them, or so many.
void ChainMaker::top_k() {
  std::string k = length();
  switch (draw(0, 3)) {
    case 0: break;
    case 1: k = simple("Div", {k, integers({2})}); break;
    case 2: k = simple("Min", {k, integers({draw(2, 90)})}); break;
    default: k = integers({draw(1, 2)});
  }
  const std::string values = name(), places = name();
  onnx::NodeProto& made = model_.node("TopK", {x_, k}, {values, places});
  set_int(made, "axis", 2);
  set_int(made, "largest", draw(0, 1));
  text_ += fmt::format("{} = TopK({}, {})\n", values, x_, k);
  x_ = values;
}

// The first and the last element of each row take two others.
void ChainMaker::scatter() {
  const std::string rows = transpose(x_, {2, 1, 0}), places = integers({0, -1});
  const auto [first, made] = node("Gather", {rows, integers({1, 0})});
  set_int(*made, "axis", 0);
  const std::string changed = simple("ScatterND", {rows, reshape(places, integers({2, 1})), first});
  x_ = transpose(changed, {2, 1, 0});
}

bool ChainMaker::add_step(uint64_t seed) {
  struct Row {
    int64_t weight;
    Step step;
  };
  constexpr Row kRows[] = {{5, &ChainMaker::pool},
                           {5, &ChainMaker::conv},
                           {2, &ChainMaker::conv_transpose},
                           {4, &ChainMaker::slice},
                           {3, &ChainMaker::pad},
                           {4, &ChainMaker::windows},
                           {3, &ChainMaker::halves},
                           {3, &ChainMaker::join},
                           {3, &ChainMaker::subtract_mean},
                           {2, &ChainMaker::softmax},
                           {1, &ChainMaker::instance_norm},
                           {4, &ChainMaker::product},
                           {3, &ChainMaker::elementwise},
                           {2, &ChainMaker::positions},
                           {1, &ChainMaker::position_table},
                           {3, &ChainMaker::resize},
                           {1, &ChainMaker::last_row},
                           {1, &ChainMaker::cumulative_sum},
                           {1, &ChainMaker::expand},
                           {1, &ChainMaker::shuffle_channels},
                           {2, &ChainMaker::parts},
                           {1, &ChainMaker::flatten},
                           {1, &ChainMaker::mask},
                           {1, &ChainMaker::attention},
                           {1, &ChainMaker::top_k},
                           {1, &ChainMaker::scatter}};
  rng_ = Rng(seed);
  const ChainMaker before = *this;
  std::vector<double> weights;
  for (const Row& row : kRows) weights.push_back(static_cast<double>(row.weight));
  const Step step = kRows[rng_.weighted(weights)].step;
  // The interpreter takes seconds for a product of long tensors.
  if (step != &ChainMaker::attention || symbols_[0].max < 100) (this->*step)();
  const std::vector<int64_t> least = shape_at(false), greatest = shape_at(true);
  const auto fits = [&](const std::vector<int64_t>& shape) {
    return shape.size() == 3 && shape[0] * shape[1] * shape[2] > 0 && shape[1] == channels_;
  };
  if (fits(least) && fits(greatest) && greatest[2] <= kMostLength) return true;
  *this = before;
  return false;
}

/// The model of these steps. Steps that cannot follow are left out.
RandomChain chain_of(uint64_t seed, const std::vector<uint64_t>& steps) {
  ChainMaker maker(seed);
  RandomChain chain;
  for (const uint64_t step : steps)
    if (maker.add_step(step)) chain.steps.push_back(step);
  chain.seed = seed;
  chain.symbols = maker.symbols();
  chain.model = maker.bytes();
  chain.text = maker.text();
  return chain;
}

}  // namespace

RandomChain random_chain(uint64_t seed) {
  Rng rng(seed);
  std::vector<uint64_t> steps;
  for (int64_t left = 1 + rng.below(6); left > 0; --left) steps.push_back(rng.next());
  return chain_of(seed, steps);
}

std::vector<RandomChain> shorter_chains(const RandomChain& chain) {
  std::vector<RandomChain> shorter;
  for (size_t s = 0; s < chain.steps.size(); ++s) {
    std::vector<uint64_t> steps = chain.steps;
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(s));
    shorter.push_back(chain_of(chain.seed, steps));
  }
  return shorter;
}

}  // namespace pruner
