// Keys by which a server knows who connects: an Ed25519 key pair as NATS writes it (nkeys). The
// server has the public half, its owner a file with both.
#pragma once

#include <string>

#include "support/result.h"

namespace pruner {

struct NKey {
  std::string public_key;  // "U" and 55 characters
  std::string seed;        // "SU" and 56, which nobody else may see
};

/// A new key, of the operating system's random bytes.
Result<NKey> make_nkey();
/// The key that a seed is of; an error where the text is none, or of a build without fleets.
Result<NKey> nkey_of(const std::string& seed);

}  // namespace pruner
