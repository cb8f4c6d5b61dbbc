// Finds races: accesses come in, one at a time, of elements that several threads of a GPU may
// touch; what two threads touch with nothing that orders them, one of them writing, goes out as
// words.
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
  uint32_t copy_block = 0;  // that copies to it and has not waited for that; the writer does
};

class RaceCheck {
 public:
  void begin_launch() { first_block_ = block_ + 1; }
  void begin_block() {
    ++block_;
    ++interval_;
  }
  void barrier() { ++interval_; }

  /// An asynchronous copy to an element of shared memory: it may write from now on until its thread
  /// has waited, and does so for other threads when that has.
  std::optional<std::string> begin_copy(Touch& touch, int thread) {
    std::optional<std::string> race = write(touch, thread, true);
    if (!race) touch.copy_block = block_;
    return race;
  }
  void end_copy(Touch& touch) {
    touch.copy_block = 0;
    touch.write_interval = interval_;
  }

  /// `of_block`: other blocks have an element of their own in its place (shared memory).
  std::optional<std::string> read(Touch& touch, int thread, bool of_block) {
    if (touch.copy_block == block_) return during_copy(touch.writer, thread, "reads");
    if (touch.write_interval == interval_ && touch.writer != thread) {
      return between(touch.writer, "writes", thread, "reads");
    }
    if (!of_block && other_block(touch.write_block)) {
      return between_blocks(touch.write_block, "writes", "reads");
    }
    const bool first = touch.read_interval != interval_;
    touch.reader = first || touch.reader == thread ? thread : kSeveral;
    touch.read_interval = interval_;
    // Of two blocks that read, that of the first read is kept: a later write by either of them is
    // a race with the other.
    if (touch.read_block < first_block_) touch.read_block = block_;
    if (touch.read_block != block_) touch.read_block |= kOthersToo;
    return std::nullopt;
  }

  std::optional<std::string> write(Touch& touch, int thread, bool of_block) {
    if (touch.copy_block == block_) return during_copy(touch.writer, thread, "writes");
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
    return std::nullopt;
  }

 private:
  static constexpr int32_t kSeveral = -1;                    // as a reader: more than one thread
  static constexpr uint32_t kOthersToo = uint32_t{1} << 31;  // in read_block: others read, too

  bool other_block(uint32_t block) const { return block >= first_block_ && block != block_; }

  std::string between(int a, const char* does, int b, const char* also_does) const {
    const std::string first = a == kSeveral ? "several threads" : "thread " + std::to_string(a);
    return first + " " + does + " and thread " + std::to_string(b) + " " + also_does +
           " it between two barriers of block " + std::to_string(block_ - first_block_);
  }
  std::string during_copy(int copier, int thread, const char* does) const {
    return "thread " + std::to_string(thread) + " " + does + " it before thread " +
           std::to_string(copier) + ", which copies to it, has waited for that in block " +
           std::to_string(block_ - first_block_);
  }
  std::string between_blocks(uint32_t other, const char* does, const char* also_does) const {
    return "block " + std::to_string((other & ~kOthersToo) - first_block_) + " " + does +
           " and block " + std::to_string(block_ - first_block_) + " " + also_does +
           " it in one launch";
  }

  uint32_t interval_ = 0;
  uint32_t block_ = 0;  // counts on over launches
  uint32_t first_block_ = 1;
};

}  // namespace pruner
