#include "support/log.h"

#include <spdlog/sinks/stdout_sinks.h>

namespace pruner {

void init_log(bool verbose) {
  auto logger =
      std::make_shared<spdlog::logger>("pruner", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("pruner: %l: %v");
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace pruner
