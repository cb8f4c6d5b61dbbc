// ONNX messages in protobuf's wire format (https://protobuf.dev/programming-guides/encoding),
// written by hand: the library is loaded into programs that have other versions of protobuf.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace pruner::ort {

/// A message while it grows. Field numbers are those of onnx.proto.
class Message {
 public:
  Message& number(int field, int64_t value) {
    tag(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    tag(field, 5);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
    return *this;
  }
  Message& block(int field, std::string_view bytes) {
    tag(field, 2);
    varint(bytes.size());
    bytes_ += bytes;
    return *this;
  }
  Message& message(int field, const Message& inner) { return block(field, inner.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, int type) { varint(static_cast<uint64_t>(field << 3 | type)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace pruner::ort
