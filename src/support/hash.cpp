#include "support/hash.h"

#include <xxhash.h>

#include <cstdio>

namespace pruner {

uint64_t hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct Hasher64::State {
  XXH3_state_t* xxh3;
};

void Hasher64::Free::operator()(State* state) const {
  XXH3_freeState(state->xxh3);
  delete state;
}

Hasher64::Hasher64() : state_(new State{XXH3_createState()}) { XXH3_64bits_reset(state_->xxh3); }

void Hasher64::add(std::string_view bytes) {
  XXH3_64bits_update(state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Hasher64::hash() const { return XXH3_64bits_digest(state_->xxh3); }

std::string hash_hex(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  char text[33];
  std::snprintf(text,
                sizeof text,
                "%016llx%016llx",
                static_cast<unsigned long long>(h.high64),
                static_cast<unsigned long long>(h.low64));
  return text;
}

}  // namespace pruner
