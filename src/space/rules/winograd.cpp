// The Winograd forms of a 3 x 3 convolution of stride 1 with a constant weight: as a DAG,
//   X[u, s, t, c] = sum_r B^T[u, r] d[row r, column s of tile t]     t: a tile of m x m outputs
//   V[u, v, t, c] = sum_s B^T[v, s] X[u, s, t, c]
//   M[u, v, t, k] = sum_c V[u, v, t, c] U[u, v, c, k]      U = G g G^T, made ahead of time
//   S[h, v, q, k] = sum_u A^T[h % m, u] M[u, v, t, k]
//   Y[h, w, k]    = sum_v A^T[w % m, v] S[h, v, w / m, k]
// where (u, v) is one axis e of M. The rows of the small matrices are written out: a body selects
// by the places of its unrolled tile (Stage::unrolled), which are constants in the code. On a GPU
// what X and S read of a tile is copied into registers first, each element once. Data and
// weight may be of a narrower float; all that is made of them is float32.
#include <algorithm>
#include <cmath>

#include "space/dag_edit.h"
#include "space/sketch_rule.h"
#include "support/ceil_div.h"
#include "tensor/winograd.h"

namespace pruner {
namespace {

/// A convolution that has the forms.
struct Convolution {
  StageId stage, data, weight;
};

bool is_var(const Expr& e, int iterator) {
  const Var* var = as<Var>(e);
  return var != nullptr && var->id == VarId{iterator};
}

// The tensor's element that a factor is, looking through a cast to float32.
const Load* as_element(const Expr& factor) {
  const Cast* wide = as<Cast>(factor);
  return as<Load>(wide != nullptr ? wide->value : factor);
}

// data[n, y + ry, x + rx, c] * weight[ry, rx, c, k], summed over ry, rx < 3 and c.
std::optional<Convolution> match_convolution(const ComputeDag& dag, StageId id) {
  const Stage& stage = dag[id];
  if (stage.combiner != Combiner::kSum || stage.dtype != DType::kFloat32) return std::nullopt;
  if (stage.axes.size() != 4 || stage.reduce_axes.size() != 3) return std::nullopt;
  if (stage.reduce_axes[0].extent != 3 || stage.reduce_axes[1].extent != 3) return std::nullopt;
  const Binary* product = as<Binary>(stage.body);
  if (product == nullptr || product->op != BinaryOp::kMul) return std::nullopt;
  const Load *data = as_element(product->a), *weight = as_element(product->b);
  if (data == nullptr || weight == nullptr) return std::nullopt;
  if (!is_float(dag[data->tensor].dtype)) return std::nullopt;
  const Stage& constant = dag[weight->tensor];
  if (!constant.constant || dag.consumers(weight->tensor).size() != 1) return std::nullopt;
  const auto& w = weight->indices;
  if (w.size() != 4 || !is_var(w[0], 4) || !is_var(w[1], 5) || !is_var(w[2], 6) || !is_var(w[3], 3))
    return std::nullopt;
  const auto is_sum = [](const Expr& e, int a, int b) {
    const Binary* sum = as<Binary>(e);
    return sum != nullptr && sum->op == BinaryOp::kAdd && is_var(sum->a, a) && is_var(sum->b, b);
  };
  const auto& d = data->indices;
  if (d.size() != 4 || !is_var(d[0], 0) || !is_sum(d[1], 1, 4) || !is_sum(d[2], 2, 5) ||
      !is_var(d[3], 6))
    return std::nullopt;
  return Convolution{id, data->tensor, weight->tensor};
}

// sum_i row[i] * terms[i] in two or more groups, each with the factor of its last term taken out,
// so that rows which differ in signs share their parts: the even and the odd terms of B^T, and the
// pairs of neighbours after the first term of A^T.
Expr combination(const std::vector<double>& row, const std::vector<Expr>& terms, bool by_parity) {
  std::vector<std::vector<size_t>> groups(by_parity ? 2 : 1 + row.size() / 2);
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] != 0) groups[by_parity ? i % 2 : (i + 1) / 2].push_back(i);
  }
  Expr sum;
  for (const std::vector<size_t>& group : groups) {
    if (group.empty()) continue;
    size_t lead = group.back();
    for (const size_t i : group) {
      if (!sum && row[lead] < 0 && row[i] > 0) lead = i;  // nothing yet to subtract from
    }
    Expr part = terms[lead];
    for (const size_t i : group) {
      const double factor = row[i] / row[lead];
      if (i != lead) part = factor == -1 ? part - terms[i] : part + terms[i] * float_imm(factor);
    }
    const double factor = row[lead];
    const Expr scaled = std::abs(factor) == 1 ? part : part * float_imm(factor);
    sum = !sum ? scaled : factor == -1 ? sum - scaled : sum + scaled;
  }
  return sum;
}

// rows[0] where index is 0, rows[1] where it is 1, ...
Expr choose(const Expr& index, std::vector<Expr> rows) {
  Expr chosen = rows.back();
  for (size_t i = rows.size() - 1; i-- > 0;) {
    chosen = select(binary(BinaryOp::kEq, index, Expr(static_cast<int64_t>(i))), rows[i], chosen);
  }
  return chosen;
}

