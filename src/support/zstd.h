// The door to zstd: pieces that resemble one another, packed one by one, each by what came before
// it. Unpacked in the same order, every one; a piece that is left out damages those behind it.
#pragma once

#include <string>
#include <string_view>

#include "support/result.h"

namespace pruner {

/// The bytes of earlier pieces that both sides remember: the last two MiB or so.
class PieceHistory {
 public:
  std::string_view bytes() const { return bytes_; }
  void add(std::string_view piece);

 private:
  std::string bytes_;
};

class PiecePacker {
 public:
  Result<std::string> pack(std::string_view piece);

 private:
  PieceHistory history_;
};

class PieceUnpacker {
 public:
  /// The piece of that many bytes; errors: it is damaged, or of another size.
  Result<std::string> unpack(std::string_view packed, size_t bytes);

 private:
  PieceHistory history_;
};

}  // namespace pruner
