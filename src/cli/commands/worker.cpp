// pruner worker: the processes that the measurer starts; they speak over standard input and output.
#include "cli/commands.h"
#include "measure/measure.h"

namespace pruner {

Result<int> run_worker_build(const Options&) { return run_build_worker(); }
Result<int> run_worker_run(const Options&) { return run_runner(); }
Result<int> run_worker_device(const Options&) { return run_device_worker(); }

}  // namespace pruner
