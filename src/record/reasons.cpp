#include "record/reasons.h"

namespace pruner {

void note(Reasons& reasons, const std::string& reason, const std::string& where) {
  Reason& entry = reasons[reason];
  if (entry.count++ == 0) entry.first = where;
}

void add(Reasons& reasons, const Reasons& part) {
  for (const auto& [reason, entry] : part) {
    Reason& sum = reasons[reason];
    if (sum.count == 0) sum.first = entry.first;
    sum.count += entry.count;
  }
}

int64_t total(const Reasons& reasons) {
  int64_t sum = 0;
  for (const auto& [reason, entry] : reasons) sum += entry.count;
  return sum;
}

std::string general_reason(const std::string& message) {
  if (const size_t byte = message.rfind(" at byte "); byte != std::string::npos)
    return message.substr(0, byte);
  if (message.find(", the device allows ") != std::string::npos)
    return message.substr(0, message.find(':')) + " beyond what the device allows";
  const size_t step = message.find("step ");
  const size_t comma = message.find(", ", step);
  if (step != 0 || comma == std::string::npos) return message;
  return message.substr(comma + 2);
}

}  // namespace pruner
