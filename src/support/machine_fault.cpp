#include "support/machine_fault.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace pruner {

bool is_machine_fault(std::string_view message) {
  constexpr std::array kWants = {
      ENOMEM, EAGAIN, EMFILE, ENFILE, ENOSPC, EDQUOT, EFBIG, EIO, EROFS, ENOBUFS};
  return std::ranges::any_of(kWants, [&](int want) {
    return message.find(std::strerror(want)) != std::string_view::npos;
  });
}

}  // namespace pruner
