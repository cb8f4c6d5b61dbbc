// Content hashes that stay the same over runs and machines. The door to xxHash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pruner {

uint64_t hash64(std::string_view bytes);
/// 32 lower-case hex digits of a 128-bit hash.
std::string hash_hex(std::string_view bytes);

}  // namespace pruner
