// A file that names networks, {"networks": [{"network": "bert_base", "seq_len": 256}, ...]} -> each
// as the options that name it. What comparisons over several networks take.
#pragma once

#include <string>
#include <vector>

#include "cli/source.h"

namespace pruner {

struct SetMember {
  std::string name;  // of its files and in tables; no two of a set have the same
  Options options;
};

/// Reads the set in `path`; each member has `options` where the set says nothing else.
Result<std::vector<SetMember>> read_source_set(const std::string& path, const Options& options);
/// Reads the network, and calls it as its set does.
Result<Source> read_member(const SetMember& member, const Target& target);

}  // namespace pruner
