#include "tune/work_dir.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "support/file.h"
#include "tune/recorded.h"

namespace pruner {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFiles[] = {kWorkDirRecords, kWorkDirCurve, "run.json"};

}  // namespace

Result<Unit> WorkDir::set_aside() const {
  std::error_code code;
  const auto taken = [&](int number) {
    for (const char* name : kFiles) {
      if (fs::exists(fmt::format("{}.{}", file(name), number), code)) return true;
    }
    return false;
  };
  // Not while another run writes there; what is set aside keeps the lock until it has a new name.
  std::optional<RecordWriter> held;
  if (fs::exists(records(), code)) {
    TRY_ASSIGN(held, RecordWriter::open(records()));
  }
  int number = 1;
  while (taken(number)) ++number;
  for (const char* name : kFiles) {
    if (!fs::exists(file(name), code)) continue;
    fs::rename(file(name), fmt::format("{}.{}", file(name), number), code);
    if (code) return Error(file(name), ": cannot be set aside: ", code.message());
  }
  return Unit{};
}

Result<WorkDir> WorkDir::open(const std::string& path) {
  std::error_code code;
  fs::create_directories(path, code);
  std::error_code missing;
  if (!fs::is_directory(path, missing)) {
    return Error(path,
                 ": cannot be made: ",
                 code ? code.message() : "a file is there",
                 "; choose another folder with --work-dir");
  }
  const std::string probe = path + "/.pruner";
  if (const Result<Unit> written = write_file(probe, "."); !written.ok()) {
    const std::string why = written.error().message().substr(probe.size());
    return Error(path, why, "; choose another folder with --work-dir");
  }
  fs::remove(probe, code);
  return WorkDir(path);
}

Result<std::vector<Record>> WorkDir::read_records() const {
  std::error_code code;
  if (!fs::exists(records(), code)) return std::vector<Record>{};
  return read_intact_records(records());
}

Result<Unit> WorkDir::append_latency(double elapsed_s,
                                     std::optional<double> latency_s,
                                     int64_t trials) const {
  const double ms = latency_s.value_or(0) * 1e3;
  const std::string latency = latency_s ? fmt::format("{:.{}f}", ms, ms < 1 ? 6 : 3) : "N/A";
  return append_file(curve(),
                     fmt::format("ElapsedTime(s)\t{:.0f}\tEstimatedLatency(ms)\t{}\tTrials\t{}\n",
                                 elapsed_s,
                                 latency,
                                 trials));
}

Result<TuningCurve> read_latency_curve(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  TuningCurve curve;
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    ++number;
    std::istringstream words(line);
    std::string time_name, latency_name, trials_name, latency;
    CurvePoint point;
    words >> time_name >> point.seconds >> latency_name >> latency >> trials_name >> point.trials;
    if (!words || time_name != "ElapsedTime(s)")
      return Error(path, ":", number, ": is no line of a tuning curve (ElapsedTime(s) ...)");
    curve.trials = point.trials;
    curve.search_s = point.seconds;
    if (latency == "N/A") continue;
    point.latency_s = std::strtod(latency.c_str(), nullptr) / 1e3;
    if (curve.points.empty() || curve.points.back().latency_s != point.latency_s)
      curve.points.push_back(point);
  }
  if (number == 0) return Error(path, ": has no line; the run has not measured anything yet");
  return curve;
}

}  // namespace pruner
