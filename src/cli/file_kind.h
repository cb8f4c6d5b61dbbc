// What a file is by its first bytes, so that a command replaces no file of another kind.
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

/// `path` tells an ONNX model, too: by its extension.
FileKind kind_of(const std::string& path, std::string_view file);
/// For a message: "an ONNX model".
std::string print(FileKind kind, std::string_view file);

/// Why a command that writes a file of one of these kinds may not write it to `path`: a file of
/// another kind is there. "": it may. An empty file may be replaced.
std::string why_not_replaced(const std::string& path, std::span<const FileKind> by);

}  // namespace pruner
