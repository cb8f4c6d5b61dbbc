#include "codegen/loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "pruner/module_file.h"
#include "support/file.h"
#include "support/temporary_folder.h"
#include "target/host.h"

namespace pruner {

namespace {

class SharedKernel : public LoadedKernel {
 public:
  SharedKernel(void* library, PrunerKernel entry) : library_(library), entry_(entry) {}
  ~SharedKernel() override { dlclose(library_); }
  SharedKernel(const SharedKernel&) = delete;

  PrunerKernel entry() const override { return entry_; }

 private:
  void* library_;
  PrunerKernel entry_;
};

}  // namespace

bool is_shared_library(std::string_view elf) {
  Elf64_Ehdr header = {};
  if (elf.size() < sizeof header) return false;
  std::memcpy(&header, elf.data(), sizeof header);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_DYN;
}

Result<std::unique_ptr<LoadedKernel>> load_shared_library(const std::string& library,
                                                          const std::string& symbol) {
  const Error error("cannot load \"", symbol, "\": ");
  if (const Result<Unit> ours = check_machine(library); !ours.ok())
    return Error(error.message(), ours.error().message());
  may_use_tiles();  // before the first instruction on them
  // A file without a name: whatever becomes of this process, none is left.
  const int file = memfd_create("pruner-kernel", MFD_CLOEXEC);
  if (file < 0) return Error(error.message(), std::strerror(errno));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  FILE* const stream = fdopen(file, "w+");  // has the file from here on
  const bool written = std::fwrite(library.data(), 1, library.size(), stream) == library.size() &&
                       std::fflush(stream) == 0;
  if (!written) {
    const Error full(error.message(), std::strerror(errno));
    std::fclose(stream);
    return full;
  }
  const bool is_cut = pruner_file_is_cut(stream, library.size()) != 0;
  void* const handle = is_cut ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::fclose(stream);
  if (is_cut) return Error(error.message(), "the library ends before its end");
  if (handle == nullptr) return Error(error.message(), dlerror());
  void* const entry = dlsym(handle, symbol.c_str());
  if (entry == nullptr) {
    dlclose(handle);
    return Error(error.message(), "it is not in the library");
  }
  return std::unique_ptr<LoadedKernel>(
      std::make_unique<SharedKernel>(handle, reinterpret_cast<PrunerKernel>(entry)));
}

Result<std::string> link_kernel(const std::string& object, const std::string& symbol) {
  TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
  TRY(write_file(folder.path("kernel.o"), object));
  TRY(link_shared_library({folder.path("kernel.o")}, folder.path("kernel.so"), {symbol}));
  return read_file(folder.path("kernel.so"));
}

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
