// A page of docs/ with its commands → what they print today. A page has blocks of commands (```sh)
// and below each, if it shows any, a block of what they print, in which `...` is any text of a line
// and as a line any number of lines. Of a command below a line <!-- measured --> the numbers, and
// the widths that follow from them, are one run's.
#pragma once

#include <string>
#include <vector>

namespace pruner {

/// A page after its commands ran.
struct PageRun {
  std::string text;                 // with each block of output as it is printed today
  std::vector<std::string> faults;  // commands that failed, and output that is not there
};

/// Runs a page's commands, as in the root of the tree: in `folder`, which is made, and where every
/// file of the tree can be read. What was measured stays in `text` as it stands; `written_anew`:
/// nothing does, blocks that leave nothing out are all that is printed, others the same lines with
/// today's numbers.
PageRun run_page(const std::string& page, const std::string& folder, bool written_anew);

/// The lines of `shown`, each as it stands in `printed`; a fault says which does not. With
/// `measured`, lines that differ in numbers alone are one.
std::string shown_again(const std::string& shown,
                        const std::string& printed,
                        bool measured,
                        std::vector<std::string>& faults);

}  // namespace pruner