Stage stage_of(std::string name, std::vector<Iterator> axes) {
  Stage stage;
  stage.name = std::move(name);
  stage.axes = std::move(axes);
  stage.tag = "winograd";
  return stage;
}

class Rewriter {
 public:
  Rewriter(ComputeDag& dag, const Convolution& conv, int m, bool gpu)
      : dag_(dag), form_(winograd(m)), gpu_(gpu), at_(conv.stage.value), data_(conv.data) {
    const Stage& stage = dag[conv.stage];
    const auto named = [](const char* name, Iterator axis) {
      axis.name = name;
      return axis;
    };
    image_ = named("n", stage.axes[0]);
    height_ = named("h", stage.axes[1]);
    width_ = named("w", stage.axes[2]);
    kernels_ = named("k", stage.axes[3]);
    channels_ = named("c", stage.reduce_axes[2]);
    rows_ = ceil_div(height_.extent, m);
    columns_ = ceil_div(width_.extent, m);
    tiles_ = {"t", image_.extent * rows_ * columns_, image_.open || height_.open || width_.open};
  }

  void run(StageId weight) {
    Stage& constant = dag_[weight];
    constant.axes = {{"e", points() * points()}, channels_, kernels_};
    constant.transform = form_.tile == 2 ? Transform::kWinograd2 : Transform::kWinograd4;
    constant.dtype = DType::kFloat32;
    const StageId d = gpu_ ? insert(data_tile()) : StageId{};
    const StageId x = insert(data_rows(d));
    const StageId v = insert(data_columns(x));
    const StageId m = insert(product(v, weight));
    const StageId p = gpu_ ? insert(product_tile(m)) : StageId{};
    const StageId s = insert(output_rows(m, p));
    Stage& conv = dag_[StageId{at_}];
    Stage y = output_columns(s);
    y.name = conv.name;
    y.output = conv.output;
    conv = std::move(y);
    const bool padded = !dag_[data_].is_placeholder();
    if (padded && !dag_[data_].output && dag_.consumers(data_).empty()) inline_stage(dag_, data_);
  }

 private:
  int64_t points() const { return form_.points; }
  int64_t tile() const { return form_.tile; }

  StageId insert(Stage stage) {
    insert_stage(dag_, at_, std::move(stage));
    return StageId{at_++};
  }

  // Element [n, y, x, c] of the padded data; 0 beyond its end, where ragged tiles reach.
  Expr padded(const std::vector<Expr>& index) const {
    return cast(DType::kFloat32, padded_as_stored(index));
  }

  Expr padded_as_stored(const std::vector<Expr>& index) const {
    const Stage& data = dag_[data_];
    const Select* pad = as<Select>(data.body);
    const bool selects = pad != nullptr && as<Load>(pad->a) != nullptr &&
                         as<FloatImm>(pad->b) != nullptr && as<FloatImm>(pad->b)->value == 0;
    const Expr element = selects ? substitute(data.body, index) : load(data_, index, data.dtype);
    Expr inside = int_imm(1, DType::kBool);
    for (const int d : {1, 2}) {
      // The padding's condition ends with the data, in the dimensions that it is about.
      if (selects && reads(pad->condition, VarId{d})) continue;
      const auto at = static_cast<size_t>(d);
      const int64_t covered = (d == 1 ? rows_ : columns_) * tile() + 2;
      const Iterator& axis = data.axes[at];
      if (axis.open || covered > axis.extent) inside = inside && index[at] < Expr(axis.extent);
    }
    return select(inside, element, float_imm(0, data.dtype));
  }

  // The data's element at row r and column s of a tile: i = (r or u, s, t, c).
  Expr data_at(const Expr& r, const std::vector<Expr>& i) const {
    const Expr image = floor_div(i[2], Expr(rows_ * columns_));
    const Expr row = floor_mod(floor_div(i[2], Expr(columns_)), Expr(rows_)) * Expr(tile());
    const Expr column = floor_mod(i[2], Expr(columns_)) * Expr(tile()) + i[1];
    return padded({image, row + r, column, i[3]});
  }

  Stage tile_of(std::string name, const char* row, const char* column, const Iterator& last) const {
    Stage stage = stage_of(std::move(name), {{row, points()}, {column, points()}, tiles_, last});
    stage.unrolled = {{0, points()}, {1, points()}};
    return stage;
  }

  // The two tile stages copy into registers what a tile of the stages below reads more than once.
  Stage data_tile() const {
    Stage d = tile_of("winograd_data_tile", "r", "s", channels_);
    d.tag = kTileTag;
    const std::vector<Expr> i = iterator_vars(d);
    d.body = data_at(i[0], i);
    return d;
  }
  Stage product_tile(StageId m) const {
    Stage p = tile_of("winograd_product_tile", "u", "v", kernels_);
    p.tag = kTileTag;
    const std::vector<Expr> i = iterator_vars(p);
    p.body = load(m, {i[0] * Expr(points()) + i[1], i[2], i[3]}, DType::kFloat32);
    return p;
  }

