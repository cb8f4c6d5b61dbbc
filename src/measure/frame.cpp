#include "measure/frame.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstring>

namespace pruner {

namespace {

struct Lengths {
  uint32_t magic;
  uint32_t header;
  uint64_t body;
};
constexpr uint32_t kMagic = 0x726e7270;  // "prnr"
constexpr uint64_t kMaxBody = uint64_t{1} << 32;

FrameStatus wait_for(int fd, short event, Deadline deadline) {
  for (;;) {
    pollfd entry{fd, event, 0};
    const int ready = poll(&entry, 1, milliseconds_until(deadline));
    if (ready > 0) return FrameStatus::kOk;  // or hung up: the read or write that follows says so
    if (ready == 0) return FrameStatus::kTimeout;
    if (errno != EINTR) return FrameStatus::kClosed;
  }
}

// Moves all `size` bytes by step(data, size), which is a non-blocking read or write.
template <typename Byte, typename Step>
FrameStatus transfer(int fd, short event, Byte* data, size_t size, Deadline deadline, Step step) {
  while (size > 0) {
    const FrameStatus status = wait_for(fd, event, deadline);
    if (status != FrameStatus::kOk) return status;
    const ssize_t moved = step(data, size);
    if (moved < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (moved <= 0) return FrameStatus::kClosed;
    data += moved;
    size -= static_cast<size_t>(moved);
  }
  return FrameStatus::kOk;
}

FrameStatus read_all(int fd, char* data, size_t size, Deadline deadline) {
  return transfer(fd, POLLIN, data, size, deadline, [fd](char* to, size_t n) {
    return recv(fd, to, n, MSG_DONTWAIT);
  });
}

FrameStatus write_all(int fd, const char* data, size_t size, Deadline deadline) {
  return transfer(fd, POLLOUT, data, size, deadline, [fd](const char* from, size_t n) {
    return send(fd, from, n, MSG_DONTWAIT | MSG_NOSIGNAL);
  });
}

}  // namespace

Deadline after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
}

int milliseconds_until(Deadline deadline) {
  if (deadline == kNoDeadline) return -1;
  const std::chrono::duration<double, std::milli> left =
      deadline - std::chrono::steady_clock::now();
  return static_cast<int>(std::clamp(std::ceil(left.count()), 0.0, double{INT_MAX}));
}

FrameStatus write_frame(int fd, const Frame& frame, Deadline deadline) {
  const std::string header = frame.header.dump(-1, ' ', false, Json::error_handler_t::replace);
  const Lengths lengths{kMagic, static_cast<uint32_t>(header.size()), frame.body.size()};
  std::string bytes(reinterpret_cast<const char*>(&lengths), sizeof lengths);
  bytes += header;
  bytes += frame.body;
  return write_all(fd, bytes.data(), bytes.size(), deadline);
}

ReadFrame read_frame(int fd, Deadline deadline) {
  Lengths lengths;
  char raw[sizeof lengths];
  FrameStatus status = read_all(fd, raw, sizeof raw, deadline);
  if (status != FrameStatus::kOk) return {status, {}};
  std::memcpy(&lengths, raw, sizeof raw);
  if (lengths.magic != kMagic || lengths.body > kMaxBody) return {FrameStatus::kClosed, {}};
  std::string header(lengths.header, '\0'), body(lengths.body, '\0');
  status = read_all(fd, header.data(), header.size(), deadline);
  if (status == FrameStatus::kOk) status = read_all(fd, body.data(), body.size(), deadline);
  if (status != FrameStatus::kOk) return {status, {}};
  Result<Json> json = parse_json(header);
  if (!json.ok()) return {FrameStatus::kClosed, {}};
  return {FrameStatus::kOk, {*std::move(json), std::move(body)}};
}

}  // namespace pruner
