// pruner worker: the processes that the measurer starts; they speak over standard input and output.
#include "cli/commands.h"
#include "measure/measure.h"

namespace pruner {

RunCommand make_worker_build(CLI::App&) {
  return [](const Invocation&) { return run_build_worker(); };
}
RunCommand make_worker_run(CLI::App&) {
  return [](const Invocation&) { return run_runner(); };
}
RunCommand make_worker_device(CLI::App&) {
  return [](const Invocation&) { return run_device_worker(); };
}

}  // namespace pruner
