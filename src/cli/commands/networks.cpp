// pruner networks: the built-in networks, and `networks export`: one as an ONNX file.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/source.h"

namespace pruner {

Result<int> run_networks_list(const Options& options) {
  const std::vector<std::string> names = network_names();
  if (options.json) {
    fmt::print("{}\n", print_json(Json(names)));
  } else {
    for (const std::string& name : names) fmt::print("{}\n", name);
  }
  return kDone;
}

Result<int> run_networks_export(const Options& options) {
  if (options.name.empty())
    return Error("networks export: NAME is missing; `pruner networks` lists them");
  const std::string path = options.out_file.empty() ? options.name + ".onnx" : options.out_file;
  TRY_ASSIGN(const NetworkOptions network, network_options(options));
  TRY_ASSIGN(const Graph graph, build_network(options.name, network));
  TRY(export_onnx(graph, path));
  if (options.json) {
    fmt::print("{}\n", print_json(Json{{"file", path}}));
  } else {
    fmt::print("{}\n", path);
  }
  return kDone;
}

}  // namespace pruner
