#include "record/record_paths.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "golden.h"

namespace pruner {
namespace {

TEST(FindRecordFiles, TakesFilesFoldersAndPatterns) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("pruner_record_paths_" + std::to_string(getpid()));
  fs::create_directories(folder / "below");
  for (const char* name : {"b.json", "a.log", "below/c.json"}) std::ofstream(folder / name) << "x";
  const auto found = [&](const std::vector<std::string>& patterns) {
    std::vector<std::string> names;
    const auto files = find_record_files(patterns);
    EXPECT_TRUE(files.ok()) << files.error().message();
    for (const RecordPath& file : *files) {
      names.push_back(fs::path(file.path).filename().string() + (file.named ? "" : " found"));
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(found({folder / "b.json"}), Names{"b.json"});
  EXPECT_EQ(found({folder}), (Names{"a.log found", "b.json found", "c.json found"}));
  EXPECT_EQ(found({folder / "*.json", folder / "a.log"}), (Names{"b.json", "a.log"}));
  EXPECT_ERROR(find_record_files({folder / "*.gz"}), "no such file or folder, and no pattern");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace pruner
