// The format of cubins as cuobjdump and readelf show it; NVIDIA documents none.
#include "codegen/cuda/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace pruner {
namespace {

constexpr uint16_t kCudaMachine = 190;  // ELF's EM_CUDA
constexpr std::string_view kText = ".text.", kShared = ".nv.shared.";
// If this section exists, each kernel's shared memory includes the bytes that the system keeps.
constexpr std::string_view kReserved = ".nv.shared.reserved.0";
constexpr int64_t kReservedBytes = 1024;

// Entries of .nv.info: form, attribute, 16 bits of a value or of the length of what follows.
constexpr uint8_t kSized = 4;
constexpr uint8_t kFrameBytes = 0x11, kRegisters = 0x2f;  // (symbol, value), 32 bits each

// An ELF-64 file that may be cut off anywhere: no read goes beyond its end.
class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes) {}

  Result<Unit> read() {
    const std::optional<Elf64_Ehdr> header = get<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_machine != kCudaMachine) {
      return Error("this is no cubin");
    }
    for (uint64_t i = 0; i < header->e_shnum; ++i) {
      const auto section = get<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) return cut_off();
      sections_.push_back(*section);
    }
    if (header->e_shstrndx >= sections_.size()) return cut_off();
    for (const Elf64_Shdr& section : sections_) {
      const bool empty = section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL;
      if (!empty && !holds(section.sh_offset, section.sh_size)) return cut_off();
      names_.push_back(text(sections_[header->e_shstrndx], section.sh_name));
    }
    return Unit{};
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const std::string& name(size_t section) const { return names_[section]; }
  const Elf64_Shdr* find(std::string_view name) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    return at == names_.end() ? nullptr : &sections_[at - names_.begin()];
  }

  template <typename T>
  std::optional<T> get(uint64_t offset) const {
    if (!holds(offset, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  /// The name of a symbol; empty: there is none of that number.
  std::string symbol(uint32_t number) const {
    const Elf64_Shdr* table = find(".symtab");
    if (!table || table->sh_link >= sections_.size()) return "";
    if ((number + uint64_t{1}) * sizeof(Elf64_Sym) > table->sh_size) return "";
    const auto entry = get<Elf64_Sym>(table->sh_offset + number * sizeof(Elf64_Sym));
    return entry ? text(sections_[table->sh_link], entry->st_name) : "";
  }

  static Error cut_off() { return Error("a cubin that is cut off"); }

 private:
  // No sum here, which a broken file could make overflow.
  bool holds(uint64_t offset, uint64_t bytes) const {
    return offset <= bytes_.size() && bytes <= bytes_.size() - offset;
  }
  std::string text(const Elf64_Shdr& strings, uint64_t offset) const {
    if (offset >= strings.sh_size || !holds(strings.sh_offset, strings.sh_size)) return "";
    const std::string_view rest =
        bytes_.substr(strings.sh_offset + offset, strings.sh_size - offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::string> names_;
};

}  // namespace

Result<std::vector<CubinKernel>> read_cubin(std::string_view cubin) {
  Elf elf(cubin);
  TRY(elf.read());
  const int64_t reserved = elf.find(kReserved) ? kReservedBytes : 0;
  std::vector<CubinKernel> kernels;
  for (size_t i = 0; i < elf.sections().size(); ++i) {
    const std::string& name = elf.name(i);
    if (!name.starts_with(kText)) continue;
    CubinKernel& kernel = kernels.emplace_back();
    kernel.name = name.substr(kText.size());
    const Elf64_Shdr* shared = elf.find(std::string(kShared) + kernel.name);
    if (shared) kernel.shared_bytes = static_cast<int64_t>(shared->sh_size) - reserved;
  }
  std::sort(kernels.begin(), kernels.end(), [](const CubinKernel& a, const CubinKernel& b) {
    return a.name < b.name;
  });
  const Elf64_Shdr* facts = elf.find(".nv.info");
  if (!facts) return kernels;
  const uint64_t end = facts->sh_offset + facts->sh_size;
  for (uint64_t at = facts->sh_offset; at + 4 <= end;) {
    const uint8_t form = *elf.get<uint8_t>(at), attribute = *elf.get<uint8_t>(at + 1);
    const uint16_t bytes = form == kSized ? *elf.get<uint16_t>(at + 2) : uint16_t{0};
    const auto symbol = elf.get<uint32_t>(at + 4), value = elf.get<uint32_t>(at + 8);
    at += 4 + uint64_t{bytes};
    if (form != kSized || bytes < 8 || at > end || !symbol || !value) continue;
    const std::string name = elf.symbol(*symbol);
    for (CubinKernel& kernel : kernels) {
      if (kernel.name != name) continue;
      if (attribute == kRegisters) kernel.registers = *value;
      if (attribute == kFrameBytes) kernel.stack_bytes = *value;
    }
  }
  return kernels;
}

}  // namespace pruner
