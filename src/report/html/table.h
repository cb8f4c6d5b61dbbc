// Rows of cells -> an HTML table, and rows with a length each -> bars.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pruner {

struct HtmlHead {
  std::string name;
  bool number = false;  // its cells stand at the right
};

struct HtmlTable {
  std::vector<HtmlHead> heads;
  std::vector<std::vector<std::string>> rows;  // texts, which are escaped here
};

/// The table in a box of its own, which scrolls where it is too wide and keys can reach. `name`:
/// what a screen reader calls it.
std::string html_table(const HtmlTable& table, const std::string& name);

struct HtmlBar {
  std::string name, text;  // of what, and how much in words
  double length = 0;       // at least 0
  int colour = 0;
};
/// A row each, the longest as wide as there is room.
std::string html_bars(const std::vector<HtmlBar>& bars, const std::string& name);

/// "<dt>name</dt><dd>text</dd>" for each pair that has a text.
std::string html_facts(const std::vector<std::pair<std::string, std::string>>& facts);

/// A part of a whole: "12.3 %"; "-" where there is none.
std::string percent(std::optional<double> share);

}  // namespace pruner
