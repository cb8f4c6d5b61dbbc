// Inline PTX of kernels -> calls of what emulator_prelude.h has in its place.
#pragma once

#include <string>

namespace fakes {

/// `source` with every asm statement that is known replaced; the others stay as they are.
std::string with_emulated_ptx(const std::string& source);

}  // namespace fakes
