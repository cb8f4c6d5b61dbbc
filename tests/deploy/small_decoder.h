// A decoder of one layer, which keeps keys and values from run to run, and what its tests make.
#pragma once

#include <gtest/gtest.h>

#include "deploy/module.h"
#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

inline constexpr int64_t kWidth = 32, kHeads = 4, kWords = 50, kCache = 24;

/// Returns a decoder that takes `rows` words a run.
inline Graph decoder(int64_t rows, int64_t batch = 1, int64_t cached = kCache) {
  NetworkOptions options;
  options.batch_size = batch;
  options.cache_length = cached;
  NetworkBuilder b("decoder", options);
  const ValueId ids = b.input("input_ids", {batch, rows}, DType::kInt64);
  const CachePlace cache = cache_place(b, options);
  const ValueId mask = causal_mask(b, cache, rows);
  const ValueId words = b.weight("words", {kWords, kWidth}, kWidth, 1);
  const ValueId x = b.node("Gather", {words, ids}, {{"axis", int64_t{0}}});
  const Attention self{.query = x,
                       .key = x,
                       .value = x,
                       .width = kWidth,
                       .heads = kHeads,
                       .mask = mask,
                       .cache = cache,
                       .cache_name = "0"};
  const ValueId y = b.node("Add", {attention(b, "attention", self), x});
  return b.finish({{linear(b, "head", y, kWords), "logits"}});
}

/// Returns a phase of a network that is cut for a target.
inline Phase phase(std::string name, const Graph& graph, const Target& target) {
  Result<Partition> cut = partition(graph, target);
  EXPECT_TRUE(cut.ok()) << cut.error().message();
  return {std::move(name), *std::move(cut)};
}

}  // namespace pruner
