// Streams, events and graphs: work waits in its stream until something makes the device do it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace fakes {

struct Context;

/// Does its work when its turn has come. Gives a status of the driver's.
struct Operation {
  std::string what;
  std::function<int(Context&)> run;
};

struct Capture {
  int mode;
  int thread;  // the thread that began the operation
  std::vector<Operation> operations;
  bool valid = true;
};

struct Stream {
  struct Waiting {
    int64_t number;  // in the order of all streams of the context
    Operation operation;
  };
  bool blocking = true;  // waits for the null stream, which waits for it
  bool destroyed = false;
  std::deque<Waiting> queue;
  std::optional<Capture> capture;
};

struct Event {
  bool timed = true;
  int64_t record = 0;  // the number of the last record; 0: none
  bool captured = false;
  bool done = true;
  double at_s = 0;  // on the device's clock
  Stream* stream = nullptr;
};

struct Graph {
  std::vector<Operation> operations;
};

/// Puts work at the end of a stream, or into the graph that it captures.
int enqueue(Context& context, Stream& stream, Operation operation);
/// Does what stands in the stream up to a number, and in others what that waits for.
int run_stream(Context& context, Stream& stream, int64_t last = INT64_MAX);
int run_all(Context& context);
/// Does one operation more, as time passes between two questions. kNotReady: some is left.
int run_a_little(Context& context, Stream& stream, int64_t last = INT64_MAX);

/// The status of a call that no stream may be captured under; captures that it disturbs are lost.
int forbid_in_capture(Stream& stream);
int forbid_in_captures(Context& context);

}  // namespace fakes
