#include "report/transfer_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/bars_svg.h"
#include "report/comparison.h"

namespace pruner {

namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

Json to_json(const TransferredNetwork& t) {
  return {{"source", t.source},
          {"trials", t.trials},
          {"search_s", t.search_s},
          {"build_s", t.build_s},
          {"latency_ms", t.latency_ms}};
}

Json to_json(const SearchRival& r) {
  return {{"mode", r.mode},
          {"equal_time_ms", r.equal_time_ms},
          {"equal_time_trials", r.equal_time_trials},
          {"matched", r.matched},
          {"match_s", r.match_s},
          {"match_trials", r.match_trials}};
}

Result<Unit> read(const Json& json, TransferredNetwork& t) {
  TRY_ASSIGN(t.source, json_get<std::string>(json, "source"));
  TRY_ASSIGN(t.trials, json_get<int64_t>(json, "trials"));
  TRY_ASSIGN(t.search_s, json_get<double>(json, "search_s"));
  TRY_ASSIGN(t.build_s, json_get<double>(json, "build_s"));
  TRY_ASSIGN(t.latency_ms, json_get<double>(json, "latency_ms"));
  return Unit{};
}

Result<Unit> read(const Json& json, SearchRival& r) {
  TRY_ASSIGN(r.mode, json_get<std::string>(json, "mode"));
  TRY_ASSIGN(r.equal_time_ms, json_get<double>(json, "equal_time_ms"));
  TRY_ASSIGN(r.equal_time_trials, json_get<int64_t>(json, "equal_time_trials"));
  TRY_ASSIGN(r.matched, json_get<bool>(json, "matched"));
  TRY_ASSIGN(r.match_s, json_get<double>(json, "match_s"));
  TRY_ASSIGN(r.match_trials, json_get<int64_t>(json, "match_trials"));
  return Unit{};
}

Result<Unit> read(const Json& json, WarmStart& w) {
  TRY_ASSIGN(w.cold_trials, json_get<int64_t>(json, "cold_trials"));
  TRY_ASSIGN(w.reached, json_get<bool>(json, "reached"));
  TRY_ASSIGN(w.trials, json_get<int64_t>(json, "trials"));
  TRY_ASSIGN(w.seconds, json_get<double>(json, "seconds"));
  return Unit{};
}

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.0f} %", 100 * *share) : "-";
}

std::optional<double> median(std::vector<double> values) {
  const std::optional<Spread> found = spread(std::move(values));
  return found ? std::optional(found->median) : std::nullopt;
}

std::vector<std::string> names_of(const std::vector<TransferTarget>& targets) {
  std::vector<std::string> names;
  for (const TransferTarget& target : targets) names.push_back(target.network);
  return names;
}

/// A bar of the transfer and one of each rival, for each target.
template <typename OfTransfer, typename OfRival>
std::string bars(const std::vector<TransferTarget>& targets,
                 const std::string& title,
                 const std::string& y_name,
                 std::optional<double> mark,
                 const OfTransfer& of_transfer,
                 const OfRival& of_rival) {
  BarChart chart{title, y_name, names_of(targets), {"transfer"}, {{}}, mark};
  for (const TransferTarget& target : targets) {
    chart.heights[0].push_back(of_transfer(target));
    for (const SearchRival& rival : target.rivals) {
      const auto found = std::ranges::find(chart.series, rival.mode);
      if (found == chart.series.end()) chart.series.push_back(rival.mode);
    }
  }
  for (size_t s = 1; s < chart.series.size(); ++s) {
    std::vector<double>& heights = chart.heights.emplace_back();
    for (const TransferTarget& target : targets) {
      const auto rival = std::ranges::find(target.rivals, chart.series[s], &SearchRival::mode);
      heights.push_back(rival == target.rivals.end() ? kNothing : of_rival(target, *rival));
    }
  }
  return bars_svg({chart});
}

/// A column of shares or factors, and its median below.
struct Column {
  std::vector<double> values = {};

