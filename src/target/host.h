// Reads what the operating system says of this machine's CPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pruner {

struct HostCpu {
  std::string model_name;  // "AMD EPYC 9554 64-Core Processor"
  std::string mcpu;        // a row of kCpus
  std::string features;    // LLVM's: what it has and, "-", what its like usually has
  int cores = 1;           // PrunerCpuBudget::threads
  int64_t cache_line_bytes = 0, l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // 0: not known
};

/// Returns this machine's CPU, without AMX if the operating system does not give AMX.
HostCpu read_host();

/// Asks the operating system for the state of AMX's tiles, which must come before the first
/// instruction on them in a process; whether they may be used, here and in what forks.
bool may_use_tiles();

/// The CPU that the text of /proc/cpuinfo describes: model name, mcpu and features.
HostCpu parse_cpuinfo(std::string_view text);

}  // namespace pruner
