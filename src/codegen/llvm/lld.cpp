// The door to lld. Its state is global: one link at a time, and none after one that crashed.
#if PRUNER_LLD
#include <lld/Common/Driver.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/raw_ostream.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

#include "codegen/linker.h"

LLD_HAS_DRIVER(elf)

namespace pruner {

Result<Unit> run_lld(const std::vector<std::string>& command) {
  static std::mutex mutex;
  static bool usable = true;
  const std::lock_guard lock(mutex);
  if (!usable) return Error("lld cannot be used again after it crashed");
  std::vector<const char*> argv;
  for (const std::string& arg : command) argv.push_back(arg.c_str());
  std::string output;
  llvm::raw_string_ostream out(output);
  // Without it what is fatal to lld ends this process, without a word.
  llvm::CrashRecoveryContext::Enable();
  const lld::Result result = lld::lldMain(argv, out, out, {{lld::Gnu, &lld::elf::link}});
  llvm::CrashRecoveryContext::Disable();
  usable = result.canRunAgain;
  if (result.retCode == 128 + SIGBUS) return Error(std::strerror(ENOSPC));  // in lld's mapping
  if (result.retCode != 0) return Error(output);
  return Unit{};
}

}  // namespace pruner
#endif
