// Tells the kind of a file by its first bytes, so that a command replaces no file of another kind.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pruner {

enum class FileKind : uint8_t {
  kOnnx,
  kLibrary,  // a program or a shared library
  kArchive,  // a static library
  kZip,
  kNumpy,
  kPacked,  // a file of gzip
  kJson,    // also one value a line
  kSvg,
  kText,
  kOther
};

/// Returns the kind of a file with content `file`; the extension of `path` may tell an ONNX model.
FileKind kind_of(const std::string& path, std::string_view file);
/// Returns the words for the kind in a message: "an ONNX model".
std::string print(FileKind kind, std::string_view file);

/// Returns why a command that writes files of the kinds `by` may not write to `path`: a file of
/// another kind is there. Returns "" if the command may. An empty file may be replaced.
std::string why_not_replaced(const std::string& path, std::span<const FileKind> by);

}  // namespace pruner
