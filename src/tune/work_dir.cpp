#include "tune/work_dir.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "support/file.h"
#include "tune/recorded.h"

namespace pruner {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFiles[] = {kWorkDirRecords, "total_latency.tsv", "run.json"};

}  // namespace

Result<Unit> WorkDir::set_aside() const {
  std::error_code code;
  const auto taken = [&](int number) {
    for (const char* name : kFiles) {
      if (fs::exists(fmt::format("{}.{}", file(name), number), code)) return true;
    }
    return false;
  };
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
  if (!fs::is_directory(path)) {
    return Error(path,
                 ": cannot be made: ",
                 code ? code.message() : "a file is there",
                 "; choose another folder with --work-dir");
  }
  const std::string probe = path + "/.pruner";
  if (const Result<Unit> written = write_file(probe, ""); !written.ok()) {
    return Error(path, ": cannot be written; choose another folder with --work-dir");
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
  std::ofstream out(file("total_latency.tsv"), std::ios::app);
  const std::string latency = latency_s ? fmt::format("{:.3f}", *latency_s * 1e3) : "N/A";
  out << fmt::format(
      "ElapsedTime(s)\t{:.0f}\tEstimatedLatency(ms)\t{}\tTrials\t{}\n", elapsed_s, latency, trials);
  if (!out.flush()) return Error(file("total_latency.tsv"), ": cannot be written");
  return Unit{};
}

}  // namespace pruner
