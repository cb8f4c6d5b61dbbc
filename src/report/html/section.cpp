#include "report/html/section.h"

#include <fmt/format.h>

#include "report/html/escape.h"

namespace pruner {

HtmlSection section(std::string_view id,
                    std::string_view title,
                    std::string_view lead,
                    std::string_view html) {
  const std::string paragraph =
      lead.empty() ? "" : fmt::format("<p class=\"lead\">{}</p>\n", html_text(lead));
  return {std::string(id),
          std::string(title),
          fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n"
                      "<h2 id=\"{0}-title\">{1}</h2>\n{2}{3}</section>\n",
                      id,
                      html_text(title),
                      paragraph,
                      html)};
}

}  // namespace pruner
