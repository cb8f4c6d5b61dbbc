// Why records are not what was hoped for: each reason with how often it came and where first.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace pruner {

/// One reason, how often it came, and where first.
struct Reason {
  int64_t count = 0;
  std::string first;  // "records.json:17"
};

using Reasons = std::map<std::string, Reason>;

void note(Reasons& reasons, const std::string& reason, const std::string& where);
/// Adds the counts of `part`, which comes after what `reasons` has.
void add(Reasons& reasons, const Reasons& part);
int64_t total(const Reasons& reasons);

/// The message of an error without the numbers of the one record, so that like cases are counted
/// together: which step, which byte, how much too much.
std::string general_reason(const std::string& message);

}  // namespace pruner
