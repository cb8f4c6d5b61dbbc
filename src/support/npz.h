// numpy's archives: .npz files as np.savez and np.savez_compressed write them, as named arrays of
// raw bytes. What we write loads with np.load.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/result.h"

namespace pruner {

/// One array: dense, row-major, little-endian.
struct NpyArray {
  std::string name;
  std::string type;  // numpy's type string: "<f4", "<i8", "|b1", ...
  std::vector<int64_t> shape;
  std::string bytes;
};

/// Every array of the archive, in its order; Fortran order is turned round. Errors name the file,
/// and the array that is damaged or of a type without plain bytes.
Result<std::vector<NpyArray>> read_npz(const std::string& path);

/// The array of an .npy file, as np.save writes it; its name is empty.
Result<NpyArray> read_npy(const std::string& path);

/// Writes the arrays uncompressed; a failure leaves an old file as it was.
Result<Unit> write_npz(const std::string& path, std::span<const NpyArray> arrays);

}  // namespace pruner
