// What `pruner --version` says and every report carries: the version of CMakeLists.txt.
#pragma once

namespace pruner {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace pruner
