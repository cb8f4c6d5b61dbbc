// Keys by which a server knows who connects: an Ed25519 key pair as NATS writes it (nkeys). The
// server has the public half, its owner a file with both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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
/// nkey_of() the first word of a file.
Result<NKey> read_nkey(const std::string& path);

/// The public keys in a file, one a line; errors: there is none.
Result<std::vector<std::string>> read_public_keys(const std::string& path);

/// The signature of some bytes by the owner of the key, as 128 hex digits.
Result<std::string> sign(const NKey& key, std::string_view bytes);
/// Whether a signature of these bytes is by the owner of that public key.
bool is_signed_by(std::string_view public_key, std::string_view bytes, std::string_view signature);

}  // namespace pruner
