#include "support/gzip.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/file.h"
#include "support/memory.h"
#include "support/output_file.h"

namespace pruner {
namespace {

constexpr int kGzipOnly = 15 + 16;  // zlib's window bits for this format
constexpr size_t kPiece = size_t{1} << 18;

}  // namespace

struct UnpackedReader::State {
  std::ifstream in;
  bool packed = false, damaged = false, done = false;
  bool in_member = false;  // inside a member of a packed file, between head and sums
  z_stream stream{};
  std::array<char, kPiece> read, made;

  ~State() {
    if (packed) inflateEnd(&stream);
  }

  void fill() {
    if (stream.avail_in > 0 || !in) return;
    in.read(read.data(), kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(read.data());
    stream.avail_in = static_cast<uInt>(in.gcount());
  }

  std::string_view plain() {
    fill();
    return {read.data(), std::exchange(stream.avail_in, 0)};
  }

  // Members of a packed file follow one another.
  std::string_view unpacked() {
    size_t size = 0;
    while (size == 0 && !done) {
      fill();
      if (stream.avail_in == 0) {
        damaged = in_member;
        done = true;
        break;
      }
      if (!in_member && inflateReset(&stream) != Z_OK) done = damaged = true;
      in_member = true;
      stream.next_out = reinterpret_cast<Bytef*>(made.data());
      stream.avail_out = kPiece;
      const int status = inflate(&stream, Z_NO_FLUSH);
      size = kPiece - stream.avail_out;
      if (status == Z_STREAM_END) in_member = false;
      if (status != Z_OK && status != Z_STREAM_END) done = damaged = true;
    }
    return {made.data(), size};
  }
};

UnpackedReader::UnpackedReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
UnpackedReader::UnpackedReader(UnpackedReader&&) noexcept = default;
UnpackedReader& UnpackedReader::operator=(UnpackedReader&&) noexcept = default;
UnpackedReader::~UnpackedReader() = default;

Result<UnpackedReader> UnpackedReader::open(const std::string& path) {
  TRY(check_readable(path));
  auto state = std::make_unique<State>();
  state->in.open(path, std::ios::binary);
  if (!state->in) return Error(path, ": cannot be read: ", std::strerror(errno));
  state->fill();
  const std::string_view begin(state->read.data(), state->stream.avail_in);
  if (begin.starts_with("\x1f\x8b")) {
    if (inflateInit2(&state->stream, kGzipOnly) != Z_OK) return Error(path, ": no memory for zlib");
    state->packed = true;
  }
  return UnpackedReader(std::move(state));
}

std::string_view UnpackedReader::next() {
  return state_->packed ? state_->unpacked() : state_->plain();
}

bool UnpackedReader::damaged() const { return state_->damaged; }

Result<UnpackedFile> read_unpacked(const std::string& path) {
  TRY_ASSIGN(UnpackedReader reader, UnpackedReader::open(path));
  std::error_code unknown;
  const auto packed = static_cast<double>(std::filesystem::file_size(path, unknown));
  UnpackedFile file;
  for (std::string_view piece = reader.next(); !piece.empty(); piece = reader.next()) {
    const size_t size = file.content.size() + piece.size();
    if (const Result<Unit> fits = check_unpacked(packed, static_cast<double>(size)); !fits.ok())
      return Error(path, ": ", fits.error().message());
    file.content += piece;
  }
  file.damaged = reader.damaged();
  return file;
}

Result<LineReader> LineReader::open(const std::string& path) {
  TRY_ASSIGN(UnpackedReader reader, UnpackedReader::open(path));
  return LineReader(std::move(reader));
}

std::optional<LineReader::Line> LineReader::next() {
  line_.clear();
  bool any = false, cut = false, ended = false;
  while (!ended) {
    if (left_.empty()) left_ = reader_.next();
    if (left_.empty()) break;
    any = true;
    const size_t end = left_.find('\n');
    ended = end != std::string_view::npos;
    const std::string_view part = left_.substr(0, end);
    cut = cut || line_.size() + part.size() > kMostLine;
    if (!cut) line_ += part;
    left_.remove_prefix(ended ? end + 1 : left_.size());
  }
  if (!any) return std::nullopt;
  return Line{line_, ++number_, cut};
}

struct PackedWriter::State {
  std::string path;
  OutputFile output;
  gzFile file = nullptr;

  ~State() {
    if (file != nullptr) gzclose(file);
  }
};

PackedWriter::PackedWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
PackedWriter::PackedWriter(PackedWriter&&) noexcept = default;
PackedWriter& PackedWriter::operator=(PackedWriter&&) noexcept = default;
PackedWriter::~PackedWriter() = default;

Result<PackedWriter> PackedWriter::open(const std::string& path) {
  TRY_ASSIGN(OutputFile output, OutputFile::open(path));
  auto state = std::make_unique<State>(path, std::move(output));
  state->file = gzopen(state->output.path().c_str(), path.ends_with(".gz") ? "wb" : "wbT");
  if (state->file == nullptr) return cannot_write(path);
  return PackedWriter(std::move(state));
}

Result<Unit> PackedWriter::write(std::string_view text) {
  constexpr size_t kMost = size_t{1} << 30;  // gzwrite counts in unsigned int
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kMost))) {
    const auto size = static_cast<unsigned>(std::min(text.size(), kMost));
    if (gzwrite(state_->file, text.data(), size) != static_cast<int>(size))
      return cannot_write(state_->path);
  }
  return Unit{};
}

std::string PackedWriter::beside(const std::string& name) const {
  return state_->output.beside(name);
}

Result<Unit> PackedWriter::commit() {
  if (gzclose(std::exchange(state_->file, nullptr)) != Z_OK) return cannot_write(state_->path);
  return state_->output.commit();
}

}  // namespace pruner
