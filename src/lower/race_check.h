// Finds races among accesses, given one at a time, to elements that several threads of a GPU may
// touch. In a race, two threads touch an element, one of them writing, and nothing orders them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pruner {

/// Who touched one element last. An interval is the time between two barriers of one block.
struct Touch {
  uint32_t write_interval = 0, read_interval = 0;
  int32_t writer = 0, reader = 0;  // threads
  uint32_t write_block = 0, read_block = 0;
  uint32_t write_fences = 0;  // fences of the writer before it wrote
  uint32_t products = 0;      // products on their way that read the element
};

/// Accesses of two threads, or two blocks, to an element with nothing between that orders them.
/// kCopy: `a` copies to the element. kProduct: a product on its way reads the element. kFence: a
/// product reads what thread `a` wrote without a fence before the last barrier.
struct Race {
  enum Kind : uint8_t { kThreads, kCopy, kBlocks, kProduct, kFence } kind;
  int32_t a, b;
  const char *does, *also_does;
};

/// Functions that are called for every element are inlined (bench/micro/interpret).
class RaceCheck {
 public:
  void begin_launch(size_t threads) {
    first_block_ = block_ + 1;
    fences_.assign(threads, 0);
    settled_fences_ = fences_;
  }
  void begin_block() {
    ++block_;
    ++interval_;
  }
  void barrier() {
    ++interval_;
    settled_fences_ = fences_;
  }
  /// Products after the next barrier see what the thread wrote to shared memory before.
  void fence(int thread) { ++fences_[static_cast<size_t>(thread)]; }

  /// An asynchronous copy to an element of shared memory: it may write from now on until its thread
  /// has waited, and does so for other threads when that has.
  std::optional<Race> begin_copy(Touch& touch, int thread) {
    std::optional<Race> race = write(touch, thread, true);
    if (!race) touch.write_block = kCopies;
    return race;
  }
  void end_copy(Touch& touch) {
    touch.write_block = block_;
    touch.write_interval = interval_;
    touch.write_fences = fences_[static_cast<size_t>(touch.writer)];
  }

  /// A product that `thread` begins reads an element of shared memory until its group has waited.
  std::optional<Race> begin_product(Touch& touch, int thread) {
    if (touch.write_block == kCopies) return during_copy(touch.writer, thread, "multiplies");
    if (touch.write_interval == interval_)
      return between(touch.writer, "writes", thread, "multiplies");
    const bool in_block = touch.write_interval != 0 && touch.write_block == block_;
    if (in_block && settled_fences_[static_cast<size_t>(touch.writer)] <= touch.write_fences)
      return Race{Race::kFence, touch.writer, thread, "", ""};
    ++touch.products;
    return std::nullopt;
  }
  void end_product(Touch& touch, int thread) {
    --touch.products;
    touch.read_interval = interval_;
    touch.reader = thread;
  }

  /// Returns the words for a race; threads are those of the block at hand.
  std::string text(const Race& race) const;

  /// `of_block`: other blocks have an element of their own in its place (shared memory).
  [[gnu::always_inline]] std::optional<Race> read(Touch& touch, int thread, bool of_block) {
    if (touch.write_block == kCopies) return during_copy(touch.writer, thread, "reads");
    if (touch.write_interval == interval_ && touch.writer != thread) {
      return between(touch.writer, "writes", thread, "reads");
    }
    if (!of_block && other_block(touch.write_block)) {
      return between_blocks(touch.write_block, "writes", "reads");
    }
    const bool first = touch.read_interval != interval_;
    touch.reader = first || touch.reader == thread ? thread : kSeveral;
    touch.read_interval = interval_;
    // If two blocks read, the block of the first read is kept: a later write by either block is a
    // race with the other block.
    if (touch.read_block < first_block_) touch.read_block = block_;
    if (touch.read_block != block_) touch.read_block |= kOthersToo;
    return std::nullopt;
  }

  [[gnu::always_inline]] std::optional<Race> write(Touch& touch, int thread, bool of_block) {
    if (touch.write_block == kCopies) return during_copy(touch.writer, thread, "writes");
    if (touch.products > 0) return Race{Race::kProduct, thread, thread, "", ""};
    if (touch.write_interval == interval_ && touch.writer != thread) {
      return between(touch.writer, "writes", thread, "writes");
    }
    if (touch.read_interval == interval_ && touch.reader != thread) {
      return between(touch.reader, "reads", thread, "writes");
    }
    if (!of_block && other_block(touch.write_block)) {
      return between_blocks(touch.write_block, "writes", "writes");
    }
    if (!of_block && other_block(touch.read_block)) {
      return between_blocks(touch.read_block, "reads", "writes");
    }
    touch.write_interval = interval_;
    touch.writer = thread;
    touch.write_block = block_;
    touch.write_fences = fences_[static_cast<size_t>(thread)];
    return std::nullopt;
  }

 private:
  static constexpr int32_t kSeveral = -1;                    // reader: more than one thread
  static constexpr uint32_t kOthersToo = uint32_t{1} << 31;  // in read_block: others read, too

  static constexpr uint32_t kCopies = ~uint32_t{0};  // write_block: the writer copies there

  bool other_block(uint32_t block) const { return block >= first_block_ && block != block_; }

  static Race between(int a, const char* does, int b, const char* also_does) {
    return {Race::kThreads, a, b, does, also_does};
  }
  static Race during_copy(int copier, int thread, const char* does) {
    return {Race::kCopy, copier, thread, "", does};
  }
  Race between_blocks(uint32_t other, const char* does, const char* also_does) const {
    const auto number = [&](uint32_t block) { return static_cast<int32_t>(block - first_block_); };
    return {Race::kBlocks, number(other & ~kOthersToo), number(block_), does, also_does};
  }

  // Fences of each thread, and those before the last barrier.
  std::vector<uint32_t> fences_, settled_fences_;
  uint32_t interval_ = 0;
  uint32_t block_ = 0;  // counts on over launches
  uint32_t first_block_ = 1;
};

}  // namespace pruner