  Stage data_rows(StageId d) const {
    Stage x = tile_of("winograd_rows", "u", "s", channels_);
    const std::vector<Expr> i = iterator_vars(x);
    std::vector<Expr> taps, rows;
    for (int64_t r = 0; r < points(); ++r)
      taps.push_back(gpu_ ? load(d, {Expr(r), i[1], i[2], i[3]}, DType::kFloat32)
                          : data_at(Expr(r), i));
    for (const auto& coefficients : form_.data)
      rows.push_back(combination(coefficients, taps, true));
    x.body = choose(i[0], std::move(rows));
    return x;
  }

  Stage data_columns(StageId x) {
    Stage v = stage_of("winograd_data", {{"e", points() * points()}, tiles_, channels_});
    v.unrolled = {{0, points() * points()}};
    const std::vector<Expr> i = iterator_vars(v);
    std::vector<Expr> taps, rows;
    for (int64_t s = 0; s < points(); ++s) {
      taps.push_back(
          load(x, {floor_div(i[0], Expr(points())), Expr(s), i[1], i[2]}, DType::kFloat32));
    }
    for (const auto& coefficients : form_.data)
      rows.push_back(combination(coefficients, taps, true));
    v.body = choose(floor_mod(i[0], Expr(points())), std::move(rows));
    return v;
  }

  Stage product(StageId v, StageId weight) {
    Stage m = stage_of("winograd_product", {{"e", points() * points()}, tiles_, kernels_});
    m.reduce_axes = {channels_};
    m.combiner = Combiner::kSum;
    const std::vector<Expr> i = iterator_vars(m);
    m.body = load(v, {i[0], i[1], i[3]}, DType::kFloat32) *
             load(weight, {i[0], i[3], i[2]}, DType::kFloat32);
    m.layout_free = {weight};
    return m;
  }

  Stage output_rows(StageId m, StageId p) const {
    Stage s = stage_of("winograd_sums",
                       {image_, height_, {"v", points()}, {"q", columns_, width_.open}, kernels_});
    s.unrolled = {{1, tile()}, {2, points()}};
    const std::vector<Expr> i = iterator_vars(s);
    const Expr t = (i[0] * Expr(rows_) + floor_div(i[1], Expr(tile()))) * Expr(columns_) + i[3];
    std::vector<Expr> taps, rows;
    for (int64_t u = 0; u < points(); ++u)
      taps.push_back(gpu_ ? load(p, {Expr(u), i[2], t, i[4]}, DType::kFloat32)
                          : load(m, {Expr(u * points()) + i[2], t, i[4]}, DType::kFloat32));
    for (const auto& coefficients : form_.output)
      rows.push_back(combination(coefficients, taps, false));
    s.body = choose(floor_mod(i[1], Expr(tile())), std::move(rows));
    return s;
  }

  Stage output_columns(StageId s) {
    Stage y = stage_of("", {image_, height_, width_, kernels_});
    y.unrolled = {{1, tile()}, {2, tile()}};
    const std::vector<Expr> i = iterator_vars(y);
    std::vector<Expr> taps, rows;
    for (int64_t v = 0; v < points(); ++v) {
      taps.push_back(
          load(s, {i[0], i[1], Expr(v), floor_div(i[2], Expr(tile())), i[3]}, DType::kFloat32));
    }
    for (const auto& coefficients : form_.output)
      rows.push_back(combination(coefficients, taps, false));
    y.body = choose(floor_mod(i[2], Expr(tile())), std::move(rows));
    return y;
  }

  ComputeDag& dag_;
  const Winograd& form_;
  const bool gpu_;
  int at_;  // the convolution's place
  StageId data_;
  Iterator image_, height_, width_, kernels_;  // axes of the result
  Iterator channels_;
  int64_t rows_, columns_;  // rows and columns of tiles
  Iterator tiles_;
};

// With fewer channels the transforms cost more than the products that they save.
constexpr int64_t kLeastChannels = 8;

bool rewrite(ComputeDag& dag, const Target& target, int m) {
  const bool gpu = target.is_gpu();
  return rewrite_stages(dag, [&](StageId id) {
    const std::optional<Convolution> conv = match_convolution(dag, id);
    if (!conv) return false;
    const Stage& stage = dag[conv->stage];
    // A GPU multiplies narrower numbers faster than it transforms them.
    if (gpu && dag[conv->data].dtype != DType::kFloat32) return false;
    if (std::min(stage.reduce_axes[2].extent, stage.axes[3].extent) < kLeastChannels) return false;
    Rewriter(dag, *conv, m, gpu).run(conv->weight);
    return true;
  });
}

}  // namespace

const Form kWinograd2 = {
    "winograd-2x2",
    [](ComputeDag& dag, const Target& target) { return rewrite(dag, target, 2); },
    true};
const Form kWinograd4 = {
    "winograd-4x4",
    [](ComputeDag& dag, const Target& target) { return rewrite(dag, target, 4); },
    true};

}  // namespace pruner
