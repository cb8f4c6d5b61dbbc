#include "fleet/nkey.h"

#if PRUNER_NATS
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#endif

#include <sstream>

#include "support/file.h"

namespace pruner {

#if !PRUNER_NATS

Result<NKey> make_nkey() { return Error("this build has no fleets"); }
Result<NKey> nkey_of(const std::string&) { return Error("this build has no fleets"); }
Result<std::string> sign(const NKey&, std::string_view) {
  return Error("this build has no fleets");
}
bool is_signed_by(std::string_view, std::string_view, std::string_view) { return false; }

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

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

constexpr size_t kSignatureBytes = 64;

const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

Key private_key(const Bytes& seed) {
  return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
}

Result<Bytes> raw_seed(const std::string& seed) {
  const std::optional<std::string> bytes = seed.starts_with("SU") ? decode(seed) : std::nullopt;
  if (!bytes || bytes->size() != kKeyBytes + 2)
    return Error("this is no seed of a user's nkey: it begins with SU and has 58 characters");
  Bytes raw;
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<uint8_t>((*bytes)[i + 2]);
  return raw;
}

Result<NKey> key_of(const Bytes& seed) {
  const Key pair = private_key(seed);
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
  TRY_ASSIGN(const Bytes raw, raw_seed(seed));
  return key_of(raw);
}

Result<std::string> sign(const NKey& key, std::string_view bytes) {
  TRY_ASSIGN(const Bytes raw, raw_seed(key.seed));
  const Key pair = private_key(raw);
  const Context context(EVP_MD_CTX_new());
  std::array<uint8_t, kSignatureBytes> signature;
  size_t size = signature.size();
  if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, pair.get()) != 1 ||
      EVP_DigestSign(context.get(), signature.data(), &size, bytes_of(bytes), bytes.size()) != 1)
    return Error("nothing can be signed with this key");
  return fmt::format("{:02x}", fmt::join(signature, ""));
}

bool is_signed_by(std::string_view public_key, std::string_view bytes, std::string_view signature) {
  const std::optional<std::string> raw = decode(public_key);
  if (!raw || raw->size() != kKeyBytes + 1 || static_cast<uint8_t>(raw->front()) != kUser)
    return false;
  const Key shown(EVP_PKEY_new_raw_public_key(
      EVP_PKEY_ED25519, nullptr, bytes_of(std::string_view(*raw).substr(1)), kKeyBytes));
  std::array<uint8_t, kSignatureBytes> given;
  if (shown == nullptr || signature.size() != 2 * given.size()) return false;
  for (size_t i = 0; i < given.size(); ++i) {
    const char* const digits = signature.data() + 2 * i;
    const auto [end, code] = std::from_chars(digits, digits + 2, given[i], 16);
    if (code != std::errc() || end != digits + 2) return false;
  }
  const Context context(EVP_MD_CTX_new());
  return EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, shown.get()) == 1 &&
         EVP_DigestVerify(
             context.get(), given.data(), given.size(), bytes_of(bytes), bytes.size()) == 1;
}

#endif

Result<NKey> read_nkey(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  Result<NKey> key = nkey_of(text.substr(0, text.find_first_of(" \r\n")));
  if (!key.ok()) return Error(path, ": ", key.error().message());
  return key;
}

Result<std::vector<std::string>> read_public_keys(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  std::vector<std::string> keys;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('U')) keys.push_back(line.substr(0, line.find_first_of(" \r")));
  if (keys.empty()) return Error(path, ": has no public key, as U...");
  return keys;
}

}  // namespace pruner
