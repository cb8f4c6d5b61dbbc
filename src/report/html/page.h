// Sections -> one HTML file that needs nothing else: no network, no other file, and without scripts
// it is complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/html/section.h"

namespace pruner {

/// `PagePart` is a text that the build embeds, with its SHA-256 in hex digits
/// (cmake/report_page.cmake).
struct PagePart {
  std::string_view text, sha256;
};
/// Returns the style sheet.
PagePart page_style();
/// Returns Chart.js and our script that calls Chart.js; none if the build had no Chart.js.
std::vector<PagePart> page_scripts();

struct Page {
  std::string title;
  std::vector<HtmlSection> sections;
  int refresh_s = 0;  // the page reads itself again after so long; 0: never
};
std::string print_page(const Page& page);

}  // namespace pruner
