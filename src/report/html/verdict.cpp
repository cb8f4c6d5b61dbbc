#include <fmt/format.h>

#include "report/html/chart.h"
#include "report/html/escape.h"
#include "report/html/sections.h"
#include "report/html/table.h"
#include "report/time_text.h"

namespace pruner {

namespace {

constexpr double kOthersShown = 0.05;  // share of the cores' time from which on others are named

/// "2.31 x as fast", "1.05 x as slow".
std::string against(double before, double after) {
  return after <= before ? fmt::format("{:.2f} x as fast", before / after)
                         : fmt::format("{:.2f} x as slow", after / before);
}

std::string headline(const Verdict& v) {
  if (!v.tuned_s) {
    return v.trials == 0 ? "Nothing is measured yet."
                         : fmt::format("No time yet: {} of {} tasks have no valid trial.",
                                       v.tasks_without_time,
                                       v.tasks);
  }
  if (v.race)
    return fmt::format("{} \xE2\x86\x92 {}, {:.2f} x as fast",
                       time_text(v.race->untuned_s),
                       time_text(v.race->tuned_s),
                       v.race->speedup);
  if (!v.untuned_s) return time_text(v.tuned_s);
  return fmt::format("{} \xE2\x86\x92 {}, {}",
                     time_text(v.untuned_s),
                     time_text(v.tuned_s),
                     against(*v.untuned_s, *v.tuned_s));
}

/// Explains the numbers of the headline.
std::string meaning(const Verdict& v) {
  if (v.race)
    return fmt::format(
        "Measured: the module and the untuned module of the same version, in turns. With 95 % "
        "confidence the module is {:.2f} to {:.2f} x as fast.",
        v.race->speedup_low,
        v.race->speedup_high);
  std::string text =
      "Estimated: the times of the kernels, each measured alone, times how often each is called.";
  if (v.untuned_s)
    text +=
        " Before: the schedules that need no search, as this run measured them. After: the best "
        "that it found.";
  else if (v.tuned_s)
    text += " This run did not measure every task's untuned schedule: there is no before.";
  return text;
}

std::string state(const Verdict& v) {
  if (v.status == "done" || v.status.empty()) return "";
  if (v.status == "running") return "The run is still going: what follows is what it has so far.";
  return "The run did not reach its end (" + v.status + "): what follows is what it had.";
}

std::string others(const Verdict& v) {
  if (v.others_share < kOthersShown) return "";
  return fmt::format(
      "While kernels were timed, other processes had {:.0f} % of the cores' time: alone, all times "
      "are shorter.",
      100 * v.others_share);
}

/// Returns bars for the times that can be set beside each other; none if there is only one time.
std::vector<HtmlBar> bars(const Verdict& v) {
  std::vector<HtmlBar> bars;
  const auto add = [&](const std::string& name, std::optional<double> seconds, int colour) {
    if (seconds) bars.push_back({name, time_text(seconds), *seconds, colour});
  };
  add("before, estimated", v.untuned_s, 8);
  add("after, estimated", v.tuned_s, 0);
  if (v.race) add("untuned module, measured", v.race->untuned_s, 8);
  add("module, measured", v.race ? v.race->tuned_s : v.module_s, 0);
  for (const Peer& peer : v.peers) add(peer.name, peer.ms / 1e3, 4);
  return bars.size() > 1 ? bars : std::vector<HtmlBar>();
}

std::string peers(const Verdict& v) {
  const std::optional<double> own_s = v.module_s ? v.module_s : v.tuned_s;
  if (!own_s || v.peers.empty()) return "";
  std::string text = v.module_s ? "The module, measured, is " : "By the estimate it is ";
  for (size_t i = 0; i < v.peers.size(); ++i)
    text += (i > 0 ? ", " : "") + against(v.peers[i].ms / 1e3, *own_s) + " as " + v.peers[i].name;
  return text + ". The others' times are as given to the report.";
}

std::string paragraph(const std::string& style, const std::string& text) {
  if (text.empty()) return "";
  return fmt::format("<p class=\"{}\">{}</p>\n", style, html_text(text));
}

}  // namespace

HtmlSection verdict_section(const Verdict& v) {
  std::string module;
  if (v.module_s) module = time_text(v.module_s);
  if (v.module_std_s) module += " (std dev " + time_text(v.module_std_s) + ")";
  std::string html = paragraph("headline", headline(v));
  html += paragraph("state", state(v));
  html += paragraph("state", others(v));
  html += html_bars(bars(v), "Times beside each other");
  html += paragraph("", peers(v));
  html += html_facts({{"Whole module, measured", module},
                      {"Trials", std::to_string(v.trials)},
                      {"Tasks", std::to_string(v.tasks)},
                      {"Time of tuning", clock_text(v.spent_s)},
                      {"Mode", v.mode},
                      {"Device", v.device}});
  return section("verdict", "Verdict", meaning(v), html);
}

}  // namespace pruner
