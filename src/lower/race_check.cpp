#include "lower/race_check.h"

namespace pruner {

std::string RaceCheck::text(const Race& race) const {
  const std::string block = std::to_string(block_ - first_block_);
  const std::string a = std::to_string(race.a), b = std::to_string(race.b);
  switch (race.kind) {
    case Race::kThreads:
      return (race.a == kSeveral ? "several threads" : "thread " + a) + " " + race.does +
             " and thread " + b + " " + race.also_does + " it between two barriers of block " +
             block;
    case Race::kCopy:
      return "thread " + b + " " + race.also_does + " it before thread " + a +
             ", which copies to it, has waited for that in block " + block;
    case Race::kBlocks:
      return "block " + a + " " + race.does + " and block " + b + " " + race.also_does +
             " it in one launch";
    case Race::kProduct:
      return "thread " + b + " writes it before a group has waited for the products that read it" +
             " in block " + block;
    case Race::kFence:
      return "thread " + a + " writes it and the group of thread " + b +
             " multiplies it with no fence of shared memory and barrier after in block " + block;
  }
  return "";
}

}  // namespace pruner
