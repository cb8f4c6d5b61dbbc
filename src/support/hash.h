// Content hashes that stay the same over runs and machines. The door to xxHash.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pruner {

uint64_t hash64(std::string_view bytes);
/// hash64() of bytes that come in parts.
class Hasher64 {
 public:
  Hasher64();
  void add(std::string_view bytes);
  uint64_t hash() const;

 private:
  struct State;
  struct Free {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Free> state_;
};
/// 32 lower-case hex digits of a 128-bit hash.
std::string hash_hex(std::string_view bytes);

}  // namespace pruner
