#include "model/safetensors.h"

#include <cstring>

#include "support/json.h"

namespace pruner {
namespace {

constexpr size_t kLengthBytes = 8;  // size of the header's length, little-endian
constexpr const char* kMetadata = "__metadata__";

/// Returns the bytes of an element; 0 for a type that is not read.
uint64_t element_bytes(std::string_view dtype) {
  if (dtype == "F32" || dtype == "I32") return 4;
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  return 0;
}

/// Returns the product of the extents; an error if the product is above `limit`.
Result<uint64_t> element_count(const std::vector<int64_t>& shape, uint64_t limit) {
  uint64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) return Error("a negative extent");
    if (extent != 0 && count > limit / static_cast<uint64_t>(extent))
      return Error("more elements than the file has");
    count *= static_cast<uint64_t>(extent);
  }
  return count;
}

Result<SafetensorsEntry> parse_entry(const Json& json, uint64_t data_bytes) {
  SafetensorsEntry entry;
  TRY_ASSIGN(entry.dtype, json_get<std::string>(json, "dtype"));
  const uint64_t size = element_bytes(entry.dtype);
  if (size == 0) return Error("type ", entry.dtype, ", expected F32, F64, I32, I64 or U64");
  TRY_ASSIGN(entry.shape, json_get<std::vector<int64_t>>(json, "shape"));
  TRY_ASSIGN(const auto offsets, json_get<std::vector<uint64_t>>(json, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) return Error("data_offsets are damaged");
  if (offsets[1] > data_bytes) return Error("truncated");
  TRY_ASSIGN(const uint64_t count, element_count(entry.shape, data_bytes));
  const uint64_t bytes = offsets[1] - offsets[0];
  if (count * size != bytes)
    return Error("its shape needs ", count * size, " bytes, there are ", bytes);
  entry.begin = offsets[0];
  entry.end = offsets[1];
  return entry;
}

Result<WeightTensor> read_tensor(const SafetensorsEntry& entry, std::string_view data) {
  if (entry.dtype != "F32") return Error("type ", entry.dtype, ", expected F32");
  WeightTensor tensor{entry.shape, {}};
  const uint64_t bytes = entry.end - entry.begin;
  tensor.values.resize(bytes / sizeof(float));
  if (bytes > 0) std::memcpy(tensor.values.data(), data.data() + entry.begin, bytes);
  return tensor;
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes) return Error("truncated");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes) return Error("truncated");
  Result<Json> json = parse_json(bytes.substr(kLengthBytes, length));
  if (!json.ok()) return Error("header: ", json.error().message());
  if (!json->is_object()) return Error("header: expected an object");
  SafetensorsHeader header;
  header.data = kLengthBytes + length;
  for (const auto& [name, value] : json->items()) {
    if (name == kMetadata) {
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return Error("metadata \"", key, "\": expected a string");
        header.metadata[key] = text.get<std::string>();
      }
      continue;
    }
    Result<SafetensorsEntry> entry = parse_entry(value, bytes.size() - header.data);
    if (!entry.ok()) return Error("tensor \"", name, "\": ", entry.error().message());
    header.entries[name] = *std::move(entry);
  }
  return header;
}

std::string print_safetensors_header(const SafetensorsHeader& header) {
  Json json = Json::object();
  json[kMetadata] = header.metadata;
  for (const auto& [name, entry] : header.entries)
    json[name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  std::string text = json.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = text.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  return bytes + text;
}

Result<SafetensorsFile> parse_safetensors(std::string_view bytes) {
  TRY_ASSIGN(SafetensorsHeader header, parse_safetensors_header(bytes));
  SafetensorsFile file{std::move(header.metadata), {}};
  for (const auto& [name, entry] : header.entries) {
    Result<WeightTensor> tensor = read_tensor(entry, bytes.substr(header.data));
    if (!tensor.ok()) return Error("tensor \"", name, "\": ", tensor.error().message());
    file.tensors[name] = *std::move(tensor);
  }
  return file;
}

std::string print_safetensors(const SafetensorsFile& file) {
  SafetensorsHeader header{file.metadata, {}, 0};
  uint64_t end = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const uint64_t begin = end;
    end += tensor.values.size() * sizeof(float);
    header.entries[name] = {"F32", tensor.shape, begin, end};
  }
  std::string bytes = print_safetensors_header(header);
  for (const auto& [name, tensor] : file.tensors)
    bytes.append(reinterpret_cast<const char*>(tensor.values.data()),
                 tensor.values.size() * sizeof(float));
  return bytes;
}

}  // namespace pruner
