// The lowering passes, in the order they run. Lowering first makes plain loops, with notes on those
// that a schedule wants otherwise (For in program.h); each pass takes a program and gives one that
// computes the same (passes_test interprets both), its own notes taken away.
#pragma once

#include <functional>
#include <string_view>

#include "lower/program.h"

namespace pruner {

struct LowerPass {
  std::string_view name;
  Program (*run)(Program);
  bool cpu, gpu;  // kinds of target that the pass applies to
};

Program pack_operands(Program program);  // weights lie as they are read
Program whole_tails(Program program);    // vectors are whole where what they read is padded
Program split_guards(Program program);   // tiles inside run without the guards of padding
Program factor_sums(Program program);    // factors common to all terms are taken out
Program double_buffer(Program program);  // a chunk is fetched while the one before it is summed
Program unroll(Program program);         // loops are unrolled as far as the notes go
Program prefetch(Program program);       // operands that stream are prefetched
Program stream_stores(Program program);  // results go past the caches

inline constexpr LowerPass kLowerPasses[] = {
    {"pack_operands", pack_operands, true, false},
    {"whole_tails", whole_tails, true, false},
    {"split_guards", split_guards, true, false},
    {"factor_sums", factor_sums, true, false},
    {"double_buffer", double_buffer, false, true},
    {"unroll", unroll, true, true},
    {"prefetch", prefetch, true, false},
    {"stream_stores", stream_stores, true, false},
};

/// Sees a program after the pass of that name; after "loops", the plain loops.
using AfterLowerPass = std::function<void(std::string_view pass, const Program&)>;

/// Runs the passes of a kind of target on plain loops. An error is a broken rule of loop IR, which
/// only debug builds look for.
Result<Program> run_lower_passes(Program program, bool gpu, const AfterLowerPass& after = {});

}  // namespace pruner
