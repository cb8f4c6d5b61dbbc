// Records of the registered matmul, as Ansor writes them.
#pragma once

#include <string>

#include "support/json.h"

namespace pruner {

/// `MatmulRecord` is what a record of these tests says; each `factor` is another program.
struct MatmulRecord {
  int factor = 1;
  std::string costs = "[0.001]";
  int error = 0;
  std::string key = R"(["matmul_layer", 64, 64, 64])";
  std::string target = "cuda -keys=cuda,gpu -max_num_threads=1024";
  int64_t timestamp = 1639461739;
};

inline std::string record_line(const MatmulRecord& record) {
  return R"({"i": [[)" + print_json(Json(record.key)) + ", " + print_json(Json(record.target)) +
         R"(, [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], "", 0, []], [[], [["SP", 2, 0, 64, [)" +
         std::to_string(record.factor) + R"(], 1]]]], "r": [)" + record.costs + ", " +
         std::to_string(record.error) + ", 1.5, " + std::to_string(record.timestamp) +
         "], \"v\": \"v0.6\"}\n";
}

/// Lines of so many programs, the i-th taking i ms.
inline std::string record_lines_of(int programs, MatmulRecord record = {}) {
  std::string lines;
  for (int i = 1; i <= programs; ++i) {
    record.factor = i;
    record.costs = "[" + std::to_string(i * 1e-3) + "]";
    lines += record_line(record);
  }
  return lines;
}

}  // namespace pruner
