#include "queue.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "state.h"

namespace fakes {
namespace {

constexpr double kLeast_s = 1e-6;  // shortest time of an operation

double cpu_now_s() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The null stream waits for the blocking ones, and they for it.
int run_before(Context& context, Stream& stream, int64_t number) {
  if (!stream.blocking) return kSuccess;
  if (&stream != &context.null_stream) return run_stream(context, context.null_stream, number - 1);
  std::vector<Stream*> others;
  for (const auto& [handle, other] : context.streams.all()) others.push_back(other.get());
  for (const auto& other : context.destroyed_streams) others.push_back(other.get());
  for (Stream* other : others) {
    if (!other->blocking) continue;
    if (const int status = run_stream(context, *other, number - 1); status != 0) return status;
  }
  return kSuccess;
}

int run_first(Context& context, Stream& stream) {
  const int64_t number = stream.queue.front().number;
  if (const int status = run_before(context, stream, number); status != 0) return status;
  if (stream.queue.empty() || stream.queue.front().number != number) return context.sticky;
  const Operation operation = std::move(stream.queue.front().operation);
  stream.queue.pop_front();
  const double start_s = cpu_now_s();
  context.memory->open(true);
  const int status = operation.run(context);
  context.memory->open(false);
  context.clock_s += std::max(cpu_now_s() - start_s, kLeast_s);
  if (status != 0) {
    context.sticky = status;
    Rules::get().log("# " + operation.what + " ended with " + std::to_string(status));
  }
  return status;
}

}  // namespace

int enqueue(Context& context, Stream& stream, Operation operation) {
  if (stream.capture) {
    if (!stream.capture->valid) return kCaptureInvalidated;
    stream.capture->operations.push_back(std::move(operation));
    return kSuccess;
  }
  if (&stream == &context.null_stream) {
    for (const auto& [handle, other] : context.streams.all()) {
      if (!other->blocking || !other->capture) continue;
      other->capture->valid = false;
      return kCaptureImplicit;
    }
  }
  stream.queue.push_back({++context.last_number, std::move(operation)});
  return kSuccess;
}

int run_stream(Context& context, Stream& stream, int64_t last) {
  while (context.sticky == 0 && !stream.queue.empty() && stream.queue.front().number <= last) {
    run_first(context, stream);
  }
  return context.sticky;
}

int run_all(Context& context) {
  std::vector<Stream*> all = {&context.null_stream};
  for (const auto& [handle, stream] : context.streams.all()) all.push_back(stream.get());
  for (const auto& stream : context.destroyed_streams) all.push_back(stream.get());
  for (Stream* stream : all) run_stream(context, *stream);
  context.destroyed_streams.clear();
  return context.sticky;
}

int run_a_little(Context& context, Stream& stream, int64_t last) {
  const auto left = [&] { return !stream.queue.empty() && stream.queue.front().number <= last; };
  if (!left()) return context.sticky;
  if (const int status = run_first(context, stream); status != 0) return status;
  return left() ? kNotReady : kSuccess;
}

int forbid_in_capture(Stream& stream) {
  if (!stream.capture) return kSuccess;
  stream.capture->valid = false;
  return kCaptureUnsupported;
}

int forbid_in_captures(Context& context) {
  enum { kGlobal = 0, kThreadLocal = 1 };
  int status = kSuccess;
  for (const auto& [handle, stream] : context.streams.all()) {
    if (!stream->capture) continue;
    const bool mine = stream->capture->thread == this_thread();
    if (stream->capture->mode == kGlobal || (stream->capture->mode == kThreadLocal && mine)) {
      status = forbid_in_capture(*stream);
    }
  }
  return status;
}

}  // namespace fakes
