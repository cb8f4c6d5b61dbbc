// pruner check: which nodes of an ONNX file can be compiled, and why the others cannot.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/source.h"
#include "graph/pipeline/pipeline.h"

namespace pruner {

namespace {

struct Check {
  SourceOptions what;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_option(app, "MODEL.onnx", what.model_file).help("an ONNX file");
    what.add_shapes_to(app);
  }

  Result<int> run(const Invocation& call) const {
    if (what.model_file.empty()) return Error("check: give MODEL.onnx");
    TRY(check_options(what));
    TRY_ASSIGN(const NetworkOptions options, network_options(what));
    TRY_ASSIGN(const NodeSurvey survey, survey_onnx(what.model_file, options));
    Json unsupported = Json::array();
    const auto total = survey.num_nodes;
    const auto bad = static_cast<int64_t>(survey.unsupported.size());
    std::string text = fmt::format("{} of {} nodes can be compiled\n", total - bad, total);
    for (const UnsupportedNode& node : survey.unsupported) {
      unsupported.push_back(
          {{"index", node.index}, {"name", node.name}, {"op", node.op}, {"reason", node.reason}});
      text += fmt::format("node {:<6} {:<24} {}\n", node.index, node.op, node.reason);
    }
    for (const int64_t index : survey.found)
      text += fmt::format(
          "node {:<6} finds what the data say: its outputs' extents are those at most\n", index);
    Json json = {
        {"nodes", total}, {"unsupported", std::move(unsupported)}, {"found", survey.found}};
    if (bad > 0 && !survey.found.empty()) {
      // A node that finds extents can only be an output by itself, but the network may have stages.
      const auto stages = cut_into_stages(import_from(what.model_file, options));
      json["stages"] = stages.ok() && stages->has_value();
      text += stages.ok() && *stages ? fmt::format("as a whole it is compiled, in {} stages\n",
                                                   (*stages)->stages.size())
                                     : "";
    }
    return call.show(json, text);
  }
};

}  // namespace

RunCommand make_check(CLI::App& app) { return make_command<Check>(app); }

}  // namespace pruner
