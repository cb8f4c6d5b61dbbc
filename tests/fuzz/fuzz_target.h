// A fuzz target: what reads bytes of a user's, and inputs to start from. Each *_fuzz.cpp is a
// program that has both of it; fuzz_target.cpp hands it to libFuzzer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pruner {

/// Reads them, and uses what they hold; whether they are what it reads. What is read and printed
/// has to be read again (CHECK).
bool read_input(std::string_view bytes);

/// Inputs that are read, one of each kind.
std::vector<std::string> seeds();

}  // namespace pruner
