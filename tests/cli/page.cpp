#include "cli/page.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
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

// A line without its numbers, and without the widths of its columns.
std::string unmeasured(const std::string& line) {
  static const std::regex kNumber(R"(-?\d+(\.\d+)?(e[+-]?\d+)?)"), kWidth(R"(\s+|-{2,})");
  return std::regex_replace(std::regex_replace(line, kNumber, "#"), kWidth, " ");
}

// Whether a printed line is what the page shows: `...` in it is any text.
bool is_shown(const std::string& printed, const std::string& shown, bool measured) {
  if (printed == shown) return true;
  std::string text = measured ? unmeasured(printed) : printed;
  std::string rest = measured ? unmeasured(shown) : shown;
  size_t at = 0;
  for (bool first = true;; first = false) {
    const size_t end = rest.find(kRest);
    const std::string part = rest.substr(0, end);
    if (end == std::string::npos)
      return first ? text == part : text.size() >= at + part.size() && text.ends_with(part);
    const size_t found = text.find(part, at);
    if (found == std::string::npos || (first && found != 0)) return false;
    at = found + part.size();
    rest.erase(0, end + kRest.size());
  }
}

// Where `part` stands in `lines` from `begin` on, or -1; only there if `anchored`.
ptrdiff_t find(const std::vector<std::string>& lines,
               const std::vector<std::string>& part,
               ptrdiff_t begin,
               bool anchored,
               bool measured) {
  const ptrdiff_t last = std::ssize(lines) - std::ssize(part);
  for (ptrdiff_t at = begin; at <= (anchored ? std::min(begin, last) : last); ++at) {
    if (std::equal(part.begin(), part.end(), lines.begin() + at, [&](const auto& a, const auto& b) {
          return is_shown(b, a, measured);
        }))
      return at;
  }
  return -1;
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
  ptrdiff_t at = 0;
  bool anchored = true;
  for (auto each = wanted.begin(); each != wanted.end();) {
    if (*each == kRest) {
      text += *each++ + "\n";
      anchored = false;
      continue;
    }
    const auto end = std::find(each, wanted.end(), kRest);
    const std::vector<std::string> part(each, end);
    const ptrdiff_t found = find(lines, part, at, anchored, measured);
    if (found < 0) {
      faults.push_back("not printed:\n" + *each + "\n... but:\n" + printed);
      return shown;
    }
    for (at = found; each != end; ++each, ++at)
      text +=
          (each->find(kRest) == std::string::npos ? lines[static_cast<size_t>(at)] : *each) + "\n";
    anchored = true;
  }
  if (anchored && at < std::ssize(lines))
    faults.push_back("printed, too:\n" + lines[static_cast<size_t>(at)]);
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