  std::string percent_of(std::optional<double> share) {
    if (share) values.push_back(*share);
    return percent(share);
  }
  std::string factor(double value, bool reached) {
    values.push_back(value);
    return fmt::format("{}{:.1f}", reached ? "" : "> ", value);
  }
};

/// The rows of print_transfer_table(), and what their medians are taken of.
class TransferTable {
 public:
  void add(const TransferTarget& t) {
    const TransferredNetwork& chosen = t.transferred();
    const auto best = std::ranges::min_element(t.one_to_one, {}, &TransferredNetwork::latency_ms);
    Row row = {t.network,
               fmt::format("{:.2f}, {:.2f}", t.untuned_ms, t.tuned_ms),
               chosen.source,
               fmt::format("{:.2f}", chosen.latency_ms),
               chosen_.percent_of(t.share_of_gain(t.kept_ms(chosen))),
               best_.percent_of(t.share_of_gain(t.kept_ms(*best))) + " " + best->source,
               pool_.percent_of(t.share_of_gain(t.kept_ms(t.pool))),
               published_.percent_of(t.share_of_gain(t.published_choice_ms)),
               fmt::format("{:.1f}, {}", chosen.search_s, chosen.trials)};
    rivals_.resize(std::max(rivals_.size(), t.rivals.size()));
    for (size_t r = 0; r < t.rivals.size(); ++r) {
      const SearchRival& rival = t.rivals[r];
      row.push_back(fmt::format("{:.2f}", rival.equal_time_ms));
      row.push_back(rivals_[r].factor(rival.match_s / chosen.search_s, rival.matched));
    }
    const WarmStart& warm = t.warm_start;
    row.push_back(
        fmt::format("{}{} of {}", warm.reached ? "" : "> ", warm.trials, warm.cold_trials));
    if (warm.cold_trials > 0)
      warm_.values.push_back(static_cast<double>(warm.trials) /
                             static_cast<double>(warm.cold_trials));
    rows_.push_back(std::move(row));
  }

  std::string print(const std::vector<SearchRival>& rivals) const {
    Row heads = {"network",
                 "untuned, tuned (ms)",
                 "source",
                 "transferred (ms)",
                 "of tuning's gain",
                 "best source",
                 "pool",
                 "published choice",
                 "search (s), trials"};
    Row last = {"median", "", "", ""};
    for (const Column* column : {&chosen_, &best_, &pool_, &published_})
      last.push_back(percent(median(column->values)));
    last.emplace_back("");
    for (size_t r = 0; r < rivals.size(); ++r) {
      heads.push_back(rivals[r].mode + " in this time (ms)");
      heads.push_back(rivals[r].mode + ": times as long to match");
      last.emplace_back("");
      last.push_back(fmt::format("{:.1f}", median(rivals_[r].values).value_or(0)));
    }
    heads.emplace_back("warm start: trials to the cold run's end");
    last.push_back(percent(median(warm_.values)));
    std::vector<Row> rows = {heads};
    rows.insert(rows.end(), rows_.begin(), rows_.end());
    rows.push_back(last);
    for (Row& row : rows) row.resize(heads.size());
    return print_table(rows);
  }

 private:
  using Row = std::vector<std::string>;
  std::vector<Row> rows_;
  Column chosen_, best_, pool_, published_, warm_;
  std::vector<Column> rivals_;
};

}  // namespace

Json to_json(const TransferTarget& t) {
  Json sources = Json::array(), rivals = Json::array();
  for (const TransferredNetwork& source : t.one_to_one) sources.push_back(to_json(source));
  for (const SearchRival& rival : t.rivals) rivals.push_back(to_json(rival));
  return {{"network", t.network},
          {"untuned_ms", t.untuned_ms},
          {"tuned_ms", t.tuned_ms},
          {"published_choice_ms", t.published_choice_ms},
          {"tuned_trials", t.tuned_trials},
          {"tuned_s", t.tuned_s},
          {"one_to_one", sources},
          {"chosen", t.chosen},
          {"pool", to_json(t.pool)},
          {"rivals", rivals},
          {"warm_start",
           {{"cold_trials", t.warm_start.cold_trials},
            {"reached", t.warm_start.reached},
            {"trials", t.warm_start.trials},
            {"seconds", t.warm_start.seconds}}}};
}

