// Functions of this library by their names, and how one seems to be missing: as if the library were
// older.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "rules.h"

namespace fakes {
namespace {

// This library, by the path that it was loaded from.
void* this_library() {
  Dl_info found;
  if (dladdr(reinterpret_cast<void*>(&find_function), &found) == 0) return nullptr;
  return dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

// dlsym() takes a symbol without a value for one that is only referred to.
void set_value(ElfW(Sym) * symbol, ElfW(Addr) value) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(symbol) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(symbol + 1);
  if (mprotect(reinterpret_cast<void*>(first), end - first, PROT_READ | PROT_WRITE) != 0) {
    perror("FAKE_CUDA: lacks");
    abort();
  }
  symbol->st_value = value;
}

}  // namespace

void* find_function(const std::string& name) {
  void* const library = this_library();
  for (const char* version : {"", "_v2", "_v3"}) {
    if (void* const function = dlsym(library, (name + version).c_str())) return function;
  }
  return nullptr;
}

void hide_functions(const std::vector<std::string>& names) {
  static auto* const hidden = new std::map<ElfW(Sym)*, ElfW(Addr)>;
  for (const auto& [symbol, value] : *hidden) set_value(symbol, value);
  hidden->clear();
  for (const std::string& name : names) {
    void* const function = find_function(name);
    Dl_info found;
    void* entry = nullptr;
    if (function == nullptr || dladdr1(function, &found, &entry, RTLD_DL_SYMENT) == 0) continue;
    auto* const symbol = static_cast<ElfW(Sym)*>(entry);
    hidden->emplace(symbol, symbol->st_value);
    set_value(symbol, 0);
  }
}

}  // namespace fakes
