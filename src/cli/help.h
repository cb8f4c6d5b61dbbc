// A command's help: what CLI11 knows of it -> lines of at most 80 columns, options by what they are
// about, commands by group.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/options.h"

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace pruner {

/// Returns the title of a group in help.
std::string_view title(OptionGroup group);
std::string_view title(CommandGroup group);  // empty for kHidden

/// Writes the help of every command below the app that it is given to.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// The words in lines of at most `width` columns; a longer word has a line to itself.
std::string wrap(std::string_view text, size_t width, size_t indent);

}  // namespace pruner
