// A file that names networks, {"networks": [{"network": "bert_base", "seq_len": 256}, ...]} -> each
// as the options that name it. What comparisons over several networks take.
#pragma once

#include <string>
#include <vector>

#include "cli/source.h"

namespace pruner {

struct SetMember {
  std::string name;  // of its files and in tables, no two of a set have the same; empty: its own
  Options options;
};

/// Reads the set in `path`; each member has `options` where the set says nothing else.
Result<std::vector<SetMember>> read_source_set(const std::string& path, const Options& options);
/// What `compare` works on: the networks of --set; else those by their place, then those of
/// --network a,b,c; else what one operator or DAG the options name.
Result<std::vector<SetMember>> listed_networks(const Options& options);
/// Reads the network, and calls it as its set does.
Result<Source> read_member(const SetMember& member, const Target& target);

}  // namespace pruner
