// Elements of a tensor that have been computed so far, in pages made when first written: of a large
// tensor a few samples touch a few pages.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/ceil_div.h"
#include "tensor/tape_run.h"

namespace pruner {

class ElementPages {
 public:
  explicit ElementPages(int64_t elements)
      : pages_(static_cast<size_t>(ceil_div(elements, kPage))) {}

  /// The element at a row-major position; null: it has not been stored.
  const Word* find(int64_t position) const {
    const auto& page = pages_[static_cast<size_t>(position / kPage)];
    const auto i = static_cast<size_t>(position % kPage);
    return page && page->known[i] ? &page->words[i] : nullptr;
  }
  void store(int64_t position, Word word) {
    auto& page = pages_[static_cast<size_t>(position / kPage)];
    if (!page) page = std::make_unique<Page>();
    const auto i = static_cast<size_t>(position % kPage);
    page->known[i] = true;
    page->words[i] = word;
  }

 private:
  static constexpr int64_t kPage = 1024;  // elements
  struct Page {
    std::bitset<kPage> known;
    std::array<Word, kPage> words;
  };
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace pruner
