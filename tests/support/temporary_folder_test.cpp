#include "support/temporary_folder.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "golden.h"
#include "own_path.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

size_t entries(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

struct TemporaryFolders : testing::Test {
  TemporaryFolders() { fs::create_directory(parent); }
  ~TemporaryFolders() override { fs::remove_all(parent); }

  const std::string parent = own_path("temporary_folders");
};

/// Runs `leave` in another process, which makes a temporary folder in `parent` first; its status.
int status_of_process(const std::string& parent, const std::function<void()>& leave) {
  const pid_t child = fork();
  if (child == 0) {
    const Result<TemporaryFolder> folder = TemporaryFolder::make(parent);
    if (!folder.ok() || !write_file(folder->path("weights"), "x").ok()) _exit(99);
    leave();
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(TemporaryFolder, GoesWithAllThatIsInIt) {
  std::string inside;
  {
    const Result<TemporaryFolder> folder = TemporaryFolder::make(testing::TempDir());
    ASSERT_TRUE(folder.ok()) << folder.error().message();
    inside = folder->path("file");
    ASSERT_TRUE(write_file(inside, "x").ok());
  }
  EXPECT_FALSE(fs::exists(fs::path(inside).parent_path()));
  EXPECT_ERROR(TemporaryFolder::make("/nowhere"),
               "/nowhere: cannot make a folder in it: No such file");
}

TEST_F(TemporaryFolders, GoWithAProcessThatEndsAtOnce) {
  const int status = status_of_process(parent, [] { exit_now(7); });
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(entries(parent), 0u);
}

TEST_F(TemporaryFolders, OfAKilledProcessAreSweptByTheNextOne) {
  EXPECT_TRUE(WIFSIGNALED(status_of_process(parent, [] { raise(SIGKILL); })));
  EXPECT_EQ(entries(parent), 1u);
  fs::create_directory(parent + "/.pruner-nolock");  // killed before it had its lock
  const TemporaryFolder next = *TemporaryFolder::make(parent);
  EXPECT_EQ(entries(parent), 1u);
  EXPECT_TRUE(fs::exists(next.path("")));
}

TEST_F(TemporaryFolders, OfALivingProcessAreLeftAlone) {
  const TemporaryFolder mine = *TemporaryFolder::make(parent);
  ASSERT_TRUE(write_file(mine.path("file"), "x").ok());
  fs::create_directory(parent + "/.pruner.mine");  // no name of ours
  status_of_process(parent, [] { raise(SIGKILL); });
  sweep_temporary_folders(parent);
  EXPECT_TRUE(fs::exists(mine.path("file")));
  EXPECT_EQ(entries(parent), 2u);
}

}  // namespace
}  // namespace pruner
