#include "support/zstd.h"

#include <zstd.h>

#include <memory>

#include "support/memory.h"

namespace pruner {

namespace {

constexpr int kLevel = 9;       // 19 takes 20 times as long for a tenth fewer bytes
constexpr int kWindowLog = 23;  // 8 MiB: it reaches over a piece and the history behind it
constexpr size_t kHistoryBytes = size_t{2} << 20;

struct Free {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

// Trimmed at twice the limit only, because each trim copies two MiB.
void PieceHistory::add(std::string_view piece) {
  bytes_.append(piece);
  if (bytes_.size() > 2 * kHistoryBytes) bytes_.erase(0, bytes_.size() - kHistoryBytes);
}

Result<std::string> PiecePacker::pack(std::string_view piece) {
  const std::unique_ptr<ZSTD_CCtx, Free> context(ZSTD_createCCtx());
  if (context == nullptr) return Error("no memory for zstd");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, kWindowLog);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_enableLongDistanceMatching, 1);
  const std::string_view before = history_.bytes();
  ZSTD_CCtx_refPrefix(context.get(), before.data(), before.size());
  std::string packed(ZSTD_compressBound(piece.size()), '\0');
  const size_t size =
      ZSTD_compress2(context.get(), packed.data(), packed.size(), piece.data(), piece.size());
  if (ZSTD_isError(size) != 0) return Error("zstd: ", ZSTD_getErrorName(size));
  packed.resize(size);
  history_.add(piece);
  return packed;
}

Result<std::string> PieceUnpacker::unpack(std::string_view packed, size_t bytes) {
  const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (context == nullptr) return Error("no memory for zstd");
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != bytes)
    return Error("a packed piece is not of ", bytes, " bytes");
  TRY(check_unpacked(static_cast<double>(packed.size()), static_cast<double>(bytes)));
  const std::string_view before = history_.bytes();
  ZSTD_DCtx_refPrefix(context.get(), before.data(), before.size());
  std::string piece(bytes, '\0');
  const size_t size =
      ZSTD_decompressDCtx(context.get(), piece.data(), piece.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0) return Error("zstd: ", ZSTD_getErrorName(size));
  history_.add(piece);
  return piece;
}

}  // namespace pruner
