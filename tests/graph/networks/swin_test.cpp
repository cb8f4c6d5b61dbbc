#include "graph/networks/swin.h"

#include "graph/small_graph.h"

namespace pruner {
namespace {

constexpr int64_t kWindow = 7, kShift = 3, kHeads = 2, kHead = 3, kChannels = kHeads * kHead;

// A pixel of an image that is filled up to whole windows, and where a shift moves it.
struct Pixel {
  std::vector<double> query, key, value;
  int64_t row, column;             // after the shift
  bool wraps_rows, wraps_columns;  // came from the border before it
};

// Attention pixel by pixel: to those of its window that were neighbours before the shift.
class Reference {
 public:
  Reference(const Graph& graph, bool shifted) : shifted_(shifted) {
    for (const Value& value : graph.values)
      if (value.constant) weights_[value.name] = &*value.constant;
  }

  Tensor attended(const Tensor& image) const {
    const int64_t height = image.shape()[1], width = image.shape()[2];
    const std::vector<Pixel> pixels = pixels_of(image);
    const int64_t stride = filled(width);
    Tensor out(DType::kFloat32, image.shape());
    for (int64_t i = 0; i < height * width; ++i) {
      const Pixel& to = pixels[i / width * stride + i % width];
      const std::vector<double> y = linear("output", mixed(to, pixels));
      for (int64_t c = 0; c < kChannels; ++c) out.set(i * kChannels + c, y[c]);
    }
    return out;
  }

 private:
  static int64_t filled(int64_t extent) { return (extent + kWindow - 1) / kWindow * kWindow; }

  std::vector<double> linear(const std::string& name, const std::vector<double>& x) const {
    const Tensor &w = *weights_.at("attn." + name + ".weight"),
                 &bias = *weights_.at("attn." + name + ".bias");
    std::vector<double> y;
    for (int64_t j = 0; j < kChannels; ++j) {
      y.push_back(bias.get(j));
      for (int64_t i = 0; i < kChannels; ++i) y.back() += x[i] * w.get(i * kChannels + j);
    }
    return y;
  }

  std::vector<Pixel> pixels_of(const Tensor& image) const {
    const int64_t height = image.shape()[1], width = image.shape()[2];
    const int64_t rows = filled(height), columns = filled(width), shift = shifted_ ? kShift : 0;
    std::vector<Pixel> pixels;
    for (int64_t i = 0; i < rows * columns; ++i) {
      const int64_t row = i / columns, column = i % columns;
      std::vector<double> x(kChannels, 0.0);
      for (int64_t c = 0; c < kChannels && row < height && column < width; ++c)
        x[c] = image.get((row * width + column) * kChannels + c);
      pixels.push_back({linear("query", x),
                        linear("key", x),
                        linear("value", x),
                        (row - shift + rows) % rows,
                        (column - shift + columns) % columns,
                        row < shift,
                        column < shift});
    }
    return pixels;
  }

  std::vector<double> mixed(const Pixel& to, const std::vector<Pixel>& pixels) const {
    std::vector<double> y(kChannels, 0.0);
    for (int64_t head = 0; head < kHeads; ++head) {
      double sum = 0;
      std::vector<double> weighed(kHead, 0.0);
      for (const Pixel& from : pixels) {
        if (from.row / kWindow != to.row / kWindow ||
            from.column / kWindow != to.column / kWindow || from.wraps_rows != to.wraps_rows ||
            from.wraps_columns != to.wraps_columns)
          continue;
        double score = 0;
        for (int64_t i = head * kHead; i < (head + 1) * kHead; ++i)
          score += to.query[i] * from.key[i] / std::sqrt(kHead);
        const int64_t distance = (to.row - from.row + kWindow - 1) * (2 * kWindow - 1) + to.column -
                                 from.column + kWindow - 1;
        score += weights_.at("attn.relative_position_bias.table")->get(distance * kHeads + head);
        sum += std::exp(score);
        for (int64_t i = 0; i < kHead; ++i)
          weighed[i] += std::exp(score) * from.value[head * kHead + i];
      }
      for (int64_t i = 0; i < kHead; ++i) y[head * kHead + i] = weighed[i] / sum;
    }
    return y;
  }

  bool shifted_;
  std::map<std::string, const Tensor*> weights_;
};

void expect_right(int64_t height, int64_t width, bool shifted, bool shifts) {
  NetworkBuilder b("windows");
  const std::vector<int64_t> shape = {1, height, width, kChannels};
  const ValueId x = b.input("x", shape, DType::kFloat32);
  const Graph graph = b.finish({{window_attention(b, "attn", x, kHeads, shifted), "y"}});
  const Tensor image = waves(shape);
  expect_near(run_graph(graph, {image})[0], Reference(graph, shifts).attended(image), 1e-4);
}

TEST(Swin, AttendsInsideOfWindows) { expect_right(14, 10, false, false); }
TEST(Swin, ShiftsWindowsAroundTheBorder) { expect_right(14, 14, true, true); }
TEST(Swin, FillsWindowsWithZeros) { expect_right(10, 17, true, true); }
TEST(Swin, ShiftsNoSingleWindow) { expect_right(7, 7, true, false); }

}  // namespace
}  // namespace pruner
