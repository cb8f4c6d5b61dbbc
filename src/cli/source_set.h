// A file that names networks, {"networks": [{"network": "bert_base", "seq_len": 256}, ...]} -> each
// as the options that name it. What comparisons over several networks take.
#pragma once

#include <string>
#include <vector>

#include "cli/source.h"

namespace pruner {

/// A network of a set.
struct SetMember {
  std::string name;  // of its files and in tables, no two of a set have the same; empty: its own
  SourceOptions source;
};

/// The networks of `compare`; --network has several names, or one operator or DAG is given.
struct NetworkListOptions {
  std::vector<std::string> models;
  std::string set;  // a file
  SourceOptions source;

  void add_to(CLI::App& app);
};

/// Reads the set in `path`; each member has the sizes of `source` where the set says nothing else.
Result<std::vector<SetMember>> read_source_set(const std::string& path,
                                               const SourceOptions& source);
/// What `compare` works on: the networks of --set; else those by their place, then those of
/// --network a,b,c; else what one operator or DAG the options name.
Result<std::vector<SetMember>> listed_networks(const NetworkListOptions& options);
/// Reads the network, and calls it as its set does.
Result<Source> read_member(const SetMember& member, const Target& target);

}  // namespace pruner
