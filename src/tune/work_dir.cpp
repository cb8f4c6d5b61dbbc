#include "tune/work_dir.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/file.h"

namespace pruner {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFiles[] = {"records.json", "total_latency.tsv", "run.json"};

/// records.json -> records.json.1, or the first number that is free for all of the files.
Result<Unit> set_aside(const std::string& folder) {
  std::error_code code;
  const auto taken = [&](int number) {
    for (const char* file : kFiles) {
      if (fs::exists(fmt::format("{}/{}.{}", folder, file, number), code)) return true;
    }
    return false;
  };
  int number = 1;
  while (taken(number)) ++number;
  for (const char* file : kFiles) {
    const std::string path = folder + "/" + file;
    if (!fs::exists(path, code)) continue;
    fs::rename(path, fmt::format("{}.{}", path, number), code);
    if (code) return Error(path, ": cannot be set aside: ", code.message());
  }
  return Unit{};
}

}  // namespace

Result<WorkDir> WorkDir::open(const std::string& path, bool fresh) {
  std::error_code code;
  fs::create_directories(path, code);
  if (!fs::is_directory(path)) {
    return Error(path, ": cannot be made: ", code ? code.message() : "a file is there",
                 "; choose another folder with --work-dir");
  }
  const std::string probe = path + "/.pruner";
  if (const Result<Unit> written = write_file(probe, ""); !written.ok()) {
    return Error(path, ": cannot be written; choose another folder with --work-dir");
  }
  fs::remove(probe, code);
  if (fresh) TRY(set_aside(path));
  return WorkDir(path);
}

Result<std::vector<Record>> WorkDir::read_records() const {
  std::error_code code;
  if (!fs::exists(records(), code)) return std::vector<Record>{};
  TRY_ASSIGN(RecordFile file, pruner::read_records(records()));
  return std::move(file.records);
}

double WorkDir::earlier_s() const {
  std::ifstream in(file("total_latency.tsv"));
  double elapsed_s = 0;
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos) elapsed_s = std::max(elapsed_s, std::atof(line.c_str() + tab + 1));
  }
  return elapsed_s;
}

Result<Unit> WorkDir::append_latency(double elapsed_s, std::optional<double> latency_s, int64_t trials) const {
  std::ofstream out(file("total_latency.tsv"), std::ios::app);
  const std::string latency = latency_s ? fmt::format("{:.3f}", *latency_s * 1e3) : "N/A";
  out << fmt::format("ElapsedTime(s)\t{:.0f}\tEstimatedLatency(ms)\t{}\tTrials\t{}\n", elapsed_s, latency, trials);
  if (!out.flush()) return Error(file("total_latency.tsv"), ": cannot be written");
  return Unit{};
}

}  // namespace pruner
