// The driver's calls for streams, events, captures and graphs.
#include <algorithm>
#include <utility>

#include "driver_api.h"
#include "state.h"

using namespace fakes;

namespace {

int no_stream() { return violation("no such stream", kInvalidHandle); }
int no_event() { return violation("no such event", kInvalidHandle); }
int no_graph() { return violation("no such graph", kInvalidHandle); }

enum : unsigned { kNonBlocking = 1, kBlockingSync = 1, kDisableTiming = 2, kInterprocess = 4 };

// Returns what a record does when its turn comes, unless the event was recorded again or destroyed.
Operation recording(CuEvent handle, int64_t record) {
  return {"cuEventRecord", [=](Context& context) {
            Event* const event = context.events.find(handle);
            if (event != nullptr && event->record == record) {
              event->done = true;
              event->at_s = context.clock_s;
            }
            return 0;
          }};
}

}  // namespace

FAKE_EXPORT CuStatus cuStreamCreate(CuStream* stream, unsigned flags) {
  return call(
      __func__,
      Needs::kContext,
      [&] {
        if (stream == nullptr || flags > kNonBlocking) return kInvalidValue;
        auto made = std::make_unique<Stream>();
        made->blocking = flags != kNonBlocking;
        *stream = here().streams.add(std::move(made));
        return kSuccess;
      },
      flags);
}

// The work in the stream will still be done.
FAKE_EXPORT CuStatus cuStreamDestroy_v2(CuStream handle) {
  return call(
      __func__,
      Needs::kContextToRelease,
      [&]() -> int {
        Context& context = here();
        std::unique_ptr<Stream> stream = context.streams.take(handle);
        if (stream == nullptr) return no_stream();
        context.destroyed_streams.push_back(std::move(stream));
        return kSuccess;
      },
      handle);
}

FAKE_EXPORT CuStatus cuStreamSynchronize(CuStream handle) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        Stream* const stream = here().stream(handle);
        if (stream == nullptr) return no_stream();
        const int forbidden = forbid_in_capture(*stream);
        if (forbidden != 0) return forbidden;
        // The null stream's wait is one for the blocking streams, too.
        enqueue(here(), *stream, {"wait", [](Context&) { return 0; }});
        return run_stream(here(), *stream);
      },
      handle);
}

FAKE_EXPORT CuStatus cuStreamQuery(CuStream handle) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        Stream* const stream = here().stream(handle);
        if (stream == nullptr) return no_stream();
        const int forbidden = forbid_in_capture(*stream);
        return forbidden != 0 ? forbidden : run_a_little(here(), *stream);
      },
      handle);
}

// The default stream, NULL, belongs to the current context.
FAKE_EXPORT CuStatus cuStreamGetCtx(CuStream handle, CuContext* found) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        if (found == nullptr) return kInvalidValue;
        if (handle == nullptr) {
          *found = &here();
          return kSuccess;
        }
        for (const auto& context : Driver::get().contexts) {
          if (context->streams.find(handle) == nullptr) continue;
          *found = context.get();
          return kSuccess;
        }
        return no_stream();
      },
      handle);
}

FAKE_EXPORT CuStatus cuStreamIsCapturing(CuStream handle, int* status) {
  enum { kNone = 0, kActive = 1, kInvalidated = 2 };
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        const Stream* const stream = here().stream(handle);
        if (stream == nullptr) return no_stream();
        if (status == nullptr) return kInvalidValue;
        *status = !stream->capture ? kNone : stream->capture->valid ? kActive : kInvalidated;
        return kSuccess;
      },
      handle);
}

// What comes in the stream waits for the record that the event has now. A capture may not wait for
// work outside of it; captures that a wait would join are more than the fake knows.
FAKE_EXPORT CuStatus cuStreamWaitEvent(CuStream handle, CuEvent event_handle, unsigned flags) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        Context& context = here();
        Stream* const stream = context.stream(handle);
        const Event* const event = context.events.find(event_handle);
        if (stream == nullptr) return no_stream();
        if (event == nullptr) return no_event();
        if (flags > 1) return kInvalidValue;
        if (stream->capture) {
          stream->capture->valid = false;
          return kCaptureIsolation;
        }
        if (event->captured) return kCapturedEvent;
        if (event->done) return kSuccess;
        Stream* const before = event->stream;
        const int64_t record = event->record;
        return enqueue(context, *stream, {"cuStreamWaitEvent", [=](Context& running) {
                                            return run_stream(running, *before, record);
                                          }});
      },
      handle,
      event_handle,
      flags);
}

FAKE_EXPORT CuStatus cuEventCreate(CuEvent* event, unsigned flags) {
  return call(
      __func__,
      Needs::kContext,
      [&] {
        if (event == nullptr || flags > (kBlockingSync | kDisableTiming | kInterprocess)) {
          return kInvalidValue;
        }
        auto made = std::make_unique<Event>();
        made->timed = (flags & kDisableTiming) == 0;
        *event = here().events.add(std::move(made));
        return kSuccess;
      },
      flags);
}

