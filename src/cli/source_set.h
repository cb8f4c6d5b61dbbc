// A file that names networks, {"networks": [{"network": "bert_base", "seq_len": 256}, ...]} -> each
// network as the options that name it. Comparisons over several networks read such files.
#pragma once

#include <string>
#include <vector>

#include "cli/source.h"

namespace pruner {

/// A network of a set.
struct SetMember {
  std::string name;  // name in files and tables, unique in its set; empty: the source's own
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
/// Returns the networks of `compare`: those of --set, else those given by place and by --network
/// a,b,c. If there are none, it returns the DAG or the operators that the options name, each by
/// itself.
Result<std::vector<SetMember>> listed_networks(const NetworkListOptions& options);
/// Reads the source of a member; the source has the member's name if that is not empty.
Result<Source> read_member(const SetMember& member, const Target& target);

}  // namespace pruner
