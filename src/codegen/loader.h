// Objects in memory -> callable kernels, linked in this process without code generation (JITLink).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pruner/kernel.h"
#include "support/result.h"
#include "target/target.h"

namespace pruner {

/// Owns the memory of linked code; kernels are valid as long as it lives.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  virtual PrunerKernel entry() const = 0;  // the function `symbol` of load_kernel()
};

/// Links an object for this machine, or loads it where it is a shared library. Errors: another
/// machine's, a symbol that is not in it, an object in a build without LLVM.
Result<std::unique_ptr<LoadedKernel>> load_kernel(const std::string& object,
                                                  const std::string& symbol);

/// Whether these bytes are an ELF file that has been linked as a shared library.
bool is_shared_library(std::string_view elf);
/// load_kernel() of a shared library.
Result<std::unique_ptr<LoadedKernel>> load_shared_library(const std::string& library,
                                                          const std::string& symbol);

/// Whether an ELF file, given its first bytes or all, is of this machine's instruction set; the
/// error says whose it is. Bytes that are no ELF file pass: other code has a better error for them.
Result<Unit> check_machine(std::string_view elf);

/// Links relocatable objects into a shared library at `path`: in this process when built with lld,
/// otherwise by `ld.lld`, `ld` or `cc` found on PATH; the error says that none of them is there.
Result<Unit> link_shared_library(const std::vector<std::string>& object_files,
                                 const std::string& path,
                                 const std::vector<std::string>& exported_symbols);

/// The object linked as a shared library that exports `symbol` alone, for a machine that cannot
/// link.
Result<std::string> link_kernel(const std::string& object, const std::string& symbol);

/// `SymbolNaming` maps a symbol of an object to the symbol's name in a static library.
using SymbolNaming = std::function<std::string(std::string_view symbol)>;

/// Writes relocatable objects as a static library at `path`. Each symbol that an object defines for
/// others is renamed in all objects. Returns where in the file the bytes of `symbol`, an old name,
/// begin. The build must have LLVM, or the parts of LLVM that linking needs.
Result<int64_t> write_static_library(const std::vector<std::string_view>& objects,
                                     const std::string& path,
                                     const SymbolNaming& naming,
                                     std::string_view symbol);

/// Assembles `text` (GNU syntax, .incbin allowed) to an object file's bytes, for this machine or
/// another one. The build must have LLVM, or the parts of LLVM that linking needs.
Result<std::string> assemble(const std::string& text, const Target& target = Target{});

}  // namespace pruner
