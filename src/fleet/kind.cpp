#include "fleet/kind.h"

#include <fmt/format.h>

#include <cctype>

#include "pruner/module.h"
#include "support/hash.h"
#include "support/mapped_file.h"

namespace pruner {

// A candidate goes by the number of its sketch, so both sides have to be the same program.
const std::string& program_hash() {
  static const std::string hash = [] {
    const Result<MappedFile> program = MappedFile::open("/proc/self/exe");
    return program.ok() ? hash_hex(program->bytes()) : std::string();
  }();
  return hash;
}

std::string kind_of(const Target& target) {
  static constexpr size_t kNameLength = 24, kHashLength = 10;
  const std::string device = device_fingerprint(target);
  std::string name;
  for (const char c : device) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !name.empty() && name.back() != '-') name += '-';
  }
  name.resize(std::min(name.size(), kNameLength));
  while (!name.empty() && name.back() == '-') name.pop_back();
  const std::string all = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}",
                                      device,
                                      print(target),
                                      target.threads,
                                      target.features,
                                      target.l1_bytes,
                                      target.l2_bytes,
                                      target.l3_bytes,
                                      PRUNER_MODULE_ABI,
                                      program_hash());
  return name + "-" + hash_hex(all).substr(0, kHashLength);
}

}  // namespace pruner
