#include "support/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "golden.h"
#include "support/gzip.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Outputs : testing::Test {
  std::string at(const std::string& name) const { return folder.path(name); }

  TemporaryFolder folder = *TemporaryFolder::make(testing::TempDir());
};

TEST_F(Outputs, TakeTheirNameWhenTheyAreComplete) {
  const std::string target = at("out");
  ASSERT_TRUE(write_file(target, "old").ok());
  {
    const Result<OutputFile> given_up = OutputFile::open(target);
    ASSERT_TRUE(given_up.ok() && write_file(given_up->path(), "half").ok());
  }
  EXPECT_EQ(*read_file(target), "old");
  {
    const Result<OutputFile> done = OutputFile::open(target);
    ASSERT_TRUE(done.ok() && write_file(done->path(), "new").ok());
    ASSERT_TRUE(done->commit().ok());
  }
  EXPECT_EQ(*read_file(target), "new");
  // Beside it there is the lock of the folder.
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(target).parent_path()), {}), 2);
}

TEST_F(Outputs, SayAtOnceWhatCannotBeWritten) {
  EXPECT_ERROR(OutputFile::open("/nowhere/m.so"), "/nowhere/m.so: cannot be written: No such file");
  EXPECT_ERROR(OutputFile::open(testing::TempDir()), "cannot be written: it is a folder");
}

TEST_F(Outputs, FollowLinks) {
  ASSERT_TRUE(write_file(at("file"), "old").ok());
  fs::create_symlink("file", at("link"));
  fs::create_symlink(at("link"), at("link_to_link"));
  fs::create_symlink("none_yet", at("hanging"));
  ASSERT_TRUE(write_file(at("link_to_link"), "new").ok());
  ASSERT_TRUE(write_file(at("hanging"), "made").ok());
  EXPECT_TRUE(fs::is_symlink(at("link")) && fs::is_symlink(at("link_to_link")));
  EXPECT_EQ(*read_file(at("file")), "new");
  EXPECT_TRUE(fs::is_symlink(at("hanging")));
  EXPECT_EQ(*read_file(at("none_yet")), "made");
}

TEST_F(Outputs, LeaveDevicesAsTheyAre) {
  const std::string device = at("null");
  const bool made = mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0;
  const int opened = made ? open(device.c_str(), O_WRONLY | O_CLOEXEC) : -1;
  if (opened < 0) GTEST_SKIP() << "no device can be made here";
  close(opened);
  ASSERT_TRUE(write_file(device, "x").ok());
  PackedWriter packed = *PackedWriter::open(device);
  ASSERT_TRUE(packed.write("x").ok() && packed.commit().ok());
  EXPECT_TRUE(fs::is_character_file(device));
  EXPECT_ERROR(write_file("/dev/full", "x"), "/dev/full: cannot be written: No space left");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Outputs, AreWrittenIntoAFifo) {
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { std::getline(std::ifstream(at("fifo")), got); });
  EXPECT_TRUE(write_file(at("fifo"), "content").ok());
  reader.join();
  EXPECT_EQ(got, "content");
  EXPECT_TRUE(fs::is_fifo(at("fifo")));
}

TEST_F(Outputs, AreWrittenToWhatADescriptorLeadsTo) {
  const int fd = open(at("out").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(fd), at("stdout"));
  struct stat before, after;
  ASSERT_EQ(fstat(fd, &before), 0);
  ASSERT_TRUE(write_file(at("stdout"), "content").ok());
  ASSERT_EQ(stat(at("out").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(*read_file(at("out")), "content");
  close(fd);
}

}  // namespace
}  // namespace pruner
