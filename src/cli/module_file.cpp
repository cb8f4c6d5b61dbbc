#include "cli/module_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cli/file_kind.h"
#include "deploy/link_module.h"
#include "pruner/module_file.h"
#include "support/mapped_file.h"

namespace pruner {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kElf = ELFMAG, kArchive = "!<arch>\n";

/// Returns the structure at a byte of a file; nothing where the file ends before the structure
/// does.
template <typename T>
std::optional<T> read_at(std::string_view file, uint64_t place) {
  if (place > file.size() || sizeof(T) > file.size() - place) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + place, sizeof value);
  return value;
}

/// Whether a shared library exports a function. A program that only holds the name does not.
bool exports(std::string_view file, std::string_view function) {
  const auto head = read_at<Elf64_Ehdr>(file, 0);
  if (!head || head->e_type != ET_DYN) return false;
  const auto section_at = [&](uint64_t number) {
    return read_at<Elf64_Shdr>(file, head->e_shoff + number * sizeof(Elf64_Shdr));
  };
  for (uint64_t number = 0; number < head->e_shnum; ++number) {
    const auto symbols = section_at(number);
    if (!symbols || symbols->sh_type != SHT_DYNSYM) continue;
    const auto names = section_at(symbols->sh_link);
    if (!names) return false;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(file, symbols->sh_offset + at);
      if (!symbol) return false;
      const uint64_t name = names->sh_offset + symbol->st_name;
      const bool defined = symbol->st_shndx != SHN_UNDEF;
      if (defined && name < file.size() && file.substr(name).starts_with(function)) return true;
    }
  }
  return false;
}

/// Whether a file is a shared library that `pruner compile` has made. Modules of older versions
/// have no checksum behind them, but all export their entry point.
bool is_shared_module(std::string_view file) {
  if (!file.starts_with(kElf)) return false;
  if (file.size() >= sizeof(PrunerChecksum)) {
    const std::string_view end = file.substr(file.size() - sizeof(PrunerChecksum));
    if (end.starts_with(PRUNER_CHECKSUM_MAGIC)) return true;
  }
  return exports(file, std::string_view("pruner_module_create\0", 21));
}

/// Whether a file is a static library that `pruner compile` has made: the table of symbols, the
/// archive's first member, has the plan of a module.
bool is_static_module(std::string_view file) {
  constexpr size_t kMemberHead = 60, kSizePlace = 48, kSizeDigits = 10;
  if (!file.starts_with(kArchive) || file.size() < kArchive.size() + kMemberHead) return false;
  const std::string_view digits = file.substr(kArchive.size() + kSizePlace, kSizeDigits);
  size_t bytes = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  constexpr std::string_view kPlan("__pruner_plan\0", 14);
  return file.substr(kArchive.size() + kMemberHead, bytes).find(kPlan) != std::string_view::npos;
}

/// Whether a file is a header that `pruner compile` has written beside a static library.
bool is_module_header(std::string_view file) {
  const std::string first_line = static_header("x");
  return file.starts_with(first_line.substr(0, first_line.find("libx.a")));
}

/// An error where there is a file at `path` that is not one of ours by `ours`.
Result<Unit> check_replaceable(const std::string& path, bool (*ours)(std::string_view file)) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return Unit{};
  TRY_ASSIGN(const MappedFile mapped, MappedFile::open(path));
  const std::string_view file = mapped.bytes();
  if (file.empty() || ours(file)) return Unit{};
  return Error(fmt::format(
      "{}: is {} and not made by `pruner compile`; choose another name with -o, or replace it with "
      "--force",
      path,
      print(kind_of(path, file), file)));
}

}  // namespace

void ModuleFileOptions::add_to(CLI::App& app, const char* help) {
  begin_group(app, OptionGroup::kFiles);
  add_option(app, "-o,--out-file FILE", file).writes().help(help);
  add_option(app, "--force", force)
      .help("let the module replace a file that is no module, but none that the command reads");
}

Result<Unit> ModuleFileOptions::check(const std::string& path) const {
  if (force) return Unit{};
  TRY(check_replaceable(path, [](std::string_view bytes) {
    return is_shared_module(bytes) || is_static_module(bytes);
  }));
  const std::string library = static_name(path);
  if (library.empty()) return Unit{};
  return check_replaceable((fs::path(path).parent_path() / (library + ".h")).string(),
                           is_module_header);
}

}  // namespace pruner
