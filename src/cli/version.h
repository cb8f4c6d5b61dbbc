// What `pruner --version` says and every report carries; the build takes it from CMakeLists.txt.
#pragma once

namespace pruner {

#ifdef PRUNER_VERSION
inline constexpr const char* kVersion = PRUNER_VERSION;
#else
inline constexpr const char* kVersion = "0.1.0";
#endif

}  // namespace pruner
