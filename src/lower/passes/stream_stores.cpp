// Sends values that nothing here reads again past the caches.
#include <algorithm>
#include <utility>

#include "lower/passes.h"
#include "lower/rewrite.h"

namespace pruner {

Program stream_stores(Program program) {
  std::vector<bool> streams;  // whether a buffer streams, by buffer
  for (Buffer& buffer : program.buffers) streams.push_back(std::exchange(buffer.stream, false));
  if (!std::ranges::count(streams, true)) return program;
  program.body = rewrite(program.body, [&](const Stmt& s) {
    const Store* store = std::get_if<Store>(&s->op);
    if (store == nullptr || !streams[static_cast<size_t>(store->buffer.value)]) return Stmt();
    Store past = *store;
    past.streaming = true;
    return make_stmt(std::move(past));
  });
  return program;
}

}  // namespace pruner
