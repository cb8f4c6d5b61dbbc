// The door to the log (spdlog to standard error): warnings that a user should see, and detail for
// --verbose. Results go to standard output and never through here.
#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <functional>

namespace pruner {

enum class LogLevel : uint8_t { kError, kWarning, kDetail };

/// Starts the log: warnings as "pruner: warning: ...", details too, or neither.
void init_log(LogLevel level);
/// Has this done before each line of the log, by the thread that writes it: what is drawn in place
/// on a terminal makes room. Null: nothing any more. After init_log().
void before_log(std::function<void()> action);

template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::warn(format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_detail(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::debug(format, std::forward<Args>(args)...);
}

}  // namespace pruner
