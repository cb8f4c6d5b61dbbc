// The worker's side of the conversation: a request comes in, an answer goes out.
#pragma once

#include <functional>

#include "measure/frame.h"

namespace pruner {

/// Answers frames from standard input on what was standard output, until the measurer closes it;
/// returns the exit code. From the first call on, prints of this process go to standard error, and
/// Ctrl-C is left to the measurer.
int serve(const std::function<Frame(const Frame& request)>& answer);

}  // namespace pruner
