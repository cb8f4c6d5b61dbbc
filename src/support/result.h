// Errors as values: a Result<T> holds a T or an Error whose message names the thing, what was
// expected and what was found. The door to tl::expected.
#pragma once

#include <sstream>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace pruner {

/// A message for the user: lower case, one line, says what to mend.
class Error {
 public:
  template <typename... Parts>
  explicit Error(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    message_ = out.str();
  }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

/// The value of a call that only succeeds or fails.
struct Unit {};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : value_(tl::unexpect, std::move(error)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return value_.error(); }

  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  tl::expected<T, Error> value_;
};

}  // namespace pruner

#define PRUNER_CONCAT_(a, b) a##b
#define PRUNER_CONCAT(a, b) PRUNER_CONCAT_(a, b)

/// TRY(expr): returns from the enclosing function with expr's error, if it has one.
#define TRY(expr)                                                                 \
  do {                                                                            \
    if (auto try_result_ = (expr); !try_result_.ok()) return try_result_.error(); \
  } while (false)

/// TRY_ASSIGN(T x, expr): the same, and otherwise x is expr's value.
#define TRY_ASSIGN(decl, expr)                                                           \
  auto PRUNER_CONCAT(try_, __LINE__) = (expr);                                           \
  if (!PRUNER_CONCAT(try_, __LINE__).ok()) return PRUNER_CONCAT(try_, __LINE__).error(); \
  decl = *std::move(PRUNER_CONCAT(try_, __LINE__))
