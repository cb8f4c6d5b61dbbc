#include "report/html/sections.h"
#include "report/html/table.h"

namespace pruner {

HtmlSection about_section(const std::vector<std::pair<std::string, std::string>>& facts) {
  return section("about", "How it was made", "", html_facts(facts));
}

}  // namespace pruner
