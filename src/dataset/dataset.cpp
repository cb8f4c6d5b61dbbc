#include "dataset/dataset.h"

#include <algorithm>

#include "dataset/dataset_columns.h"
#include "model/safetensors.h"
#include "model/weights.h"
#include "support/json.h"
#include "support/mapped_file.h"

namespace pruner {

struct Dataset::Columns {
  MappedFile file;
  std::vector<DatasetTask> tasks;
  std::string about;
  std::span<const uint64_t> id;
  std::span<const double> latency_s;
  std::span<const int64_t> row_offset, primitive_offset;
  std::span<const int32_t> task, primitives;
  std::span<const float> dataflow, rows;
};

namespace {

constexpr const char* kRemake = "make it again with `pruner dataset make`";

Result<Unit> check_metadata(const SafetensorsHeader& header) {
  const auto value = [&](const char* key) {
    const auto found = header.metadata.find(key);
    return found == header.metadata.end() ? std::string() : found->second;
  };
  if (value("format") != kDatasetFormat)
    return Error(
        "no dataset, but a safetensors file of another kind; `pruner dataset make` makes one");
  const std::string version = std::to_string(kFeatureVersion);
  if (value("feature_version") != version)
    return Error("features of version \"",
                 value("feature_version"),
                 "\", expected \"",
                 version,
                 "\"; ",
                 kRemake);
  return Unit{};
}

Result<std::vector<DatasetTask>> read_tasks(const SafetensorsHeader& header) {
  const auto text = header.metadata.find("tasks");
  if (text == header.metadata.end()) return Error("damaged: no list of tasks");
  TRY_ASSIGN(const Json json, parse_json(text->second));
  std::vector<DatasetTask> tasks;
  for (const Json& entry : json) {
    DatasetTask task;
    TRY_ASSIGN(task.workload_key, json_get<std::string>(entry, "workload_key"));
    TRY_ASSIGN(task.target, json_get<std::string>(entry, "target"));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

/// The bytes of each column; they are there, of their types and of one number of programs.
Result<std::vector<std::string_view>> find_columns(const SafetensorsHeader& header,
                                                   std::string_view data) {
  std::vector<const SafetensorsEntry*> entries;
  for (const DatasetColumn& column : kDatasetColumns) {
    const auto entry = header.entries.find(column.name);
    if (entry == header.entries.end()) return Error("no column ", column.name, "; ", kRemake);
    const bool aligned = (header.data + entry->second.begin) % column.element_bytes == 0;
    if (entry->second.dtype != column.dtype || !aligned || entry->second.shape.empty())
      return Error("damaged: column ", column.name, " is not of type ", column.dtype);
    entries.push_back(&entry->second);
  }
  const auto shapes = dataset_shapes(entries[kIdColumn]->shape[0],
                                     entries[kRowsColumn]->shape[0],
                                     entries[kPrimitivesColumn]->shape[0]);
  std::vector<std::string_view> columns;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i]->shape != shapes[i])
      return Error("damaged: column ", kDatasetColumns[i].name, " is not of the others' size");
    columns.push_back(data.substr(entries[i]->begin, entries[i]->end - entries[i]->begin));
  }
  return columns;
}

template <typename T>
std::span<const T> numbers(std::string_view bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// Whether what the numbers point at is there.
template <typename C>
bool fits(const C& columns) {
  const int64_t rows = static_cast<int64_t>(columns.rows.size()) / kRowFeatures;
  const auto ends_at = [](std::span<const int64_t> offsets, int64_t end) {
    return offsets.front() == 0 && offsets.back() == end && std::ranges::is_sorted(offsets);
  };
  const auto primitives = static_cast<int64_t>(columns.primitives.size());
  const auto tasks = static_cast<int32_t>(columns.tasks.size());
  const auto known = [tasks](int32_t task) { return task >= 0 && task < tasks; };
  return ends_at(columns.row_offset, rows) && ends_at(columns.primitive_offset, primitives) &&
         std::ranges::all_of(columns.task, known);
}

}  // namespace

Result<Dataset> Dataset::open(const std::string& path) {
  const auto fault = [&](const auto&... words) { return Error(path, ": ", words...); };
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  Result<SafetensorsHeader> header = parse_safetensors_header(file.bytes());
  if (!header.ok())
    return fault("no dataset, or a damaged one (", header.error().message(), "); ", kRemake);
  if (const Result<Unit> ours = check_metadata(*header); !ours.ok())
    return fault(ours.error().message());
  const std::string_view data = file.bytes().substr(header->data);
  Hasher64 hasher;
  hasher.add(data);
  const std::string checksum = dataset_checksum(std::move(hasher), header->metadata);
  if (checksum != header->metadata["checksum"])
    return fault("damaged: its checksum is ",
                 checksum,
                 ", expected ",
                 header->metadata["checksum"],
                 "; ",
                 kRemake);
  const auto found = find_columns(*header, data);
  if (!found.ok()) return fault(found.error().message());
  Result<std::vector<DatasetTask>> tasks = read_tasks(*header);
  if (!tasks.ok()) return fault(tasks.error().message());
  auto columns =
      std::make_shared<Columns>(Columns{std::move(file),
                                        *std::move(tasks),
                                        header->metadata["about"],
                                        numbers<uint64_t>((*found)[kIdColumn]),
                                        numbers<double>((*found)[kLatencyColumn]),
                                        numbers<int64_t>((*found)[kRowOffsetColumn]),
                                        numbers<int64_t>((*found)[kPrimitiveOffsetColumn]),
                                        numbers<int32_t>((*found)[kTaskColumn]),
                                        numbers<int32_t>((*found)[kPrimitivesColumn]),
                                        numbers<float>((*found)[kDataflowColumn]),
                                        numbers<float>((*found)[kRowsColumn])});
  if (!fits(*columns)) return fault("damaged: a number in it is out of range; ", kRemake);
  Dataset dataset;
  dataset.columns_ = std::move(columns);
  return dataset;
}

int64_t Dataset::size() const { return static_cast<int64_t>(columns_->id.size()); }
const std::vector<DatasetTask>& Dataset::tasks() const { return columns_->tasks; }
const std::string& Dataset::about() const { return columns_->about; }
std::span<const int32_t> Dataset::task() const { return columns_->task; }
std::span<const double> Dataset::latency_s() const { return columns_->latency_s; }
std::span<const uint64_t> Dataset::id() const { return columns_->id; }

std::span<const float> Dataset::rows(int64_t program) const {
  const auto p = static_cast<size_t>(program);
  const auto begin = static_cast<size_t>(columns_->row_offset[p]) * kRowFeatures;
  const auto end = static_cast<size_t>(columns_->row_offset[p + 1]) * kRowFeatures;
  return columns_->rows.subspan(begin, end - begin);
}

std::span<const int32_t> Dataset::primitives(int64_t program) const {
  const auto p = static_cast<size_t>(program);
  const auto begin = static_cast<size_t>(columns_->primitive_offset[p]);
  return columns_->primitives.subspan(
      begin, static_cast<size_t>(columns_->primitive_offset[p + 1]) - begin);
}

std::span<const float> Dataset::dataflow(int64_t program) const {
  return columns_->dataflow.subspan(static_cast<size_t>(program) * kDataflowSize, kDataflowSize);
}

}  // namespace pruner
