// The door to the log (spdlog to standard error): warnings that a user should see, and detail for
// --verbose. Results go to standard output and never through here.
#pragma once

#include <spdlog/spdlog.h>

namespace pruner {

/// Starts the log: warnings as "pruner: warning: ...", and details when `verbose`.
void init_log(bool verbose);

template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::warn(format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_detail(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::debug(format, std::forward<Args>(args)...);
}

}  // namespace pruner
