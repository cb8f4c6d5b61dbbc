// Sets limits that worker processes give themselves, and says in words how a process ended.
#pragma once

#include <cstdint>
#include <string>

namespace pruner {

/// This process is killed when the thread that made it is gone.
void die_with_parent();

/// No core files; `memory_bytes` of address space more than now, without which operator new ends
/// the process with exit code ENOMEM; `cpu_s` of processor time (0: as before).
void limit_this_process(int64_t memory_bytes, double cpu_s);

/// Describes a status that waitpid() gives: "SIGSEGV", "exit code 3"; exit code ENOMEM is "out of
/// memory".
std::string describe_end(int wait_status);

}  // namespace pruner
