// The files beside an .onnx file that hold its larger tensors ("external data"), each mapped once.
// Only files in the model's own folder are read, and where the .onnx file is a link, those in the
// folder of the file that it leads to. Hugging Face's cache has such links to a folder of blobs.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/mapped_file.h"

namespace pruner {

/// Bytes of a mapped file, and what keeps them mapped.
struct MappedBytes {
  std::shared_ptr<const MappedFile> file;
  std::string_view bytes;
};

class ExternalData {
 public:
  /// Serves a model that is no file: the model has no folder, and a tensor in another file is an
  /// error.
  ExternalData() = default;
  /// Returns the files of the model at `path`.
  static ExternalData beside(const std::string& path);

  /// Returns the `expected` bytes that a tensor with the data location EXTERNAL names. The error
  /// says what is wrong with the file or the place in the file, without the tensor's name.
  Result<MappedBytes> read(const onnx::TensorProto& proto, int64_t expected);

 private:
  Result<std::shared_ptr<const MappedFile>> open(const std::string& location);

  std::vector<std::string> folders_;  // the model path's, then the linked file's
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // mapped files, by location
};

}  // namespace pruner
