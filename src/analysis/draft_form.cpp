#include "analysis/draft_form.h"

#include "analysis/gpu_draft.h"
#include "analysis/symbols.h"

namespace pruner {

std::optional<DraftForm> parse_draft_form(std::string_view name) {
  if (name == "ours") return DraftForm::kOurs;
  if (name == "paper") return DraftForm::kPaper;
  if (name == "release") return DraftForm::kRelease;
  return std::nullopt;
}

double draft_score(const Statements& program, const Gpu& gpu, DraftForm form, Penalties penalties) {
  double latency_ms = 0;
  switch (form) {
    case DraftForm::kOurs:
      latency_ms = gpu_draft(program, gpu, {}, penalties).latency_s * 1e3;
      break;
    case DraftForm::kPaper: latency_ms = paper_latency_ms(program, gpu, penalties); break;
    case DraftForm::kRelease:
      latency_ms = release_latency_ms(symbols(program), gpu.psa, penalties);
      break;
  }
  return latency_ms > 0 ? 1 / latency_ms : 0;
}

}  // namespace pruner
