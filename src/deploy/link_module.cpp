#include "deploy/link_module.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>

#include "codegen/loader.h"
#include "pruner/module_file.h"
#include "support/file.h"
#include "support/mapped_file.h"

// The relocatable object of src/runtime/module/ (cmake/module_runtime.cmake), for this machine and
// for the other instruction set; that one is empty without a compiler for it.
extern "C" const char pruner_module_runtime_start[], pruner_module_runtime_end[],
    pruner_module_other_runtime_start[], pruner_module_other_runtime_end[];

namespace pruner {

static std::string_view module_runtime(Isa isa) {
  if (isa == kHostIsa) return {pruner_module_runtime_start, pruner_module_runtime_end};
  return {pruner_module_other_runtime_start, pruner_module_other_runtime_end};
}

Result<Unit> check_linkable(Isa isa) {
  if (!module_runtime(isa).empty()) return Unit{};
  return Error("no modules for ",
               isa_name(isa),
               " in this build: ",
               triple_of(isa),
               "-gcc was not there when it was configured");
}

// The functions of pruner/module.h; all else is hidden.
static const std::vector<std::string> kExported = {
    "pruner_module_abi",          "pruner_module_create",      "pruner_module_destroy",
    "pruner_module_error",        "pruner_module_threads",     "pruner_module_num_phases",
    "pruner_module_phase",        "pruner_module_run_phase",   "pruner_module_num_states",
    "pruner_module_state",        "pruner_module_read_state",  "pruner_module_write_state",
    "pruner_module_reset",        "pruner_module_num_inputs",  "pruner_module_num_outputs",
    "pruner_module_input",        "pruner_module_output",      "pruner_module_run",
    "pruner_module_num_kernels",  "pruner_module_kernel",      "pruner_module_kernel_precision",
    "pruner_module_run_profiled", "pruner_module_num_symbols", "pruner_module_symbol",
    "pruner_module_shapes",       "pruner_module_extents",     "pruner_module_run_shaped",
    "pruner_module_kernels_at",   "pruner_module_checked",     "pruner_module_numerics",
    "pruner_module_output_dims",  "pruner_module_api",         "pruner_module_time_kernels",
    "pruner_module_create_with",  "pruner_module_device_kind", "pruner_module_device",
    "pruner_module_execute",      "pruner_module_wait",
};

// Returns the place in the file of the symbol kWeightsSymbol, which has `bytes` bytes.
static Result<int64_t> place_of_weights(const std::string& path, uint64_t bytes) {
  TRY_ASSIGN(const MappedFile mapped, MappedFile::open(path));
  const char* const file = mapped.bytes().data();  // written by the linker
  const auto& head = *reinterpret_cast<const Elf64_Ehdr*>(file);
  const std::span sections(reinterpret_cast<const Elf64_Shdr*>(file + head.e_shoff), head.e_shnum);
  const std::span segments(reinterpret_cast<const Elf64_Phdr*>(file + head.e_phoff), head.e_phnum);
  const auto table = std::ranges::find(sections, uint32_t{SHT_SYMTAB}, &Elf64_Shdr::sh_type);
  if (table == sections.end()) return Error(path, ": the linker has dropped the symbols");
  const char* const names = file + sections[table->sh_link].sh_offset;
  const std::span symbols(reinterpret_cast<const Elf64_Sym*>(file + table->sh_offset),
                          table->sh_size / sizeof(Elf64_Sym));
  const auto symbol = std::ranges::find_if(symbols, [&](const Elf64_Sym& s) {
    return std::string_view(names + s.st_name) == kWeightsSymbol;
  });
  if (symbol == symbols.end()) return Error(path, ": the linker has dropped ", kWeightsSymbol);
  for (const Elf64_Phdr& segment : segments) {
    const uint64_t at = symbol->st_value - segment.p_vaddr;  // wraps where it is before
    if (segment.p_type == PT_LOAD && at <= segment.p_filesz && bytes <= segment.p_filesz - at)
      return static_cast<int64_t>(segment.p_offset + at);
  }
  return Error(path, ": the linker has left no place for the weights");
}

static Result<std::string> plan_object(const ModulePlan& plan, bool has_weights) {
  Target target;
  target.isa = plan.isa;
  target.mcpu = "generic";  // the text has no instructions
  return assemble(plan_text(plan, has_weights), target);
}

Result<int64_t> link_module(const ModulePlan& plan,
                            const std::vector<std::string_view>& kernels,
                            const TemporaryFolder& folder,
                            const std::string& path) {
  std::vector<std::string> files;
  const auto add_object = [&](std::string_view bytes) {
    files.push_back(folder.path(std::to_string(files.size()) + ".o"));
    return write_file(files.back(), bytes);
  };
  {
    TRY_ASSIGN(const std::string object, plan_object(plan, false));
    TRY(add_object(object));
  }
  TRY(add_object(module_runtime(plan.isa)));
  for (const std::string_view kernel : kernels) TRY(add_object(kernel));
  TRY(link_shared_library(files, path, kExported));
  return place_of_weights(path, static_cast<uint64_t>(plan.weight_bytes));
}

static constexpr std::string_view kPrefix = "pruner_module_";

// "NAME_run" of an exported function, "NAME__x" of what the objects share among themselves.
static std::string name_in(const std::string& library, std::string_view symbol) {
  if (std::ranges::find(kExported, symbol) != kExported.end())
    return library + "_" + std::string(symbol.substr(kPrefix.size()));
  return library + "__" + std::string(symbol);
}

Result<int64_t> archive_module(const ModulePlan& plan,
                               const std::vector<std::string_view>& kernels,
                               const std::string& name,
                               const std::string& path) {
  TRY_ASSIGN(const std::string object, plan_object(plan, true));
  std::vector<std::string_view> objects = {object, module_runtime(plan.isa)};
  objects.insert(objects.end(), kernels.begin(), kernels.end());
  const auto naming = [&](std::string_view symbol) { return name_in(name, symbol); };
  return write_static_library(objects, path, naming, kWeightsSymbol);
}

std::string static_header(const std::string& name) {
  std::string text = fmt::format(
      "/* The functions of a network in lib{0}.a, made by `pruner compile`: what they do is said "
      "in\n"
      "   pruner/module.h. Link with the library, -lpthread and -ldl. */\n"
      "#ifndef {0}_H_\n#define {0}_H_\n\n#include \"pruner/module.h\"\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
      name);
  for (const std::string& function : kExported)
    text += fmt::format("extern __typeof__({}) {};\n", function, name_in(name, function));
  return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

std::string static_name(const std::string& path) {
  const std::filesystem::path file(path);
  if (file.extension() != ".a") return "";
  std::string name = file.stem().string();
  if (name.starts_with("lib")) name.erase(0, 3);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  const bool begins = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  return begins ? name : "module_" + name;
}

Result<Unit> add_checksum(const std::string& path) {
  const auto failed = [&] {
    return Error(path, ": cannot write its checksum: ", std::strerror(errno));
  };
  const auto close = [](FILE* file) { std::fclose(file); };
  const std::unique_ptr<FILE, decltype(close)> file(std::fopen(path.c_str(), "r+b"), close);
  if (file == nullptr || std::fseek(file.get(), 0, SEEK_END) != 0) return failed();
  PrunerChecksum checksum;
  const auto bytes = static_cast<uint64_t>(std::ftell(file.get()));
  if (pruner_file_checksum(file.get(), bytes, &checksum) != 0 ||
      std::fseek(file.get(), 0, SEEK_END) != 0 ||
      std::fwrite(&checksum, sizeof checksum, 1, file.get()) != 1 || std::fflush(file.get()) != 0) {
    return failed();
  }
  return Unit{};
}

}  // namespace pruner
