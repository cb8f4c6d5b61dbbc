// Transfer-Tuning (section 4): nothing is searched. The schedule that needs no search is measured,
// and then those of other tasks that were offered.
#include "search/batch.h"
#include "search/search.h"

namespace pruner {

static std::vector<Candidate> next_batch(const SearchRequest& request, Rng&) {
  Batch batch(request.history, request.count);
  if (request.history.empty()) batch.add(default_schedule(request.task, request.space));
  for (const Candidate& candidate : request.offered) batch.add(candidate);
  return batch.take();
}

const SearchPolicy kTransferPolicy = {
    .name = "transfer", .next_batch = next_batch, .options = {.ingredients = {}}};

}  // namespace pruner
