// The door to zlib: files packed with gzip or not, whole or piece by piece, in and out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "support/result.h"

namespace pruner {

/// The content of a file; one that starts as a gzip file is unpacked. A packed file that is damaged
/// or cut off gives what comes before, and `damaged` says so. Errors: it opens to more than
/// check_unpacked() allows.
struct UnpackedFile {
  std::string content;
  bool damaged = false;
};
Result<UnpackedFile> read_unpacked(const std::string& path);

/// The same content in pieces: memory does not grow with the file.
class UnpackedReader {
 public:
  static Result<UnpackedReader> open(const std::string& path);
  /// The next bytes, good until the next call; none at the end.
  std::string_view next();
  /// Known once next() gave none.
  bool damaged() const;

  UnpackedReader(UnpackedReader&&) noexcept;
  UnpackedReader& operator=(UnpackedReader&&) noexcept;
  ~UnpackedReader();

 private:
  struct State;
  explicit UnpackedReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A file's lines, one by one.
class LineReader {
 public:
  struct Line {
    std::string_view text;  // without its end; good until the next call
    int64_t number = 0;     // number of the line, from 1
    bool cut = false;       // longer than kMostLine: the rest is left out
  };
  static constexpr size_t kMostLine = size_t{16} << 20;

  static Result<LineReader> open(const std::string& path);
  std::optional<Line> next();
  bool damaged() const { return reader_.damaged(); }

 private:
  explicit LineReader(UnpackedReader reader) : reader_(std::move(reader)) {}

  UnpackedReader reader_;
  std::string_view left_;  // unread rest of the last piece
  std::string line_;
  int64_t number_ = 0;
};

/// Writes a file, packed when its name ends in ".gz". Until commit() it stands beside `path` under
/// another name, and goes if that is never called: a reader sees the old file or the whole new one.
class PackedWriter {
 public:
  static Result<PackedWriter> open(const std::string& path);
  Result<Unit> write(std::string_view text);
  Result<Unit> commit();
  /// Returns the path of another file that is needed until commit().
  std::string beside(const std::string& name) const;

  PackedWriter(PackedWriter&&) noexcept;
  PackedWriter& operator=(PackedWriter&&) noexcept;
  ~PackedWriter();

 private:
  struct State;
  explicit PackedWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pruner
