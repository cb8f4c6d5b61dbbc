// The forms of the analyzer for GPUs, and the score that each gives a program.
#pragma once

#include <optional>
#include <string_view>

#include "analysis/penalty.h"
#include "analysis/statements.h"
#include "target/target.h"

namespace pruner {

enum class DraftForm : uint8_t {
  kOurs,     // our form, gpu_draft(): bytes, occupancy, shared memory, integer work
  kPaper,    // published form (paper_latency_ms): compute and memory are added
  kRelease,  // released form (release_latency_ms)
};

/// "ours", "paper", "release"
std::string_view draft_form_name(DraftForm form);
std::optional<DraftForm> parse_draft_form(std::string_view name);

/// Returns 1 / the milliseconds that the form predicts, the release's in its own measure; 0 if the
/// form counts nothing. Higher is faster.
double draft_score(const Statements& program,
                   const Gpu& gpu,
                   DraftForm form,
                   Penalties penalties = {});

}  // namespace pruner