FAKE_EXPORT CuStatus cuEventRecord(CuEvent handle, CuStream stream_handle) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        Context& context = here();
        Stream* const stream = context.stream(stream_handle);
        Event* const event = context.events.find(handle);
        if (stream == nullptr) return no_stream();
        if (event == nullptr) return no_event();
        event->captured = stream->capture.has_value();
        // One operation more: its number is that of the record.
        const int64_t number = event->captured ? event->record : context.last_number + 1;
        const int status = enqueue(context, *stream, recording(handle, number));
        if (status != 0 || event->captured) return status;
        event->record = number;
        event->done = false;
        event->stream = stream;
        return kSuccess;
      },
      handle,
      stream_handle);
}

FAKE_EXPORT CuStatus cuEventSynchronize(CuEvent handle) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        Event* const event = here().events.find(handle);
        if (event == nullptr) return no_event();
        if (event->captured) return kCapturedEvent;
        return event->done ? kSuccess : run_stream(here(), *event->stream, event->record);
      },
      handle);
}

FAKE_EXPORT CuStatus cuEventQuery(CuEvent handle) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        Event* const event = here().events.find(handle);
        if (event == nullptr) return no_event();
        if (event->captured) return kCapturedEvent;
        return event->done ? kSuccess : run_a_little(here(), *event->stream, event->record);
      },
      handle);
}

FAKE_EXPORT CuStatus cuEventElapsedTime(float* milliseconds, CuEvent start, CuEvent end) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        const Event* const first = here().events.find(start);
        const Event* const last = here().events.find(end);
        if (first == nullptr || last == nullptr) return no_event();
        if (first->captured || last->captured) return kCapturedEvent;
        if (!first->timed || !last->timed || first->record == 0 || last->record == 0) {
          return kInvalidHandle;
        }
        if (!first->done || !last->done) return kNotReady;
        const double seconds = last->at_s - first->at_s;
        *milliseconds = static_cast<float>(1e3 * (seconds < 0 ? seconds : std::max(seconds, 1e-6)));
        return kSuccess;
      },
      start,
      end);
}

FAKE_EXPORT CuStatus cuEventDestroy_v2(CuEvent handle) {
  return call(
      __func__,
      Needs::kContextToRelease,
      [&]() -> int { return here().events.take(handle) == nullptr ? no_event() : kSuccess; },
      handle);
}

FAKE_EXPORT CuStatus cuStreamBeginCapture_v2(CuStream handle, int mode) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        if (handle == nullptr) return kCaptureUnsupported;
        Stream* const stream = here().stream(handle);
        if (stream == nullptr) return no_stream();
        if (mode < 0 || mode > 2) return kInvalidValue;
        if (stream->capture) return kIllegalState;
        stream->capture = Capture{mode, this_thread(), {}, true};
        return kSuccess;
      },
      handle,
      mode);
}

FAKE_EXPORT CuStatus cuStreamEndCapture(CuStream handle, CuGraph* graph) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        enum { kRelaxed = 2 };
        Stream* const stream = here().stream(handle);
        if (stream == nullptr) return no_stream();
        if (!stream->capture) return kIllegalState;
        if (stream->capture->mode != kRelaxed && stream->capture->thread != this_thread()) {
          return kCaptureWrongThread;
        }
        const Capture capture = *std::exchange(stream->capture, std::nullopt);
        *graph = nullptr;
        if (!capture.valid) return kCaptureInvalidated;
        *graph = here().graphs.add(std::make_unique<Graph>(Graph{capture.operations}));
        return kSuccess;
      },
      handle);
}

FAKE_EXPORT CuStatus cuGraphInstantiateWithFlags(CuGraphExec* exec,
                                                 CuGraph handle,
                                                 unsigned long long flags) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        const Graph* const graph = here().graphs.find(handle);
        if (graph == nullptr) return no_graph();
        *exec = here().graph_execs.add(std::make_unique<Graph>(*graph));
        return kSuccess;
      },
      handle,
      flags);
}

FAKE_EXPORT CuStatus cuGraphLaunch(CuGraphExec exec, CuStream handle) {
  return call(
      __func__,
      Needs::kContext,
      [&]() -> int {
        Stream* const stream = here().stream(handle);
        const Graph* const graph = here().graph_execs.find(exec);
        if (stream == nullptr) return no_stream();
        if (graph == nullptr) return no_graph();
        for (const Operation& operation : graph->operations) {
          if (const int status = enqueue(here(), *stream, operation); status != 0) return status;
        }
        return kSuccess;
      },
      exec,
      handle);
}

FAKE_EXPORT CuStatus cuGraphExecDestroy(CuGraphExec exec) {
  return call(
      __func__,
      Needs::kContextToRelease,
      [&]() -> int { return here().graph_execs.take(exec) == nullptr ? no_graph() : kSuccess; },
      exec);
}

FAKE_EXPORT CuStatus cuGraphDestroy(CuGraph graph) {
  return call(
      __func__,
      Needs::kContextToRelease,
      [&]() -> int { return here().graphs.take(graph) == nullptr ? no_graph() : kSuccess; },
      graph);
}
