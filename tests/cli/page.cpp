#include "cli/page.h"

#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <regex>
#include <sstream>
#include <string_view>

#include "golden.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRest = "...";

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    line.erase(line.find_last_not_of(" \r") + 1);
    lines.push_back(line);
  }
  return lines;
}

// Returns the pattern of a printed line for a part of a shown line; `measured`: with any numbers,
// and any widths of columns.
std::string pattern_of(const std::string& part, bool measured) {
  static const std::regex kToken(R"((-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(\s+)|(-{2,})|([^\w\s]))");
  static constexpr const char* kAny[] = {R"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)", R"(\s+)", "-{2,}"};
  std::string pattern;
  auto rest = part.begin();
  for (std::sregex_iterator token(part.begin(), part.end(), kToken), end; token != end; ++token) {
    pattern.append(rest, (*token)[0].first);
    rest = (*token)[0].second;
    size_t kind = 0;
    while (!(*token)[kind + 1].matched) ++kind;
    if (measured && kind < std::size(kAny)) {
      pattern += kAny[kind];
    } else {
      for (const char each : token->str())
        pattern.append(std::isalnum(each) || std::isspace(each) ? "" : "\\") += each;
    }
  }
  return pattern.append(rest, part.end());
}

// A line as a page shows it: fixed parts, and between them any text.
std::regex shown_line(const std::string& shown, bool measured) {
  std::string pattern;
  size_t begin = 0;
  for (size_t end; (end = shown.find(kRest, begin)) != std::string::npos;
       begin = end + kRest.size())
    pattern += "(" + pattern_of(shown.substr(begin, end - begin), measured) + ").*";
  return std::regex(pattern + "(" + pattern_of(shown.substr(begin), measured) + ")");
}

// `printed`, without what the page leaves out of it; nothing if it is another line.
std::optional<std::string> as_shown(const std::string& printed, const std::regex& shown) {
  std::smatch parts;
  if (!std::regex_match(printed, parts, shown)) return std::nullopt;
  std::string line = parts[1];
  for (size_t i = 2; i < parts.size(); ++i) line.append(kRest).append(parts[i].str());
  return line;
}

// `part` as it stands in `lines` from `at` on, which then is behind it, or nothing; only there if
// `anchored`.
std::optional<std::string> find(const std::vector<std::string>& lines,
                                const std::vector<std::regex>& part,
                                size_t& at,
                                bool anchored) {
  for (size_t begin = at; begin + part.size() <= lines.size(); ++begin) {
    std::string text;
    size_t same = 0;
    for (; same < part.size(); ++same) {
      const std::optional<std::string> line = as_shown(lines[begin + same], part[same]);
      if (!line) break;
      text += *line + "\n";
    }
    at = begin + same;
    if (same == part.size()) return text;
    if (anchored) return std::nullopt;
  }
  return std::nullopt;
}

struct Output {
  int status = -1;
  std::string text;
};

Output run_shell(const std::string& script) {
  Output output;
  FILE* pipe = popen(script.c_str(), "r");
  if (pipe == nullptr) return output;
  char bytes[4096];
  for (size_t count; (count = fread(bytes, 1, sizeof bytes, pipe)) > 0;)
    output.text.append(bytes, count);
  const int status = pclose(pipe);
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

// A folder that looks like the root of the tree, with this build in its place.
void make_root(const std::string& folder) {
  fs::create_directories(folder + "/build");
  for (const auto& entry : fs::directory_iterator(test_path(".."))) {
    const std::string name = entry.path().filename();
    if (name != "build" && name != "out" && !name.starts_with('.'))
      fs::create_symlink(fs::canonical(entry.path()), folder + "/" + name);
  }
  fs::create_symlink(fs::path(PRUNER_BINARY).parent_path(), folder + "/build/release");
}

// The lines up to the fence that ends a block.
std::string block(std::istream& page) {
  std::string text;
  for (std::string line; std::getline(page, line) && line != "```";) text += line + "\n";
  return text;
}

}  // namespace

std::string shown_again(const std::string& shown,
                        const std::string& printed,
                        bool measured,
                        std::vector<std::string>& faults) {
  const std::vector<std::string> wanted = lines_of(shown), lines = lines_of(printed);
  std::string text;
  size_t at = 0;
  bool anchored = true;
  for (auto each = wanted.begin(); each != wanted.end();) {
    anchored = *each != kRest;
    if (!anchored) text += *each++ + "\n";
    const auto end = std::find(each, wanted.end(), kRest);
    if (each == end) continue;
    std::vector<std::regex> part;
    std::transform(each, end, std::back_inserter(part), [&](const std::string& line) {
      return shown_line(line, measured);
    });
    const std::optional<std::string> found = find(lines, part, at, anchored);
    if (!found) {
      faults.push_back("not printed:\n" + *each + "\n... but:\n" + printed);
      return shown;
    }
    text += *found;
    each = end;
    anchored = true;
  }
  if (anchored && at < lines.size()) faults.push_back("printed, too:\n" + lines[at]);
  return text;
}

PageRun run_page(const std::string& page, const std::string& folder, bool written_anew) {
  make_root(folder);
  const std::string start = "exec 2>&1 </dev/null\nset -e\ncd '" + folder + "'\nPATH='" + folder +
                            "/build/release':$PATH\n";
  PageRun run;
  std::istringstream lines(page);
  bool measured = false;
  Output output;
  for (std::string line; std::getline(lines, line);) {
    run.text += line + "\n";
    if (line == "<!-- measured -->") measured = true;
    if (line == "```sh") {
      const std::string commands = block(lines);
      output = run_shell(start + commands);
      if (output.status != 0)
        run.faults.push_back("exit " + std::to_string(output.status) + ": " + commands +
                             output.text);
      run.text += commands + "```\n";
    } else if (line == "```") {
      const std::string shown = block(lines);
      if (written_anew && shown.find(kRest) == std::string::npos) {
        for (const std::string& each : lines_of(output.text)) run.text += each + "\n";
      } else {
        const std::string again =
            shown_again(shown, output.text, measured || written_anew, run.faults);
        run.text += measured && !written_anew ? shown : again;
      }
      run.text += "```\n";
      measured = false;
    }
  }
  return run;
}

}  // namespace pruner
