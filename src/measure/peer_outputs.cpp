#include "measure/peer_outputs.h"

#include <cstring>

#include "support/ceil_div.h"

namespace pruner {

static constexpr int64_t kAlignment = 64;

std::vector<PeerOutputs::Place> PeerOutputs::lay_out(std::span<const ExpectedOutput> outputs) {
  std::vector<Place> places;
  int64_t end = kAlignment;  // end of the state
  for (const ExpectedOutput& output : outputs) {
    places.push_back({end, output.bytes()});
    end += ceil_div(output.bytes(), kAlignment) * kAlignment;
  }
  places.push_back({end, 0});
  return places;
}

PeerOutputs::PeerOutputs(std::span<const ExpectedOutput> outputs)
    : places_(lay_out(outputs)), memory_(static_cast<size_t>(places_.back().begin)) {
  static_assert(sizeof(State) <= kAlignment);
  if (mapped()) new (memory_.data()) State;
}

void PeerOutputs::hold(std::span<void* const> outputs, double form_error) {
  state()->held = false;
  for (size_t i = 0; i < outputs.size(); ++i)
    std::memcpy(
        memory_.data() + places_[i].begin, outputs[i], static_cast<size_t>(places_[i].bytes));
  state()->form_error = form_error;
  state()->held = true;
}

}  // namespace pruner
