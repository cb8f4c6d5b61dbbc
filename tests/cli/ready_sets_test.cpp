// label: slow
// The sets of examples/sets: every network in them is built at its size and cut into tasks.
#include "cli/source_set.h"

#include <algorithm>

#include "golden.h"

namespace pruner {
namespace {

// "resnet_50 1x3x224x224: 27 tasks, 56 calls": a network, its input, and what tuning it means.
std::vector<std::string> networks_of(const std::string& name) {
  std::vector<std::string> lines;
  const auto set = read_source_set(test_path("../examples/sets/" + name), {});
  EXPECT_TRUE(set.ok()) << set.error().message();
  const Result<Target> target = parse_target("llvm -mcpu=x86-64-v3", 2);
  if (!set.ok() || !target.ok()) return lines;
  for (const SetMember& member : *set) {
    const Result<Source> source = read_member(member, *target);
    EXPECT_TRUE(source.ok()) << source.error().message();
    if (!source.ok()) continue;
    const Partition& cut = source->partition();
    int64_t calls = 0;
    for (const WeightedTask& task : source->tasks) calls += task.weight;
    EXPECT_EQ(calls, std::ranges::count(cut.groups, true, &Group::complex));
    lines.push_back(source->name + " " + print_shape(cut[cut.inputs[0]].shape) + ": " +
                    std::to_string(source->tasks.size()) + " tasks, " + std::to_string(calls) +
                    " calls");
  }
  return lines;
}

TEST(ReadySets, HoldTheNetworksOfThePapers) {
  std::string text;
  for (const char* set : {"pruner_paper.json", "transfer_tuning.json"}) {
    text += std::string(set) + "\n";
    for (const std::string& line : networks_of(set)) text += "  " + line + "\n";
  }
  EXPECT_GOLDEN("cli/ready_sets.txt", text);
}

}  // namespace
}  // namespace pruner
