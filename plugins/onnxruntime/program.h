// The program pruner, which reads and compiles ONNX files: where it is, and how it is run.
#pragma once

#include <string>
#include <vector>

#include "support/result.h"

namespace pruner::ort {

/// Returns the program `given`, or finds one: $PRUNER, in the Python package beside this library's,
/// installed with the library, or on the PATH. An error if there is none.
Result<std::string> find_program(const std::string& given);

/// Runs the program; returns its output, or an error with its words. `scratch` holds its outputs.
Result<std::string> run_program(const std::string& program,
                                const std::vector<std::string>& arguments,
                                const std::string& scratch);

}  // namespace pruner::ort
