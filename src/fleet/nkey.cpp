#include "fleet/nkey.h"

#if PRUNER_NATS
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#endif

namespace pruner {

#if !PRUNER_NATS

Result<NKey> make_nkey() { return Error("this build has no fleets"); }
Result<NKey> nkey_of(const std::string&) { return Error("this build has no fleets"); }

#else

namespace {

constexpr size_t kKeyBytes = 32;
constexpr uint8_t kUser = 20 << 3, kSeed = 18 << 3;  // the first letters: U and S
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

using Bytes = std::array<uint8_t, kKeyBytes>;

// CRC-16 of XMODEM.
uint16_t checksum(std::string_view bytes) {
  uint16_t sum = 0;
  for (const char byte : bytes) {
    sum = static_cast<uint16_t>(sum ^ (static_cast<uint8_t>(byte) << 8));
    for (int bit = 0; bit < 8; ++bit)
      sum = static_cast<uint16_t>((sum << 1) ^ ((sum & 0x8000) != 0 ? 0x1021 : 0));
  }
  return sum;
}

// Base 32 without padding, the checksum behind the bytes.
std::string encode(std::string bytes) {
  const uint16_t sum = checksum(bytes);
  bytes += static_cast<char>(sum & 0xff);
  bytes += static_cast<char>(sum >> 8);
  std::string text;
  uint32_t held = 0;
  int bits = 0;
  for (const char byte : bytes) {
    held = held << 8 | static_cast<uint8_t>(byte);
    for (bits += 8; bits >= 5; bits -= 5) text += kAlphabet[held >> (bits - 5) & 31];
  }
  if (bits > 0) text += kAlphabet[held << (5 - bits) & 31];
  return text;
}

std::optional<std::string> decode(std::string_view text) {
  std::string bytes;
  uint32_t held = 0;
  int bits = 0;
  for (const char letter : text) {
    const size_t value = kAlphabet.find(letter);
    if (value == std::string_view::npos) return std::nullopt;
    held = held << 5 | static_cast<uint32_t>(value);
    bits += 5;
    if (bits < 8) continue;
    bytes += static_cast<char>(held >> (bits - 8) & 0xff);
    bits -= 8;
  }
  if (bytes.size() < 2 || (held & ((1U << bits) - 1)) != 0) return std::nullopt;
  const std::string_view whole = std::string_view(bytes).substr(0, bytes.size() - 2);
  const uint16_t sum = checksum(whole);
  const bool same = static_cast<uint8_t>(bytes[bytes.size() - 2]) == (sum & 0xff) &&
                    static_cast<uint8_t>(bytes.back()) == sum >> 8;
  if (!same) return std::nullopt;
  return std::string(whole);
}

Result<NKey> key_of(const Bytes& seed) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> pair(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()),
      EVP_PKEY_free);
  Bytes shown;
  size_t size = shown.size();
  if (pair == nullptr || EVP_PKEY_get_raw_public_key(pair.get(), shown.data(), &size) != 1)
    return Error("no Ed25519 key can be made of it");
  const auto text = [](const Bytes& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  // A seed's first two bytes say that it is one, and of whom.
  const std::string head = {static_cast<char>(kSeed | kUser >> 5),
                            static_cast<char>((kUser & 31) << 3)};
  return NKey{encode(std::string(1, static_cast<char>(kUser)) + text(shown)),
              encode(head + text(seed))};
}

}  // namespace

Result<NKey> make_nkey() {
  Bytes seed;
  if (RAND_bytes(seed.data(), static_cast<int>(seed.size())) != 1)
    return Error("the operating system has no random bytes");
  return key_of(seed);
}

Result<NKey> nkey_of(const std::string& seed) {
  const std::optional<std::string> bytes = seed.starts_with("SU") ? decode(seed) : std::nullopt;
  if (!bytes || bytes->size() != kKeyBytes + 2)
    return Error("this is no seed of a user's nkey: it begins with SU and has 58 characters");
  Bytes raw;
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<uint8_t>((*bytes)[i + 2]);
  return key_of(raw);
}

#endif

}  // namespace pruner