Result<TransferTarget> transfer_target_from_json(const Json& json) {
  TransferTarget t;
  TRY_ASSIGN(t.network, json_get<std::string>(json, "network"));
  TRY_ASSIGN(t.untuned_ms, json_get<double>(json, "untuned_ms"));
  TRY_ASSIGN(t.tuned_ms, json_get<double>(json, "tuned_ms"));
  TRY_ASSIGN(t.published_choice_ms, json_get<double>(json, "published_choice_ms"));
  TRY_ASSIGN(t.tuned_trials, json_get<int64_t>(json, "tuned_trials"));
  TRY_ASSIGN(t.tuned_s, json_get<double>(json, "tuned_s"));
  TRY_ASSIGN(t.chosen, json_get<size_t>(json, "chosen"));
  TRY_ASSIGN(const Json sources, json_get<Json>(json, "one_to_one"));
  for (const Json& source : sources) TRY(read(source, t.one_to_one.emplace_back()));
  if (t.chosen >= t.one_to_one.size()) return Error("key \"chosen\" names no source");
  TRY_ASSIGN(const Json rivals, json_get<Json>(json, "rivals"));
  for (const Json& rival : rivals) TRY(read(rival, t.rivals.emplace_back()));
  TRY_ASSIGN(const Json pool, json_get<Json>(json, "pool"));
  TRY(read(pool, t.pool));
  TRY_ASSIGN(const Json warm_start, json_get<Json>(json, "warm_start"));
  TRY(read(warm_start, t.warm_start));
  return t;
}

std::string print_transfer_table(const std::vector<TransferTarget>& targets) {
  TransferTable table;
  for (const TransferTarget& target : targets) table.add(target);
  return table.print(targets.empty() ? std::vector<SearchRival>{} : targets.front().rivals);
}

std::string transfer_tsv(const std::vector<TransferTarget>& targets) {
  std::string text =
      "network\tsource\tchosen\ttrials\tsearch_s\tbuild_s\tuntuned_ms\ttuned_ms\tlatency_ms\n";
  const auto add = [&](const TransferTarget& t, const TransferredNetwork& of, bool chosen) {
    text += fmt::format("{}\t{}\t{}\t{}\t{:.2f}\t{:.2f}\t{:.4f}\t{:.4f}\t{:.4f}\n",
                        t.network,
                        of.source,
                        chosen ? 1 : 0,
                        of.trials,
                        of.search_s,
                        of.build_s,
                        t.untuned_ms,
                        t.tuned_ms,
                        of.latency_ms);
  };
  for (const TransferTarget& t : targets) {
    for (size_t s = 0; s < t.one_to_one.size(); ++s) add(t, t.one_to_one[s], s == t.chosen);
    add(t, t.pool, false);
  }
  return text;
}

std::string speedup_svg(const std::vector<TransferTarget>& targets) {
  return bars(
      targets,
      "equal search time",
      "speed-up over the untuned module",
      1,
      [](const TransferTarget& t) { return t.untuned_ms / t.kept_ms(t.transferred()); },
      [](const TransferTarget& t, const SearchRival& rival) {
        return t.untuned_ms / rival.equal_time_ms;
      });
}

std::string search_time_svg(const std::vector<TransferTarget>& targets) {
  return bars(
      targets,
      "to the transferred latency",
      "search time (s)",
      std::nullopt,
      [](const TransferTarget& t) { return t.transferred().search_s; },
      [](const TransferTarget&, const SearchRival& rival) { return rival.match_s; });
}

}  // namespace pruner
