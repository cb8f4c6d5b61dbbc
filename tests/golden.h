// Macros for tests. EXPECT_GOLDEN(file, text) expects `text` to be what tests/golden/<file> holds;
// with PRUNER_GOLDEN=write in the environment it writes the file instead, to be read and committed.
// EXPECT_ERROR(result, words) expects a Result that failed with a message that holds `words`.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "support/file.h"

namespace pruner {

/// The path of a file that lies under tests/.
inline std::string test_path(std::string_view name) {
  return std::string(PRUNER_TEST_DIR "/").append(name);
}

inline testing::AssertionResult matches_golden(const std::string& name, const std::string& text) {
  const std::string path = test_path("golden/" + name);
  const char* mode = std::getenv("PRUNER_GOLDEN");
  if (mode != nullptr && std::string_view(mode) == "write") {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    const Result<Unit> written = write_file(path, text);
    if (!written.ok()) return testing::AssertionFailure() << written.error().message();
    return testing::AssertionSuccess();
  }
  const Result<std::string> expected = read_file(path);
  if (!expected.ok()) {
    return testing::AssertionFailure()
           << expected.error().message() << " (PRUNER_GOLDEN=write makes it); found:\n"
           << text;
  }
  if (*expected == text) return testing::AssertionSuccess();
  // gtest prints the difference of two strings line by line.
  return testing::internal::EqFailure(name.c_str(), "found", *expected, text, false);
}

template <typename T>
testing::AssertionResult fails_with(const Result<T>& result, std::string_view words) {
  if (result.ok()) return testing::AssertionFailure() << "no error; expected one with: " << words;
  if (result.error().message().find(words) != std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "error:    " << result.error().message() << "\nexpected: " << words;
}

}  // namespace pruner

#define EXPECT_GOLDEN(name, text) EXPECT_TRUE(::pruner::matches_golden(name, text))
#define EXPECT_ERROR(result, words) EXPECT_TRUE(::pruner::fails_with(result, words))
