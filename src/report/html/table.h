// Rows of cells -> an HTML table, and rows with a length each -> bars.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pruner {

struct HtmlHead {
  std::string name;
  bool number = false;  // the column's cells are right-aligned
};

struct HtmlTable {
  std::vector<HtmlHead> heads;
  std::vector<std::vector<std::string>> rows;  // texts, which are escaped here
};

/// Prints the table in its own box, which scrolls if the table is too wide, and which keys can
/// reach. A screen reader calls the box `name`.
std::string html_table(const HtmlTable& table, const std::string& name);

struct HtmlBar {
  std::string name, text;  // subject of the bar, and its length in words
  double length = 0;       // at least 0
  int colour = 0;
};
/// Prints a row a bar, the longest as wide as there is room.
std::string html_bars(const std::vector<HtmlBar>& bars, const std::string& name);

/// "<dt>name</dt><dd>text</dd>" for each pair that has a text.
std::string html_facts(const std::vector<std::pair<std::string, std::string>>& facts);

/// Prints a part of a whole: "12.3 %"; "-" if there is none.
std::string percent(std::optional<double> share);

}  // namespace pruner
