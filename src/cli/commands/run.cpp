// pruner run: a module on the arrays of an .npz file.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "deploy/loaded_module.h"
#include "support/json.h"

namespace pruner {

Result<int> run_run(const Options& options) {
  if (options.module.empty()) return Error("run: --module is missing; `pruner compile` makes one");
  if (options.outputs.empty())
    return Error("run: --outputs is missing; name an .npz file to write");
  TRY_ASSIGN(LoadedModule module, load_module(options.module, static_cast<int>(options.threads)));
  std::vector<NamedTensor> given;
  if (!options.inputs.empty()) {
    TRY_ASSIGN(given, read_tensors(options.inputs));
  }
  Result<std::vector<Tensor>> inputs = match_tensors(module.inputs(), std::move(given));
  if (!inputs.ok())
    return Error(
        options.inputs.empty() ? "--inputs" : options.inputs, ": ", inputs.error().message());
  TRY_ASSIGN(std::vector<Tensor> outputs, module.run(*inputs));

  std::vector<NamedTensor> named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.push_back({module.outputs()[i].name, std::move(outputs[i])});
  TRY(write_tensors(options.outputs, named));
  Json shapes = Json::object();
  for (size_t i = 0; i < named.size(); ++i) {
    if (!options.json) fmt::print("{}\n", print(module.outputs()[i]));
    shapes[named[i].name] = named[i].tensor.shape();
  }
  if (options.json) fmt::print("{}\n", print_json(Json{{"outputs", shapes}}));
  return kDone;
}

}  // namespace pruner
