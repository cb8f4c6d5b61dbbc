#include "codegen/loader.h"

#include <elf.h>

#include <cstring>

namespace pruner {

Result<Unit> check_machine(std::string_view elf) {
  Elf64_Ehdr header = {};
  if (elf.size() < sizeof header) return Unit{};
  std::memcpy(&header, elf.data(), sizeof header);
  const int expected = kHostIsa == Isa::kArm ? EM_AARCH64 : EM_X86_64;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine == expected)
    return Unit{};
  const std::string found = header.e_machine == EM_AARCH64  ? std::string(isa_name(Isa::kArm))
                            : header.e_machine == EM_X86_64 ? std::string(isa_name(Isa::kX86))
                                                            : "another kind of CPU";
  return Error("made for ", found, ", this machine is ", isa_name(kHostIsa));
}

}  // namespace pruner
