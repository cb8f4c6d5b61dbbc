#include "report/html/page.h"

#include <fmt/format.h>

#include "report/html/escape.h"

namespace pruner {

namespace {

/// Only what we embed may run or style: a name that got through the escaping does nothing.
std::string content_security_policy(const std::vector<PagePart>& scripts) {
  const auto source = [](const PagePart& part) {
    return fmt::format(" 'sha256-{}'", base64_of_hex(part.sha256));
  };
  std::string policy = "default-src 'none'; style-src" + source(page_style()) + "; script-src";
  for (const PagePart& script : scripts) policy += source(script);
  if (scripts.empty()) policy += " 'none'";
  return policy + "; base-uri 'none'; form-action 'none'";
}

std::string contents(const Page& page) {
  std::string links;
  for (const HtmlSection& section : page.sections)
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id, html_text(section.title));
  return "<nav aria-label=\"Sections\"><ul>\n" + links + "</ul></nav>\n";
}

}  // namespace

std::string print_page(const Page& page) {
  const std::vector<PagePart> scripts = page_scripts();
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n",
                      content_security_policy(scripts));
  if (page.refresh_s > 0)
    html += fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", page.refresh_s);
  html += fmt::format(
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<a class=\"skip\" href=\"#main\">Skip to the report</a>\n"
      "<header><h1>{0}</h1>\n",
      html_text(page.title),
      page_style().text);
  html += contents(page) + "</header>\n<main id=\"main\" tabindex=\"-1\">\n";
  for (const HtmlSection& section : page.sections) html += section.html;
  html += "</main>\n";
  for (const PagePart& script : scripts) html += fmt::format("<script>{}</script>\n", script.text);
  return html + "</body>\n</html>\n";
}

}  // namespace pruner
