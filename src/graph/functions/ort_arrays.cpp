// Operators of ONNX Runtime on arrays: forms of ONNX's before ONNX had them, and others.
#include <algorithm>

#include "graph/functions/body.h"

namespace pruner {

static void trilu(Body& b) {
  std::vector<Term> inputs = {b.input(0)};
  if (b.has(1)) inputs.push_back(b.input(1));
  b.output(0, b.add("Trilu", inputs, {{"upper", b.call().integer("upper", 1)}}));
}

// The pads may be a row of a matrix, the value a list of one that comes at run time.
static void pad(Body& b) {
  const std::string mode = b.call().text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect")
    return b.fail(Error("mode is \"", mode, "\", expected constant, edge or reflect"));
  const std::optional<Tensor>& given = b.input(1).constant();
  if (!given) return b.fail(computed_at_run_time(b.call().graph, b.call().node.inputs[1], "pads"));
  const Term x = b.input(0), pads = b.constant(given->reshaped({given->num_elements()}));
  const Attributes attributes = {{"mode", mode}};
  std::vector<Term> inputs = {x, pads};
  const bool has_value = b.has(2) && mode == "constant";
  const bool is_known = has_value && b.input(2).constant();
  if (is_known) inputs.push_back(b.constant(b.input(2).constant()->reshaped({})));
  const Term padded = b.add("Pad", inputs, attributes);
  if (!has_value || is_known) return b.output(0, padded);
  Tensor all(DType::kInt32, x.shape());
  for (int64_t i = 0; i < all.num_elements(); ++i) all.set_int(i, 1);
  const Term inside = b.add("Pad", {b.constant(std::move(all)), pads}, attributes);
  const Term is_inside = b.add("Greater", {inside, b.scalar(0, DType::kInt32)});
  b.output(0, b.add("Where", {is_inside, padded, b.reshape(b.input(2), {})}));
}

// The axis is one of the result.
static void expand_dims(Body& b) {
  const Result<std::vector<int64_t>> axis = b.call().constant_integers(1, "axis");
  if (!axis.ok()) return b.fail(axis.error());
  if (axis->size() != 1) return b.fail(Error("axis has ", axis->size(), " elements, expected 1"));
  b.output(0, b.unsqueeze(b.input(0), axis->front()));
}

// Unique of values in the order that they first have: without ONNX's second output.
static void unique(Body& b) {
  if (b.call().rank() != 1)
    return b.fail(Error("data of ", print_shape(b.call().shape(0)), " are not of one dimension"));
  const std::vector<Term> found = b.add_many("Unique", {b.input(0)}, 4, {{"sorted", int64_t{0}}});
  b.output(0, found[0]);
  b.output(1, found[2]);
  b.output(2, found[3]);
}

// The distance of each row of A to each row of B. Differences are squared, not products added up:
// rows that lie close keep their distance.
static void cdist(Body& b) {
  const OpCall& call = b.call();
  const std::string metric = call.text("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean")
    return b.fail(Error("metric is \"", metric, "\", expected euclidean or sqeuclidean"));
  if (call.rank(0) != 2 || call.rank(1) != 2 || call.shape(0)[1] != call.shape(1)[1])
    return b.fail(Error("A is ",
                        print_shape(call.shape(0)),
                        " and B ",
                        print_shape(call.shape(1)),
                        ", expected matrices with rows of one length"));
  const Term apart = b.unsqueeze(b.input(0), 1) - b.unsqueeze(b.input(1), 0);
  const Term squares =
      b.reshape(b.reduce("ReduceSumSquare", apart, {{2}}), {call.shape(0)[0], call.shape(1)[0]});
  b.output(0, metric == "euclidean" ? b.add("Sqrt", {squares}) : squares);
}

// Each token that would repeat n tokens of its text gets a score of -infinity: the one behind each
// place whose tokens are the last n - 1.
static void ngram_repeat_block(Body& b) {
  const OpCall& call = b.call();
  const int64_t n = call.integer("ngram_size", 0);
  if (n < 1) return b.fail(Error("ngram_size is ", n, ", expected 1 or more"));
  if (call.rank(0) != 2 || call.rank(1) != 2 || call.shape(0)[0] != call.shape(1)[0])
    return b.fail(Error("input_ids are ",
                        print_shape(call.shape(0)),
                        " and scores ",
                        print_shape(call.shape(1)),
                        ", expected matrices with as many rows"));
  const Term ids = b.input(0), scores = b.input(1);
  const int64_t length = ids.extent(1), places = length - n + 1;
  if (places < 1) return b.output(0, scores);
  Term next = b.slice(ids, 1, n - 1, length), repeats;
  for (int64_t i = 0; i + 1 < n; ++i) {
    const Term last = b.slice(ids, 1, places + i, places + i + 1);
    const Term same = b.add("Equal", {b.slice(ids, 1, i, i + places), last});
    repeats = repeats.valid() ? b.add("And", {repeats, same}) : same;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const Term least = b.scalar(-infinity, scores.dtype()), most = b.scalar(infinity, scores.dtype());
  Term bounds = b.add("Expand", {least, b.integers(next.shape())});
  if (repeats.valid()) {
    bounds = b.add("Where", {repeats, least, most});
    next = b.add("Where", {repeats, next, b.scalar(0, next.dtype())});
  }
  b.output(0,
           b.add("ScatterElements",
                 {scores, next, bounds},
                 {{"axis", int64_t{1}}, {"reduction", std::string("min")}}));
}

static constexpr Function kOrtArrayFunctions[] = {
    {"com.microsoft::CDist", 2, 2, "metric:s", cdist},
    {"com.microsoft::ExpandDims", 2, 2, "", expand_dims},
    {"com.microsoft::NGramRepeatBlock", 2, 2, "ngram_size:i", ngram_repeat_block},
    {"com.microsoft::Pad", 2, 3, "mode:s", pad},
    {"com.microsoft::Trilu", 1, 2, "upper:i", trilu},
    {"com.microsoft::Unique", 1, 1, "", unique},
};

std::span<const Function> ort_array_functions() { return kOrtArrayFunctions; }

}  // namespace pruner
