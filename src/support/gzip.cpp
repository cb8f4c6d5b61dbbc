#include "support/gzip.h"

#include <zlib.h>

#include "support/file.h"

namespace pruner {
namespace {

constexpr int kGzipOnly = 15 + 16;  // zlib's window bits for this format
constexpr size_t kMaxContent = size_t{1} << 34;

// Unpacks the members of a gzip file one after the other.
UnpackedFile unpack(std::string& packed) {
  UnpackedFile file;
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) return {"", true};
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  file.content.resize(packed.size() * 8 + 4096);
  size_t made = 0;
  int status = Z_OK;
  while (status == Z_OK && made < kMaxContent) {
    if (made == file.content.size()) file.content.resize(made * 2);
    stream.next_out = reinterpret_cast<Bytef*>(file.content.data() + made);
    stream.avail_out = static_cast<uInt>(file.content.size() - made);
    status = inflate(&stream, Z_NO_FLUSH);
    made = file.content.size() - stream.avail_out;
    if (status == Z_STREAM_END && stream.avail_in > 0) status = inflateReset(&stream);
  }
  inflateEnd(&stream);
  file.damaged = status != Z_STREAM_END;
  file.content.resize(made);
  return file;
}

}  // namespace

Result<UnpackedFile> read_unpacked(const std::string& path) {
  TRY_ASSIGN(std::string content, read_file(path));
  if (!content.starts_with("\x1f\x8b")) return UnpackedFile{std::move(content), false};
  if (content.size() >= (size_t{1} << 31)) return Error(path, ": over 2 GiB, packed");
  return unpack(content);
}

}  // namespace pruner
