// Links objects in this process by JITLink: no target is initialised and no code is generated.
#include "codegen/loader.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>

#include "target/host.h"

namespace pruner {
namespace {

namespace orc = llvm::orc;

class LinkedKernel : public LoadedKernel {
 public:
  explicit LinkedKernel(std::unique_ptr<orc::SelfExecutorProcessControl> process)
      : session_(std::move(process)), layer_(session_) {
    session_.setErrorReporter(
        [this](llvm::Error error) { problems_ += llvm::toString(std::move(error)) + " "; });
  }
  ~LinkedKernel() override { llvm::consumeError(session_.endSession()); }

  llvm::Error link(const std::string& object, const std::string& symbol) {
    // A bare one: it sees no symbol of this process, as an artifact refers to none.
    orc::JITDylib& library = session_.createBareJITDylib("kernel");
    if (llvm::Error error =
            layer_.add(library, llvm::MemoryBuffer::getMemBufferCopy(object, symbol))) {
      return error;
    }
    auto found = session_.lookup({&library}, symbol);
    if (!found) return found.takeError();
    entry_ = found->getAddress().toPtr<PrunerKernel>();
    return llvm::Error::success();
  }
  PrunerKernel entry() const override { return entry_; }
  const std::string& problems() const { return problems_; }

 private:
  orc::ExecutionSession session_;
  orc::ObjectLinkingLayer layer_;
  PrunerKernel entry_ = nullptr;
  std::string problems_;  // problems that the session reported; they stand before the error
};

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_kernel(const std::string& object,
                                                  const std::string& symbol) {
  if (is_shared_library(object)) return load_shared_library(object, symbol);
  if (const Result<Unit> ours = check_machine(object); !ours.ok())
    return Error("cannot link \"", symbol, "\": ", ours.error().message());
  may_use_tiles();  // before the first instruction on them
  auto process = orc::SelfExecutorProcessControl::Create();
  if (!process) return Error("cannot link \"", symbol, "\": ", llvm::toString(process.takeError()));
  auto kernel = std::make_unique<LinkedKernel>(std::move(*process));
  if (llvm::Error error = kernel->link(object, symbol)) {
    return Error(
        "cannot link \"", symbol, "\": ", kernel->problems(), llvm::toString(std::move(error)));
  }
  return std::unique_ptr<LoadedKernel>(std::move(kernel));
}

}  // namespace pruner
