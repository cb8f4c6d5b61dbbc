#include "analysis/draft_form.h"

#include <algorithm>

#include "analysis/gpu_draft.h"
#include "analysis/symbols.h"

namespace pruner {

static constexpr std::string_view kNames[] = {"ours", "paper", "release"};

std::string_view draft_form_name(DraftForm form) { return kNames[static_cast<size_t>(form)]; }

std::optional<DraftForm> parse_draft_form(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return std::nullopt;
  return DraftForm(found - std::begin(kNames));
}

double draft_score(const Statements& program, const Gpu& gpu, DraftForm form, Penalties penalties) {
  const double latency_ms = form == DraftForm::kPaper ? paper_latency_ms(program, gpu, penalties)
                            : form == DraftForm::kRelease
                                ? release_latency_ms(symbols(program), gpu.psa, penalties)
                                : gpu_draft(program, gpu, {}, penalties).latency_s * 1e3;
  return latency_ms > 0 ? 1 / latency_ms : 0;
}

}  // namespace pruner
