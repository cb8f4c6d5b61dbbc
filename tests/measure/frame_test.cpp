#include "measure/frame.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace pruner {
namespace {

struct SocketPair {
  SocketPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0); }
  ~SocketPair() {
    close(fd[0]);
    close(fd[1]);
  }
  int fd[2];
};

TEST(Frame, ArrivesWhole) {
  const SocketPair pair;
  Frame sent{{{"text", "caf\xc3\xa9 \"x\""}, {"n", 1.5}}, std::string(3 << 20, '\0')};
  sent.body.back() = 'x';
  std::thread writer([&] { EXPECT_EQ(write_frame(pair.fd[0], sent), FrameStatus::kOk); });
  const ReadFrame read = read_frame(pair.fd[1], after(10));
  writer.join();
  ASSERT_EQ(read.status, FrameStatus::kOk);
  EXPECT_EQ(read.frame.header, sent.header);
  EXPECT_EQ(read.frame.body, sent.body);
}

TEST(Frame, TimesOutOnSilenceAndOnHalfAFrame) {
  const SocketPair pair;
  EXPECT_EQ(read_frame(pair.fd[1], after(0.01)).status, FrameStatus::kTimeout);
  ASSERT_EQ(send(pair.fd[0], "prnr", 4, 0), 4);
  EXPECT_EQ(read_frame(pair.fd[1], after(0.01)).status, FrameStatus::kTimeout);
  // Nobody reads: the socket fills up.
  const Frame large{{}, std::string(64 << 20, 'x')};
  EXPECT_EQ(write_frame(pair.fd[0], large, after(0.05)), FrameStatus::kTimeout);
}

TEST(Frame, EndsWhenTheOtherSideIsGoneOrTalksNonsense) {
  SocketPair pair;
  ASSERT_EQ(send(pair.fd[0], "hello, hello, hello", 19, 0), 19);
  EXPECT_EQ(read_frame(pair.fd[1], after(1)).status, FrameStatus::kClosed);
  shutdown(pair.fd[0], SHUT_RDWR);
  EXPECT_EQ(read_frame(pair.fd[0], after(1)).status, FrameStatus::kClosed);
  EXPECT_EQ(write_frame(pair.fd[0], {}, after(1)), FrameStatus::kClosed);
}

}  // namespace
}  // namespace pruner
