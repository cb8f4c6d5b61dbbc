// The program pruner, which reads and compiles ONNX files: where it is, and how it is run.
#pragma once

#include <string>
#include <vector>

#include "support/result.h"

namespace pruner::ort {

/// `given`, $PRUNER, the one of the Python package beside this library's, the one that was
/// installed with it, or the one on the PATH; an error where there is none.
Result<std::string> find_program(const std::string& given);

/// What the program prints; its errors are what it says. `scratch`: a folder for its outputs.
Result<std::string> run_program(const std::string& program,
                                const std::vector<std::string>& arguments,
                                const std::string& scratch);

}  // namespace pruner::ort
