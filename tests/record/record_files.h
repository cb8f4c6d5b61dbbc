// Record files of tests: lines of a matmul, in a folder that goes with the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "golden.h"
#include "own_path.h"
#include "record/record_paths.h"
#include "support/gzip.h"

namespace pruner {

struct RecordFiles : testing::Test {
  RecordFiles() : dir(own_path("records")) {
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir);
  }
  ~RecordFiles() override { std::filesystem::remove_all(dir); }

  /// A record of TVM's: `factor` tells programs apart.
  static std::string foreign(int size, int factor, const std::string& result, int time = 1) {
    return R"({"i": [["[\"matmul_layer\", )" + std::to_string(size) +
           R"(, 8, 8]", "cuda"], [[], [["SP", 2, 0, 8, [)" + std::to_string(factor) +
           R"(], 1]]]], "r": [)" + result + R"(, 1.5, )" + std::to_string(time) +
           R"(], "v": "v0.6"})" + "\n";
  }
  /// A record of ours.
  static std::string own(int decision, const std::string& result, const std::string& origin) {
    return R"({"i": [["key", "llvm"], [[], []]], "r": [)" + result +
           R"(, 1.5, 7], "v": "v0.6", "p": {"task": "mm", "sketch": "tile", "hash": "ab", )"
           R"("decisions": {"x": )" +
           std::to_string(decision) + R"(}, "device": "cpu", "threads": 2, "origin": ")" + origin +
           R"(", "build_s": 0.5}})" + "\n";
  }

  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(dir + '/' + name).parent_path());
    PackedWriter writer = *PackedWriter::open(dir + '/' + name);
    EXPECT_TRUE(writer.write(content).ok() && writer.commit().ok());
    return dir + '/' + name;
  }
  std::string read(const std::string& name) const {
    const Result<UnpackedFile> file = read_unpacked(dir + '/' + name);
    EXPECT_TRUE(file.ok()) << file.error().message();
    return file.ok() ? file->content : "";
  }
  /// Files and folders below `dir`.
  std::vector<RecordPath> files(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(dir + '/' + name);
    return *find_record_files(paths);
  }

  std::string dir;
};

}  // namespace pruner
