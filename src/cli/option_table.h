// The table of options, and how a value on the command line becomes a field's.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace pruner {

using Field = std::variant<bool Options::*,
                           int64_t Options::*,
                           double Options::*,
                           std::string Options::*,
                           std::vector<std::string> Options::*>;

/// One option of the program.
struct OptionRow {
  const char* flags;  // as CLI11 reads them; without dashes: an argument by its place
  Field field;
  uint64_t groups;
  const char* help;
  int64_t least = 0;  // of a number
  bool many = false;  // a list whose values may follow one flag: --logs a.json b.json

  bool of(const Command& command) const { return (groups & command.options) != 0 || groups == ~0u; }
};

/// Every option, in the order that help shows them.
std::span<const OptionRow> option_table();

/// Puts the values that were given for `flag` into the row's field; the error says what does not
/// fit.
Result<Unit> assign(const OptionRow& row,
                    const std::string& flag,
                    const std::vector<std::string>& values,
                    Options& options);

}  // namespace pruner
