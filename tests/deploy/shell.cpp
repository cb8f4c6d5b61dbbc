#include "shell.h"

#include <cstdio>

namespace pruner {

std::string output_of(const std::string& command) {
  FILE* pipe = popen(("exec 2>&1; " + command).c_str(), "r");
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  return text + "status " + std::to_string(pclose(pipe));
}

}  // namespace pruner
