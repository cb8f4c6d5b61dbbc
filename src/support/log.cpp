#include "support/log.h"

#include <spdlog/sinks/base_sink.h>

#include <cstdio>
#include <mutex>

namespace pruner {

namespace {

/// Standard error, with something to do before each line.
class LogSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void before(std::function<void()> action) {
    const std::lock_guard lock(mutex_);
    before_ = std::move(action);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (before_) before_();
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }
  void flush_() override { std::fflush(stderr); }

 private:
  std::function<void()> before_;
};

}  // namespace

static spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kDetail: return spdlog::level::debug;
  }
  return spdlog::level::warn;
}

void init_log(LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("pruner", std::make_shared<LogSink>());
  logger->set_pattern("pruner: %l: %v");
  logger->set_level(spdlog_level(level));
  spdlog::set_default_logger(std::move(logger));
}

void before_log(std::function<void()> action) {
  for (const spdlog::sink_ptr& sink : spdlog::default_logger_raw()->sinks())
    if (auto* ours = dynamic_cast<LogSink*>(sink.get())) ours->before(std::move(action));
}

}  // namespace pruner
