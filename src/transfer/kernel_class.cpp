#include "transfer/kernel_class.h"

namespace pruner {

std::string kernel_class(std::string_view task_name) {
  std::string name(task_name.substr(0, task_name.find(' ')));
  for (size_t at = task_name.find(" +"); at != std::string_view::npos;
       at = task_name.find(" +", at + 1)) {
    const std::string_view rest = task_name.substr(at + 1);
    name += rest.substr(0, rest.find_first_of(" ="));
  }
  return name;
}

std::string_view anchor_of(std::string_view task_name) {
  const std::string_view first = task_name.substr(0, task_name.find(' '));
  return first.substr(first.rfind('+') + 1);
}

}  // namespace pruner
