// pruner networks: the built-in networks, and `networks export`: one as an ONNX file.
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/source.h"

namespace pruner {

namespace {

Result<int> list_networks(const Invocation& call) {
  const std::vector<std::string> names = network_names();
  return call.show(names, fmt::format("{}\n", fmt::join(names, "\n")));
}

struct Export {
  SourceOptions what;  // a built-in network's name and sizes only
  std::string out_file;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_option(app, "NETWORK", what.network).help("a built-in network");
    add_sizes(app, what.sizes);
    add_out_file(app, out_file, "the ONNX file to write", {FileKind::kOnnx});
  }

  Result<int> run(const Invocation& call) const {
    if (what.network.empty())
      return Error("networks export: NETWORK is missing; `pruner networks` lists them");
    TRY(check_options(what));
    const std::string path = out_file.empty() ? what.network + ".onnx" : out_file;
    TRY_ASSIGN(const Graph graph, read_network(what));
    TRY(export_onnx(graph, path));
    return call.show({{"file", path}}, path + "\n");
  }
};

}  // namespace

RunCommand make_networks_list(CLI::App&) { return list_networks; }
RunCommand make_networks_export(CLI::App& app) { return make_command<Export>(app); }

}  // namespace pruner
