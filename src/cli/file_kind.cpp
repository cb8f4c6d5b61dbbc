#include "cli/file_kind.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "support/mapped_file.h"

namespace pruner {

namespace fs = std::filesystem;

FileKind kind_of(const std::string& path, std::string_view file) {
  const auto begins = [&](std::string_view magic) { return file.starts_with(magic); };
  // Protocol buffers of ONNX begin with field 1, the version of the format, and a second field.
  const bool onnx =
      file.size() > 3 && file[0] == 0x08 && file[1] < 0x20 &&
      std::string_view("\x10\x12\x1a\x22\x2a\x32\x3a\x42").find(file[2]) != std::string_view::npos;
  if (fs::path(path).extension() == ".onnx" || onnx) return FileKind::kOnnx;
  if (begins(ELFMAG)) return FileKind::kLibrary;
  if (begins("!<arch>\n")) return FileKind::kArchive;
  if (begins("PK\x03\x04") || begins("PK\x05\x06")) return FileKind::kZip;
  if (begins("\x93NUMPY")) return FileKind::kNumpy;
  if (begins("\x1f\x8b")) return FileKind::kPacked;
  if (begins("{") || begins("[")) return FileKind::kJson;
  if (begins("<svg")) return FileKind::kSvg;
  const bool text = std::ranges::all_of(file.substr(0, 1000), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isprint(byte) != 0 || std::isspace(byte) != 0;
  });
  return text ? FileKind::kText : FileKind::kOther;
}

std::string print(FileKind kind, std::string_view file) {
  switch (kind) {
    case FileKind::kOnnx: return "an ONNX model";
    case FileKind::kLibrary: return "a program or a library";
    case FileKind::kArchive: return "a static library";
    case FileKind::kZip: return "a zip archive";
    case FileKind::kNumpy: return "a NumPy array";
    case FileKind::kPacked: return "a packed file";
    case FileKind::kJson: return "a JSON file";
    case FileKind::kSvg: return "an SVG picture";
    case FileKind::kText: return "a text file";
    case FileKind::kOther: break;
  }
  return fmt::format("a file of {} bytes", file.size());
}

std::string why_not_replaced(const std::string& path, std::span<const FileKind> by) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return "";
  const Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped.ok() || mapped->bytes().empty()) return "";
  const FileKind kind = kind_of(path, mapped->bytes());
  if (std::ranges::find(by, kind) != by.end()) return "";
  return fmt::format(
      "{} is {}, which would be lost; choose another name", path, print(kind, mapped->bytes()));
}

}  // namespace pruner
