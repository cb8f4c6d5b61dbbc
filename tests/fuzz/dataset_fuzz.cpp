// layer: dataset
// A file of features -> its programs. Its checksum is made right before it is read: what the file
// says is looked at, not only that it is damaged.
#include "dataset/dataset_columns.h"
#include "dataset/dataset_writer.h"
#include "dataset/program_table.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input_file.h"
#include "model/safetensors.h"
#include "support/check.h"
#include "support/file.h"

namespace pruner {
namespace {

std::string with_checksum(std::string_view bytes) {
  Result<SafetensorsHeader> header = parse_safetensors_header(bytes);
  if (!header.ok()) return std::string(bytes);
  const std::string_view data = bytes.substr(header->data);
  Hasher64 hasher;
  hasher.add(data);
  header->metadata["checksum"] = dataset_checksum(std::move(hasher), header->metadata);
  return print_safetensors_header(*header).append(data);
}

}  // namespace

std::vector<std::string> seeds() {
  Result<DatasetWriter> writer = DatasetWriter::open(input_path());
  CHECK(writer.ok());
  for (const size_t rows : {1, 2}) {
    ProgramFeatures features;
    features.rows.assign(rows * kRowFeatures, 1);
    features.primitives = {9, 1, 3};
    CHECK(writer->add(features).ok());
  }
  const std::vector<DatasetRow> rows = {{0, 1, 2e-3, 11}, {1, 0, 1e10, 13}};
  CHECK(writer->finish(rows, std::vector<DatasetTask>{{"[\"a\"]", "llvm"}, {"b", "llvm"}}, "[]")
            .ok());
  return {*read_file(input_path())};
}

bool read_input(std::string_view bytes) {
  const std::string& path = file_of(with_checksum(bytes));
  const Result<Dataset> dataset = Dataset::open(path);
  (void)ProgramTable::open({{path}});
  if (!dataset.ok()) return false;
  for (int64_t p = 0; p < dataset->size(); ++p) {
    const auto task = static_cast<size_t>(dataset->task()[static_cast<size_t>(p)]);
    CHECK(task < dataset->tasks().size());
    double sum = 0;
    for (const float value : dataset->rows(p)) sum += value;
    for (const float value : dataset->dataflow(p)) sum += value;
    for (const int32_t value : dataset->primitives(p)) sum += value;
    (void)sum;
  }
  return true;
}

}  // namespace pruner
