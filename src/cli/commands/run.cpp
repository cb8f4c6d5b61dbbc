// pruner run: a module on the arrays of an .npz file.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/phase.h"
#include "deploy/loaded_module.h"

namespace pruner {

namespace {

struct Run {
  std::string path, inputs_file, outputs_file;
  int threads = 0;    // 0: the number the module was tuned for
  std::string phase;  // empty: the first one

  void add_to(CLI::App& app) {
    add_option(app, "--module", path).help("the module (made by `pruner compile`)");
    add_threads(app, threads);
    add_phase(app, phase);
    add_option(app, "--inputs", inputs_file).help("an .npz file with the inputs by name");
    add_option(app, "--outputs", outputs_file).help("the .npz file to write");
  }

  Result<int> run(const Invocation& call) const {
    if (path.empty()) return Error("run: --module is missing; `pruner compile` makes one");
    if (outputs_file.empty()) return Error("run: --outputs is missing; name an .npz file to write");
    TRY_ASSIGN(LoadedModule module, load_module(path, threads));
    TRY_ASSIGN(const int number, find_phase(module, phase));
    std::vector<NamedTensor> given;
    // A network without inputs needs no file.
    if (!inputs_file.empty()) {
      TRY_ASSIGN(given, read_tensors(inputs_file));
    }
    Result<std::vector<Tensor>> inputs = match_tensors(module.inputs(number), std::move(given));
    if (!inputs.ok())
      return Error(inputs_file.empty() ? "--inputs" : inputs_file, ": ", inputs.error().message());
    TRY_ASSIGN(std::vector<Tensor> outputs, module.run(*inputs, number));

    std::vector<NamedTensor> named;
    for (size_t i = 0; i < outputs.size(); ++i)
      named.push_back({module.outputs(number)[i].name, std::move(outputs[i])});
    TRY(write_tensors(outputs_file, named));
    Json shapes = Json::object();
    for (size_t i = 0; i < named.size(); ++i) {
      if (!call.json) fmt::print("{}\n", print(module.outputs(number)[i]));
      shapes[named[i].name] = named[i].tensor.shape();
    }
    if (call.json) fmt::print("{}\n", print_json(Json{{"outputs", shapes}}));
    return kDone;
  }
};

}  // namespace

RunCommand make_run(CLI::App& app) { return make_command<Run>(app); }

}  // namespace pruner
