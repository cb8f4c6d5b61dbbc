// Greedy decoding of a language model, from C++. Compile one, build and use:
//   pruner compile --network gpt2 --cache-len 1024 --decode 1 -o gpt2.so
//   c++ -std=c++17 -O2 -Iinclude examples/decode.cpp -ldl -o decode
//   ./decode gpt2.so 20 464 3290 318        (20 tokens after these three)
// Its phases take input_ids [1, rows] and past_length [1] and give logits [1, rows, vocabulary].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "pruner/module.hpp"

namespace {

class Decoder {
 public:
  explicit Decoder(pruner::Module& module) : module_(module) {}

  /// Runs a phase over `tokens` behind the `past` first ones, filled up with zeros to its rows: what
  /// these leave in the cache is hidden, and overwritten later. The likeliest next token; -1: see
  /// the module's error.
  int64_t next(int phase, const int64_t* tokens, int64_t count, int64_t past) {
    const PrunerPhase& spec = module_.phase(phase);
    std::vector<int64_t> ids(tokens, tokens + count);
    ids.resize(static_cast<size_t>(rows(phase)));
    const int64_t vocabulary = spec.outputs[0].shape[2];
    logits_.resize(ids.size() * static_cast<size_t>(vocabulary));
    const void* inputs[] = {ids.data(), &past};
    void* outputs[] = {logits_.data()};
    if (!module_.run_phase(phase, inputs, outputs)) return -1;
    const float* last = logits_.data() + (count - 1) * vocabulary;
    return std::max_element(last, last + vocabulary) - last;
  }

  int64_t rows(int phase) const { return module_.phase(phase).inputs[0].shape[1]; }

 private:
  pruner::Module& module_;
  std::vector<float> logits_;
};

/// Whether a tensor has this type and so many dimensions.
bool is(const PrunerTensorSpec& spec, int dtype, int32_t rank) {
  return spec.dtype == dtype && spec.rank == rank;
}

/// Whether a phase takes and gives what Decoder::next() passes to it.
bool decodes(const PrunerPhase& phase) {
  return phase.num_inputs == 2 && is(phase.inputs[0], PRUNER_INT64, 2) &&
         is(phase.inputs[1], PRUNER_INT64, 1) && phase.num_outputs == 1 &&
         is(phase.outputs[0], PRUNER_FLOAT32, 3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: %s MODULE.so COUNT TOKEN...\n", argv[0]), 2;
  std::string error;
  std::optional<pruner::Module> module = pruner::Module::load(argv[1], 0, &error);
  if (!module) return std::fprintf(stderr, "%s\n", error.c_str()), 1;
  const int prefill = module->find_phase("prefill"), decode = module->find_phase("decode");
  if (prefill < 0 || decode < 0)
    return std::fprintf(stderr, "%s: compile it with --decode\n", argv[1]), 1;
  const bool fits = decodes(module->phase(prefill)) && decodes(module->phase(decode)) &&
                    module->num_states() > 0 && module->state(0).rank > 2;
  if (!fits)
    return std::fprintf(stderr, "%s: its phases are not those of a built-in decoder\n", argv[1]), 1;

  std::vector<int64_t> tokens;
  for (int i = 3; i < argc; ++i) tokens.push_back(std::atoll(argv[i]));
  const size_t prompt = tokens.size(), all = prompt + static_cast<size_t>(std::atoll(argv[2]));
  const int64_t capacity = module->state(0).shape[2];
  if (static_cast<int64_t>(all) > capacity + 1)
    return std::fprintf(stderr, "%zu tokens, the cache has room for %lld\n", all,
                        static_cast<long long>(capacity)), 1;
  Decoder decoder(*module);
  const auto begin = std::chrono::steady_clock::now();
  auto prefilled = begin;
  for (size_t seen = 0; tokens.size() < all;) {
    // As many rows as the cache has room for at once, else one by one.
    const int64_t rows = decoder.rows(prefill), left = static_cast<int64_t>(prompt - seen);
    const bool whole = seen < prompt && static_cast<int64_t>(seen) + rows <= capacity;
    const int64_t count = whole ? std::min(rows, left) : 1;
    const int64_t token = decoder.next(
        whole ? prefill : decode, tokens.data() + seen, count, static_cast<int64_t>(seen));
    if (token < 0) return std::fprintf(stderr, "%s\n", module->error()), 1;
    seen += static_cast<size_t>(count);
    if (seen == prompt) prefilled = std::chrono::steady_clock::now();
    if (seen >= prompt) tokens.push_back(token);
  }
  const auto end = std::chrono::steady_clock::now();
  for (size_t i = prompt; i < all; ++i)
    std::printf("%lld%c", static_cast<long long>(tokens[i]), i + 1 < all ? ' ' : '\n');
  const auto ms = [](auto from, auto to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
  };
  std::fprintf(stderr,
               "prompt %.1f ms, then %.2f ms a token\n",
               ms(begin, prefilled),
               ms(prefilled, end) / std::max<double>(1, static_cast<double>(all - prompt) - 1));
}
