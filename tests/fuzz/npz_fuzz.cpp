// layer: deploy
// An archive of numpy's, or one array -> tensors.
#include "deploy/tensor_file.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input_file.h"
#include "support/check.h"
#include "support/file.h"
#include "support/npz.h"
#include "support/zip.h"

namespace pruner {

std::vector<std::string> seeds() {
  const NpyArray arrays[] = {{"x", "<f4", {2, 1}, std::string(8, '\1')},
                             {"n", "<i8", {}, "numbers."}};
  CHECK(write_npz(input_path(), arrays).ok());
  std::vector<std::string> files = {*read_file(input_path())};
  const Result<ZipReader> archive = ZipReader::open(input_path());
  CHECK(archive.ok());
  for (size_t i = 0; i < 2; ++i) files.push_back(*archive->read(i));
  std::string columns = files[1];  // stored column by column
  columns.replace(columns.find("False, "), 7, "True,  ");
  files.push_back(columns);
  return files;
}

bool read_input(std::string_view bytes) {
  const std::string& path = file_of(bytes);
  const bool tensors = read_tensors(path).ok();
  return read_npy(path).ok() || read_npz(path).ok() || tensors;
}

}  // namespace pruner
