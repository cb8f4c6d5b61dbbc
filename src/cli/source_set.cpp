#include "cli/source_set.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "graph/networks/networks.h"
#include "support/file.h"

namespace pruner {

// {"network": "bert_base", "seq_len": 256, "name": "bert_base_256"} or {"model": "x.onnx"};
// image_size, seq_len and batch_size as the options of these names.
static Result<SetMember> member_of(const Json& entry, const SourceOptions& source) {
  SetMember member{"", source};
  SourceOptions& of = member.source;
  if (!entry.is_object()) return Error("a network of the set is no object");
  for (const auto& [key, value] : entry.items()) {
    if (key == "name" && value.is_string()) {
      member.name = value;
    } else if (key == "network" && value.is_string()) {
      of.network = value;
    } else if (key == "model" && value.is_string()) {
      of.model_file = value;
    } else if (key == "image_size" && value.is_number_integer()) {
      of.sizes.image_size = value;
    } else if (key == "seq_len" && value.is_number_integer()) {
      of.sizes.sequence_length = value;
    } else if (key == "batch_size" && value.is_number_integer()) {
      of.sizes.batch_size = value;
    } else {
      const std::string known = "name, network, model, image_size, seq_len, batch_size";
      const std::string pair = "\"" + key + "\": " + print_json(value);
      return Error(pair, " says nothing about a network; use ", known);
    }
  }
  if (of.network.empty() == of.model_file.empty())
    return Error(print_json(entry), " needs one of \"network\" and \"model\"");
  if (member.name.empty()) {
    member.name =
        of.network.empty() ? std::filesystem::path(of.model_file).stem().string() : of.network;
  }
  return member;
}

/// Takes the sizes that were given for all networks of a list from those that they cannot be about:
/// the length of sequences from networks of images, and the other way round. A size that is about
/// none of the networks stays, so that reading them says so.
static void fit_sizes(const NetworkOptions& given, std::vector<SetMember>& members) {
  std::vector<bool> takes_images, takes_tokens;
  for (const SetMember& member : members) {
    // Neither: an ONNX file, an operator, or a network that there is not.
    const Result<InputSize> size = input_size(member.source.network);
    takes_images.push_back(size.ok() && size->is_image);
    takes_tokens.push_back(size.ok() && !size->is_image);
  }
  const auto fit = [&](int64_t NetworkOptions::*size,
                       const std::vector<bool>& takes,
                       const std::vector<bool>& takes_another) {
    if (std::ranges::find(takes, true) == takes.end()) return;
    for (size_t i = 0; i < members.size(); ++i)
      if (takes_another[i] && members[i].source.sizes.*size == given.*size)
        members[i].source.sizes.*size = 0;
  };
  fit(&NetworkOptions::image_size, takes_images, takes_tokens);
  fit(&NetworkOptions::sequence_length, takes_tokens, takes_images);
}

Result<std::vector<SetMember>> read_source_set(const std::string& path,
                                               const SourceOptions& source) {
  TRY_ASSIGN(const std::string text, read_file(path));
  const Result<Json> set = parse_json(text);
  if (!set.ok()) return Error(path, ": ", set.error().message());
  const Result<Json> networks = json_get<Json>(*set, "networks");
  if (!networks.ok()) return Error(path, ": ", networks.error().message());
  std::vector<SetMember> members;
  for (const Json& entry : *networks) {
    Result<SetMember> member = member_of(entry, source);
    if (!member.ok()) return Error(path, ": ", member.error().message());
    if (std::ranges::find(members, member->name, &SetMember::name) != members.end())
      return Error(path, ": ", member->name, " is there twice; give one of them a \"name\"");
    members.push_back(*std::move(member));
  }
  fit_sizes(source.sizes, members);
  return members;
}

void NetworkListOptions::add_to(CLI::App& app) {
  begin_group(app, OptionGroup::kInput);
  add_option(app, "MODEL.onnx", models).help("the networks: ONNX files, or names of built-in ones");
  add_option(app, "--set FILE", set)
      .help("the networks: a JSON file of them, such as examples/sets/pruner_paper.json");
  add_option(app, "--network NAMES", source.network)
      .help("built-in networks, with commas between them (`pruner networks` lists them)");
  source.add_others_to(app);
}

Result<std::vector<SetMember>> listed_networks(const NetworkListOptions& options) {
  if (!options.set.empty()) {
    if (!options.models.empty() || !options.source.network.empty())
      return Error("--set ", options.set, ": names the networks; others are given besides");
    TRY_ASSIGN(std::vector<SetMember> set, read_source_set(options.set, options.source));
    if (set.empty()) return Error(options.set, ": no network is in it");
    return set;
  }
  const std::vector<std::string> built_in = network_names();
  SourceOptions one = options.source;
  one.network.clear();
  std::vector<SetMember> networks;
  for (const std::string& model : options.models) {
    const bool named = std::ranges::find(built_in, model) != built_in.end();
    SourceOptions& of = networks.emplace_back(SetMember{"", one}).source;
    (named ? of.network : of.model_file) = model;
  }
  std::istringstream names(options.source.network);
  for (std::string name; std::getline(names, name, ',');)
    networks.emplace_back(SetMember{"", one}).source.network = name;
  if (networks.empty() && options.source.ops.size() > 1) {
    for (const std::string& op : options.source.ops)
      networks.emplace_back(SetMember{"", one}).source.ops = {op};
  }
  if (networks.empty()) networks.push_back({"", options.source});
  fit_sizes(options.source.sizes, networks);
  return networks;
}

Result<Source> read_member(const SetMember& member, const Target& target) {
  Result<Source> source = read_source(member.source, target);
  if (member.name.empty()) return source;
  if (!source.ok()) return Error(member.name, ": ", source.error().message());
  source->name = member.name;
  return source;
}

}  // namespace pruner
