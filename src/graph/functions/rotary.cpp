// RotaryEmbedding, ONNX's and ONNX Runtime's.
#include "graph/functions/rotary.h"

#include <algorithm>

#include "graph/functions/attention.h"

namespace pruner {

Term rotated(Term x, Term cosine, Term sine, bool heads_first, bool interleaved) {
  Body& b = *x.body;
  const int64_t pairs = cosine.extent(-1), width = x.extent(-1);
  if (cosine.shape() != sine.shape() || cosine.rank() != 3 || 2 * pairs > width) {
    b.fail(Error("cosines and sines of ",
                 print_shape(cosine.shape()),
                 " and ",
                 print_shape(sine.shape()),
                 " do not turn data of ",
                 print_shape(x.shape())));
    return x;
  }
  const Term c = b.unsqueeze(b.cast(cosine, x.dtype()), heads_first ? 1 : 2);
  const Term s = b.unsqueeze(b.cast(sine, x.dtype()), heads_first ? 1 : 2);
  const Term turned = 2 * pairs == width ? x : b.slice(x, -1, 0, 2 * pairs);
  std::vector<int64_t> paired = turned.shape();
  paired.back() = pairs;
  const auto half = [&](int64_t i) {
    if (!interleaved) return b.slice(turned, -1, i * pairs, (i + 1) * pairs);
    std::vector<int64_t> shape = paired;
    shape.push_back(2);
    return b.reshape(b.slice(b.reshape(turned, shape), -1, i, i + 1), paired);
  };
  const Term first = half(0), second = half(1);
  const Term real = first * c - second * s, imaginary = first * s + second * c;
  std::vector<Term> parts = {real, imaginary};
  if (interleaved) {
    parts = {b.reshape(b.concat({b.unsqueeze(real, -1), b.unsqueeze(imaginary, -1)}, -1),
                       turned.shape())};
  }
  if (2 * pairs < width) parts.push_back(b.slice(x, -1, 2 * pairs, width));
  return parts.size() == 1 ? parts[0] : b.concat(parts, -1);
}

Term rows_at(Term table, Term places) {
  return table.body->add("Gather", {table, places}, {{"axis", int64_t{0}}});
}

// [batch, heads, positions, width], or [batch, positions, heads * width].
static void rotate(Body& b, Term x, Term cosine, Term sine, int64_t heads) {
  const bool interleaved = b.call().integer("interleaved", 0) != 0;
  if (x.rank() == 4) return b.output(0, rotated(x, cosine, sine, true, interleaved));
  if (x.rank() != 3 || heads < 1 || x.extent(2) % heads != 0) {
    return b.fail(
        Error("num_heads is ", heads, ", which does not part data of ", print_shape(x.shape())));
  }
  const Term parted = b.reshape(x, {x.extent(0), x.extent(1), heads, x.extent(2) / heads});
  b.output(0, b.reshape(rotated(parted, cosine, sine, false, interleaved), x.shape()));
}

static void rotary_embedding(Body& b) {
  Term cosine = b.input(1), sine = b.input(2);
  if (b.has(3)) {
    cosine = rows_at(cosine, b.input(3));
    sine = rows_at(sine, b.input(3));
  }
  const int64_t dim = b.call().integer("rotary_embedding_dim", 0);
  if (dim != 0 && dim != 2 * cosine.extent(-1)) {
    return b.fail(
        Error("rotary_embedding_dim is ", dim, ", cosines are of ", 2 * cosine.extent(-1)));
  }
  rotate(b, b.input(0), cosine, sine, b.call().integer("num_heads", 0));
}

// ONNX Runtime's, which reads no scale, either: one position is the first one's, and the number of
// heads may follow from the width of the tables.
static void rotary_embedding_ort(Body& b) {
  const OpCall& call = b.call();
  if (call.integer("is_packed_batching", 0) != 0)
    return b.fail(Error("is_packed_batching is not supported"));
  const Term x = b.input(0);
  Term places = b.cast(b.input(1), DType::kInt64), cosine = b.input(2), sine = b.input(3);
  if (places.rank() < 2) {
    const int64_t count = x.extent(-2);
    places = b.unsqueeze(positions(b, count) + places, 0);
  }
  const int64_t dim = call.integer("rotary_embedding_dim", 0);
  int64_t heads = call.integer("num_heads", 0);
  if (heads == 0 && dim == 0) heads = x.extent(-1) / std::max<int64_t>(2 * cosine.extent(-1), 1);
  rotate(b, x, rows_at(cosine, places), rows_at(sine, places), heads);
}

static constexpr Function kRotaryFunctions[] = {
    {"RotaryEmbedding", 3, 4, "interleaved:i num_heads:i rotary_embedding_dim:i", rotary_embedding},
    {"com.microsoft::RotaryEmbedding",
     4,
     4,
     "interleaved:i is_packed_batching:i num_heads:i rotary_embedding_dim:i scale:f",
     rotary_embedding_ort},
};

std::span<const Function> rotary_functions() { return kRotaryFunctions; }

}  // namespace pruner
