#include "graph/onnx/external_data.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>

namespace pruner {

namespace fs = std::filesystem;

namespace {

// The place of a tensor's bytes, from ONNX's keys. Only the location has to be there.
struct Place {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;  // -1: the shape says it
};

Result<int64_t> parse_bytes(const std::string& key, const std::string& text) {
  int64_t value = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc() && rest == end && value >= 0) return value;
  return Error("has external data with the ", key, " \"", text, "\", expected a number of bytes");
}

Result<Place> place_of(const onnx::TensorProto& proto) {
  Place place;
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") {
      TRY_ASSIGN(place.offset, parse_bytes("offset", entry.value()));
    }
    if (entry.key() == "length") {
      TRY_ASSIGN(place.length, parse_bytes("length", entry.value()));
    }
  }
  if (place.location.empty()) return Error("lies in another file, whose name is missing");
  return place;
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

// Returns the file `name` in the first folder that has the file, links followed; `code` says why
// there is no such file.
fs::path found_in(std::span<const fs::path> folders, const fs::path& name, std::error_code& code) {
  std::error_code first;
  for (const fs::path& folder : folders) {
    fs::path file = fs::canonical(folder / name, code);
    if (!code) return file;
    if (!first) first = code;
  }
  code = first;
  return {};
}

}  // namespace

ExternalData ExternalData::beside(const std::string& path) {
  ExternalData files;
  const fs::path folder = fs::path(path).parent_path();
  files.folders_ = {folder.empty() ? "." : folder.string()};
  std::error_code code;
  const fs::path real = fs::canonical(path, code);
  if (!code) files.folders_.push_back(real.parent_path().string());
  return files;
}

// Links are followed before file and folders are compared: a link that leads out of the folders
// does not count as a file in them.
Result<std::shared_ptr<const MappedFile>> ExternalData::open(const std::string& location) {
  if (const auto it = files_.find(location); it != files_.end()) return it->second;
  const auto refused = [&](const auto&... why) {
    return Error("lies in the file \"", location, "\", ", why...);
  };
  if (folders_.empty()) return refused("but the model was read from no folder");
  const fs::path name(location);
  const bool climbs = std::ranges::find(name, fs::path("..")) != name.end();
  if (name.is_absolute() || climbs) return refused("which is outside the model's folder");
  std::error_code code;
  std::vector<fs::path> folders;
  for (const std::string& folder : folders_) {
    folders.push_back(fs::canonical(folder, code));
    if (code) return refused("which cannot be read: ", code.message());
  }
  const fs::path file = found_in(folders, name, code);
  if (code) return refused("which cannot be read: ", code.message());
  if (std::ranges::none_of(folders, [&](const fs::path& of) { return lies_in(file, of); }))
    return refused("a link to outside the model's folder");
  // A pipe or a device would wait for its other end.
  if (!fs::is_regular_file(file, code)) return refused("which is no regular file");
  Result<MappedFile> mapped = MappedFile::open(file.string());
  if (!mapped.ok()) return refused("which cannot be read: ", mapped.error().message());
  return files_[location] = std::make_shared<const MappedFile>(*std::move(mapped));
}

Result<MappedBytes> ExternalData::read(const onnx::TensorProto& proto, int64_t expected) {
  TRY_ASSIGN(const Place place, place_of(proto));
  TRY_ASSIGN(const auto file, open(place.location));
  if (place.length >= 0 && place.length != expected) {
    return Error("has ", place.length, " bytes of external data, its shape ", expected);
  }
  const auto size = static_cast<int64_t>(file->bytes().size());
  if (place.offset > size || expected > size - place.offset) {
    return Error("needs ",
                 expected,
                 " bytes from byte ",
                 place.offset,
                 " of \"",
                 place.location,
                 "\", which has ",
                 size);
  }
  const auto bytes =
      file->bytes().substr(static_cast<size_t>(place.offset), static_cast<size_t>(expected));
  return MappedBytes{file, bytes};
}

}  // namespace pruner
