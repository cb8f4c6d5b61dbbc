#include "dataset/dataset_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "dataset/dataset_columns.h"
#include "model/safetensors.h"
#include "model/weights.h"
#include "support/check.h"
#include "support/json.h"

namespace pruner {

namespace {

constexpr size_t kBufferBytes = 4 << 20;
constexpr size_t kRowBytes = kRowFeatures * sizeof(float);
constexpr size_t kDataflowBytes = kDataflowSize * sizeof(float);

bool read_whole(int fd, int64_t offset, std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        pread(fd, bytes.data() + done, bytes.size() - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

template <typename T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// The file that is being made, whose bytes are summed up.
class NewFile {
 public:
  explicit NewFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  ~NewFile() {
    if (fd_ >= 0) close(fd_);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int fd() const { return fd_; }
  bool write_data(std::string_view bytes) {
    hasher_.add(bytes);
    return write_whole(fd_, bytes);
  }
  Hasher64 take_hasher() { return std::move(hasher_); }

 private:
  int fd_;
  Hasher64 hasher_;
};

/// Copies [begin(row), end(row)) of `from` for each row; what lies together in one piece.
template <typename Range>
bool copy_rows(int from, std::span<const DatasetRow> rows, Range range, NewFile& to) {
  std::string buffer;
  for (size_t i = 0; i < rows.size();) {
    const auto [begin, first_end] = range(rows[i]);
    int64_t end = first_end;
    for (++i; i < rows.size() && end - begin < static_cast<int64_t>(kBufferBytes); ++i) {
      const auto [next, next_end] = range(rows[i]);
      if (next != end) break;
      end = next_end;
    }
    buffer.resize(static_cast<size_t>(end - begin));
    if (!read_whole(from, begin, buffer) || !to.write_data(buffer)) return false;
  }
  return true;
}

std::string tasks_text(std::span<const DatasetTask> tasks) {
  Json json = Json::array();
  for (const DatasetTask& task : tasks)
    json.push_back({{"workload_key", task.workload_key}, {"target", task.target}});
  return print_json(json);
}

SafetensorsHeader make_header(int64_t programs, int64_t rows, int64_t primitives) {
  SafetensorsHeader header;
  uint64_t end = 0;
  const auto shapes = dataset_shapes(programs, rows, primitives);
  for (size_t i = 0; i < shapes.size(); ++i) {
    uint64_t bytes = kDatasetColumns[i].element_bytes;
    for (const int64_t extent : shapes[i]) bytes *= static_cast<uint64_t>(extent);
    header.entries[kDatasetColumns[i].name] = {
        kDatasetColumns[i].dtype, shapes[i], end, end + bytes};
    end += bytes;
  }
  return header;
}

}  // namespace

Result<DatasetWriter> DatasetWriter::open(const std::string& path) {
  TRY_ASSIGN(OutputFile output, OutputFile::open(path));
  DatasetWriter writer(path);
  writer.output_ = std::make_unique<OutputFile>(std::move(output));
  const auto open_beside = [&](const char* name, int& fd) {
    fd = ::open(writer.output_->beside(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return fd >= 0;
  };
  if (!open_beside("rows", writer.rows_fd_) || !open_beside("dataflow", writer.dataflow_fd_) ||
      !open_beside("primitives", writer.primitives_fd_))
    return cannot_write(path);
  return writer;
}

DatasetWriter::DatasetWriter(DatasetWriter&& other) noexcept
    : path_(std::move(other.path_)),
      output_(std::move(other.output_)),
      rows_fd_(std::exchange(other.rows_fd_, -1)),
      dataflow_fd_(std::exchange(other.dataflow_fd_, -1)),
      primitives_fd_(std::exchange(other.primitives_fd_, -1)),
      rows_(std::move(other.rows_)),
      dataflow_(std::move(other.dataflow_)),
      primitives_(std::move(other.primitives_)),
      row_offsets_(std::move(other.row_offsets_)),
      primitive_offsets_(std::move(other.primitive_offsets_)) {}

DatasetWriter& DatasetWriter::operator=(DatasetWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(output_, other.output_);
  std::swap(rows_fd_, other.rows_fd_);
  std::swap(dataflow_fd_, other.dataflow_fd_);
  std::swap(primitives_fd_, other.primitives_fd_);
  std::swap(rows_, other.rows_);
  std::swap(dataflow_, other.dataflow_);
  std::swap(primitives_, other.primitives_);
  std::swap(row_offsets_, other.row_offsets_);
  std::swap(primitive_offsets_, other.primitive_offsets_);
  return *this;
}

DatasetWriter::~DatasetWriter() {
  if (rows_fd_ >= 0) close(rows_fd_);
  if (dataflow_fd_ >= 0) close(dataflow_fd_);
  if (primitives_fd_ >= 0) close(primitives_fd_);
}

Result<Unit> DatasetWriter::flush() {
  if (!write_whole(rows_fd_, rows_) || !write_whole(dataflow_fd_, dataflow_) ||
      !write_whole(primitives_fd_, primitives_))
    return cannot_write(path_);
  rows_.clear();
  dataflow_.clear();
  primitives_.clear();
  return Unit{};
}

Result<int64_t> DatasetWriter::add(const ProgramFeatures& features) {
  rows_ += bytes_of(std::span<const float>(features.rows));
  dataflow_ += bytes_of(std::span<const float>(features.dataflow));
  primitives_ += bytes_of(std::span<const int32_t>(features.primitives));
  row_offsets_.push_back(row_offsets_.back() + static_cast<int64_t>(features.row_count()));
  primitive_offsets_.push_back(primitive_offsets_.back() +
                               static_cast<int64_t>(features.primitives.size()));
  if (rows_.size() + dataflow_.size() + primitives_.size() > kBufferBytes) TRY(flush());
  return static_cast<int64_t>(row_offsets_.size()) - 2;
}

Result<Unit> DatasetWriter::finish(std::span<const DatasetRow> rows,
                                   std::span<const DatasetTask> tasks,
                                   const std::string& about) {
  TRY(flush());
  std::vector<uint64_t> ids;
  std::vector<double> latencies;
  std::vector<int64_t> offsets = {0}, primitive_offsets = {0};
  std::vector<int32_t> task_numbers;
  for (const DatasetRow& row : rows) {
    DCHECK(row.task >= 0 && static_cast<size_t>(row.task) < tasks.size());
    ids.push_back(row.id);
    latencies.push_back(row.latency_s);
    offsets.push_back(offsets.back() + row_count(row.program));
    const auto p = static_cast<size_t>(row.program);
    primitive_offsets.push_back(primitive_offsets.back() + primitive_offsets_[p + 1] -
                                primitive_offsets_[p]);
    task_numbers.push_back(row.task);
  }
  SafetensorsHeader header =
      make_header(static_cast<int64_t>(rows.size()), offsets.back(), primitive_offsets.back());
  header.metadata = {{"format", std::string(kDatasetFormat)},
                     {"feature_version", std::to_string(kFeatureVersion)},
                     {"tasks", tasks_text(tasks)},
                     {"about", about},
                     {"checksum", dataset_checksum({}, {})}};  // same length as the final checksum

  NewFile file(output_->path());
  const auto rows_of = [&](const DatasetRow& row) {
    const auto p = static_cast<size_t>(row.program);
    const auto bytes = static_cast<int64_t>(kRowBytes);
    return std::pair(row_offsets_[p] * bytes, row_offsets_[p + 1] * bytes);
  };
  const auto dataflow_of = [](const DatasetRow& row) {
    const auto bytes = static_cast<int64_t>(kDataflowBytes);
    return std::pair(row.program * bytes, (row.program + 1) * bytes);
  };
  const auto primitives_of = [&](const DatasetRow& row) {
    const auto p = static_cast<size_t>(row.program);
    constexpr auto kBytes = static_cast<int64_t>(sizeof(int32_t));
    return std::pair(primitive_offsets_[p] * kBytes, primitive_offsets_[p + 1] * kBytes);
  };
  const bool written =
      file.fd() >= 0 && write_whole(file.fd(), print_safetensors_header(header)) &&
      file.write_data(bytes_of(ids)) && file.write_data(bytes_of(latencies)) &&
      file.write_data(bytes_of(offsets)) && file.write_data(bytes_of(primitive_offsets)) &&
      file.write_data(bytes_of(task_numbers)) &&
      copy_rows(primitives_fd_, rows, primitives_of, file) &&
      copy_rows(dataflow_fd_, rows, dataflow_of, file) && copy_rows(rows_fd_, rows, rows_of, file);
  if (!written) return cannot_write(path_);
  header.metadata["checksum"] = dataset_checksum(file.take_hasher(), header.metadata);
  if (lseek(file.fd(), 0, SEEK_SET) != 0 ||
      !write_whole(file.fd(), print_safetensors_header(header)))
    return cannot_write(path_);
  TRY(output_->commit());
  output_.reset();
  return Unit{};
}

}  // namespace pruner
