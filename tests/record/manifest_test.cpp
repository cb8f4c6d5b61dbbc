#include "record/manifest.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "golden.h"

namespace pruner {
namespace {

TEST(RunManifest, IsWrittenAndRead) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("pruner_manifest_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  EXPECT_ERROR(read_manifest(folder), "run.json: no such file");
  RunManifest manifest;
  manifest.command = "pruner tune --network resnet_50";
  manifest.version = "0.1.0";
  manifest.seed = 7;
  manifest.device = "AMD EPYC, 2 threads";
  manifest.status = "running";
  manifest.started = 1700000000;
  manifest.trials = 64;
  manifest.spent_s = 12.5;
  manifest.more = {{"network", "resnet_50"}};
  ASSERT_TRUE(write_manifest(folder, manifest).ok());
  const Result<RunManifest> read = read_manifest(folder);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(to_json(*read), to_json(manifest));
  ASSERT_TRUE(write_file(manifest_path(folder), "{\"command\": 3}").ok());
  EXPECT_ERROR(read_manifest(folder), "run.json: key \"command\" has a value of the wrong type");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pruner
