// Calls of ONNX Runtime as values: a failure is an Error, a written result is returned.
#pragma once

#include <string>
#include <vector>

#include "onnxruntime/abi.h"
#include "support/result.h"

namespace pruner::ort {

/// ONNX Runtime's functions.
class Calls {
 public:
  explicit Calls(const Api& api) : api_(&api) {}

  const Api* operator->() const { return api_; }

  Result<Unit> check(Status* status) const {
    if (status == nullptr) return Unit{};
    const Error error(api_->get_error_message(status));
    api_->release_status(status);
    return error;
  }
  /// Returns null, or the error in ONNX Runtime's form.
  Status* status(const Result<Unit>& result, ErrorCode code = ErrorCode::kEpFail) const {
    return result.ok() ? nullptr : api_->create_status(code, result.error().message().c_str());
  }

  /// Returns the value that a function writes last: get<T>(api->node_get_name, node).
  template <typename T, typename... Params, typename... Args>
  Result<T> get(Status* (*function)(Params...), Args... args) const {
    T value{};
    TRY(check(function(args..., &value)));
    return value;
  }
  /// Returns the list that a function writes; `count` gives its length.
  template <typename T, typename Owner>
  Result<std::vector<T>> list(Status* (*count)(const Owner*, size_t*),
                              Status* (*function)(const Owner*, T*, size_t),
                              const Owner* owner) const {
    TRY_ASSIGN(const size_t size, get<size_t>(count, owner));
    std::vector<T> values(size);
    TRY(check(function(owner, values.data(), size)));
    return values;
  }
  /// Returns a session's entry, `fallback` if the session has none.
  Result<std::string> config(const SessionOptions* options,
                             const std::string& key,
                             const std::string& fallback = "") const {
    TRY_ASSIGN(const int found, get<int>(api_->has_session_config_entry, options, key.c_str()));
    if (found == 0) return fallback;
    size_t bytes = 0;
    TRY(check(api_->get_session_config_entry(options, key.c_str(), nullptr, &bytes)));
    std::string text(bytes, '\0');
    TRY(check(api_->get_session_config_entry(options, key.c_str(), text.data(), &bytes)));
    text.resize(bytes > 0 ? bytes - 1 : 0);  // counts the 0 behind it
    return text;
  }
  /// Returns the names of the session's entries that begin with `prefix`, without the prefix.
  Result<std::vector<std::string>> config_names(const SessionOptions* options,
                                                const std::string& prefix) const {
    KeyValues* pairs = nullptr;
    TRY(check(api_->get_session_options_config_entries(options, &pairs)));
    std::vector<std::string> names;
    if (pairs == nullptr) return names;
    const char* const* keys = nullptr;
    const char* const* values = nullptr;
    size_t count = 0;
    api_->get_key_value_pairs(pairs, &keys, &values, &count);
    for (size_t i = 0; i < count; ++i) {
      const std::string key = keys[i];
      if (key.starts_with(prefix)) names.push_back(key.substr(prefix.size()));
    }
    api_->release_key_value_pairs(pairs);
    return names;
  }

 private:
  const Api* api_;
};

}  // namespace pruner::ort
