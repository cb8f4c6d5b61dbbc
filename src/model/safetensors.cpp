#include "model/safetensors.h"

#include <cstring>

#include "support/json.h"

namespace pruner {
namespace {

constexpr size_t kLengthBytes = 8;  // of the header's length, little-endian
constexpr const char* kMetadata = "__metadata__";

/// The product of the extents; an error where it is more than `limit`.
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

Result<WeightTensor> parse_tensor(const Json& entry, std::string_view data) {
  TRY_ASSIGN(const std::string type, json_get<std::string>(entry, "dtype"));
  if (type != "F32") return Error("type ", type, ", expected F32");
  WeightTensor tensor;
  TRY_ASSIGN(tensor.shape, json_get<std::vector<int64_t>>(entry, "shape"));
  TRY_ASSIGN(const auto offsets, json_get<std::vector<uint64_t>>(entry, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) return Error("data_offsets are damaged");
  if (offsets[1] > data.size()) return Error("truncated");
  TRY_ASSIGN(const uint64_t count, element_count(tensor.shape, data.size()));
  const uint64_t bytes = offsets[1] - offsets[0];
  if (count * sizeof(float) != bytes)
    return Error("its shape needs ", count * sizeof(float), " bytes, there are ", bytes);
  tensor.values.resize(count);
  if (bytes > 0) std::memcpy(tensor.values.data(), data.data() + offsets[0], bytes);
  return tensor;
}

}  // namespace

Result<SafetensorsFile> parse_safetensors(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes) return Error("truncated");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes) return Error("truncated");
  Result<Json> header = parse_json(bytes.substr(kLengthBytes, length));
  if (!header.ok()) return Error("header: ", header.error().message());
  if (!header->is_object()) return Error("header: expected an object");
  const std::string_view data = bytes.substr(kLengthBytes + length);
  SafetensorsFile file;
  for (const auto& [name, entry] : header->items()) {
    if (name == kMetadata) {
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return Error("metadata \"", key, "\": expected a string");
        file.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    Result<WeightTensor> tensor = parse_tensor(entry, data);
    if (!tensor.ok()) return Error("tensor \"", name, "\": ", tensor.error().message());
    file.tensors[name] = *std::move(tensor);
  }
  return file;
}

std::string print_safetensors(const SafetensorsFile& file) {
  Json header = Json::object();
  header[kMetadata] = file.metadata;
  size_t end = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const size_t begin = end;
    end += tensor.values.size() * sizeof(float);
    header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = text.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  bytes += text;
  for (const auto& [name, tensor] : file.tensors)
    bytes.append(reinterpret_cast<const char*>(tensor.values.data()),
                 tensor.values.size() * sizeof(float));
  return bytes;
}

}  // namespace pruner
