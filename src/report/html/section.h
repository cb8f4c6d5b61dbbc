// The frame of a section.
#pragma once

#include <string>
#include <string_view>

namespace pruner {

struct HtmlSection {
  std::string id, title;
  std::string html;  // all of it, its heading included
};

/// `html`: its content; `lead`: what its numbers are, as text.
HtmlSection section(std::string_view id,
                    std::string_view title,
                    std::string_view lead,
                    std::string_view html);

}  // namespace pruner
