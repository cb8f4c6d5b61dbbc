#include "search/best_seen.h"

#include <algorithm>
#include <functional>

namespace pruner {

static bool worse_last(const Scored& a, const Scored& b) { return a.score > b.score; }

void BestSeen::add(const Candidate& candidate, float score) {
  if (capacity_ == 0 || measured_.contains(candidate) || held_.contains(candidate)) return;
  if (heap_.size() == capacity_) {
    if (score <= heap_.front().score) return;
    std::ranges::pop_heap(heap_, worse_last);
    held_.erase(heap_.back().candidate);
    heap_.pop_back();
  }
  held_.insert(candidate);
  heap_.push_back({candidate, score});
  std::ranges::push_heap(heap_, worse_last);
}

std::vector<Scored> BestSeen::take() {
  std::ranges::stable_sort(heap_, std::greater(), &Scored::score);
  return std::move(heap_);
}

}  // namespace pruner
