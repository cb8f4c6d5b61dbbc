// Messages between the measurer and its workers: a JSON header and bytes (an object file's), each
// with its length in front, over a socket.
#pragma once

#include <chrono>
#include <string>

#include "support/json.h"

namespace pruner {

struct Frame {
  Json header;
  std::string body;
};

enum class FrameStatus { kOk, kTimeout, kClosed };

struct ReadFrame {
  FrameStatus status;
  Frame frame;
};

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();
/// The moment `seconds` from now.
Deadline after(double seconds);
/// Milliseconds until `deadline` as poll() takes them: rounded up, -1 for none.
int milliseconds_until(Deadline deadline);

/// Sends one frame. kClosed: the other side is gone.
FrameStatus write_frame(int fd, const Frame& frame, Deadline deadline = kNoDeadline);
/// Receives one frame. kClosed: the other side is gone, or what it sends is no frame.
ReadFrame read_frame(int fd, Deadline deadline = kNoDeadline);

}  // namespace pruner
