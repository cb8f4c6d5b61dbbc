#include "model/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>

namespace pruner {
namespace {

class Machine {
 public:
  Machine(std::string_view stream, std::span<const std::string_view> known)
      : stream_(stream), known_(known) {}

  Result<Pickle> run() {
    while (!stopped_) {
      const size_t begin = at_;
      const uint8_t opcode = static_cast<uint8_t>(take<char>());
      if (!failure_) step(opcode);
      if (failure_) return Error("byte ", begin, " of the pickle: ", *failure_);
    }
    pickle_.bytes = at_;
    return std::move(pickle_);
  }

 private:
  void fail(std::string reason) {
    if (!failure_) failure_ = std::move(reason);
  }

  std::string_view take_bytes(uint64_t count) {
    if (count > stream_.size() - at_) {
      fail("truncated");
      return {};
    }
    at_ += count;
    return stream_.substr(at_ - count, count);
  }

  template <typename T>
  T take() {
    T value{};
    const std::string_view bytes = take_bytes(sizeof(T));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  std::string_view take_line() {
    const size_t end = stream_.find('\n', at_);
    if (end == std::string_view::npos) {
      fail("truncated");
      return {};
    }
    const std::string_view line = stream_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }

  PickleId add(PickleNode node) {
    pickle_.nodes.push_back(std::move(node));
    return static_cast<PickleId>(pickle_.nodes.size() - 1);
  }
  void push(PickleNode node) { stack_.push_back(add(std::move(node))); }
  void push_integer(int64_t value) { push({.kind = PickleKind::kInteger, .integer = value}); }
  void push_text(uint64_t count) { push({.kind = PickleKind::kText, .text = take_bytes(count)}); }

  /// The number of values above the last mark; without a mark, all.
  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }

  PickleId pop() {
    if (stack_.size() <= bottom()) {
      fail("a value is missing");
      return kNoNode;
    }
    const PickleId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  std::vector<PickleId> pop_items(size_t count) {
    std::vector<PickleId> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<PickleId> pop_to_mark() {
    if (marks_.empty()) {
      fail("a mark is missing");
      return {};
    }
    const auto first = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<PickleId> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  PickleNode* top(std::initializer_list<PickleKind> kinds) {
    if (stack_.size() <= bottom()) {
      fail("a value is missing");
      return nullptr;
    }
    PickleNode& node = pickle_.nodes[stack_.back()];
    if (std::find(kinds.begin(), kinds.end(), node.kind) != kinds.end()) return &node;
    fail("a value of another kind is expected");
    return nullptr;
  }
  void extend(std::initializer_list<PickleKind> kinds, const std::vector<PickleId>& items) {
    if (failure_) return;
    PickleNode* node = top(kinds);
    if (node != nullptr) node->items.insert(node->items.end(), items.begin(), items.end());
  }

  void global() {
    const size_t begin = at_;
    take_line();
    take_line();
    if (failure_) return;
    std::string name(stream_.substr(begin, at_ - begin - 1));  // "module\nname"
    std::replace(name.begin(), name.end(), '\n', ' ');
    const auto row = std::find(known_.begin(), known_.end(), name);
    if (row == known_.end()) {
      std::replace(name.begin(), name.end(), ' ', '.');
      return fail("the class " + name + " is none of a cost model's");
    }
    push({.kind = PickleKind::kGlobal, .text = *row});
  }

  void call() {
    const PickleId arguments = pop(), callee = pop();
    if (failure_) return;
    if (pickle_[callee].kind != PickleKind::kGlobal ||
        pickle_[arguments].kind != PickleKind::kTuple)
      return fail("a call of what is no class");
    push({.kind = PickleKind::kCall, .callee = callee, .arguments = arguments});
  }

  void put(uint32_t slot) {
    if (stack_.size() <= bottom()) return fail("a value is missing");
    memo_[slot] = stack_.back();
  }
  void get(uint32_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) return fail("a value that was not stored is asked for");
    stack_.push_back(found->second);
  }

  /// Little-endian two's complement.
  void long_integer(uint64_t count) {
    const std::string_view bytes = take_bytes(count);
    if (failure_) return;
    if (count > 8) return push({.kind = PickleKind::kText, .text = bytes});
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    const unsigned unused = 64 - 8 * static_cast<unsigned>(count);
    push_integer(count == 0 ? 0 : static_cast<int64_t>(value << unused) >> unused);
  }

  void big_endian_float() {
    uint64_t bits = 0;
    for (const char byte : take_bytes(8)) bits = bits << 8 | static_cast<uint8_t>(byte);
    push({.kind = PickleKind::kFloat, .number = std::bit_cast<double>(bits)});
  }

  void step(uint8_t opcode) {
    using enum PickleKind;
    switch (opcode) {
      case 0x80: {  // PROTO
        const int protocol = static_cast<uint8_t>(take<char>());
        if (protocol < 2 || protocol > 3)
          fail("protocol " + std::to_string(protocol) + ", expected 2 or 3");
        return;
      }
      case '.': {  // STOP
        pickle_.root = pop();
        stopped_ = true;
        return;
      }
      case '(': return marks_.push_back(stack_.size());
      case '0': return void(pop());                     // POP
      case 'N': return push({});                        // NONE
      case 0x88: return push_integer(1);                // NEWTRUE
      case 0x89: return push_integer(0);                // NEWFALSE
      case 'J': return push_integer(take<int32_t>());   // BININT
      case 'K': return push_integer(take<uint8_t>());   // BININT1
      case 'M': return push_integer(take<uint16_t>());  // BININT2
      case 0x8a: return long_integer(take<uint8_t>());  // LONG1
      case 'G': return big_endian_float();              // BINFLOAT
      case 'X': return push_text(take<uint32_t>());     // BINUNICODE
      case 'B': return push_text(take<uint32_t>());     // BINBYTES
      case 'C': return push_text(take<uint8_t>());      // SHORT_BINBYTES
      case 'T': return push_text(take<uint32_t>());     // BINSTRING
      case 'U': return push_text(take<uint8_t>());      // SHORT_BINSTRING
      case ')': return push({.kind = kTuple});          // EMPTY_TUPLE
      case 0x85: return push({.kind = kTuple, .items = pop_items(1)});
      case 0x86: return push({.kind = kTuple, .items = pop_items(2)});
      case 0x87: return push({.kind = kTuple, .items = pop_items(3)});
      case 't': return push({.kind = kTuple, .items = pop_to_mark()});
      case ']': return push({.kind = kList});                  // EMPTY_LIST
      case 'a': return extend({kList, kCall}, pop_items(1));   // APPEND
      case 'e': return extend({kList, kCall}, pop_to_mark());  // APPENDS
      case '}': return push({.kind = kDict});                  // EMPTY_DICT
      case 's': return extend({kDict, kCall}, pop_items(2));   // SETITEM
      case 'u': {                                              // SETITEMS
        const std::vector<PickleId> items = pop_to_mark();
        return items.size() % 2 == 0 ? extend({kDict, kCall}, items)
                                     : fail("a key without a value");
      }
      case 'c': return global();
      case 'R':                  // REDUCE
      case 0x81: return call();  // NEWOBJ
      case 'b': {                // BUILD
        const PickleId state = pop();
        if (PickleNode* object = failure_ ? nullptr : top({kCall})) object->state = state;
        return;
      }
      case 'Q': return push({.kind = kPersistent, .items = pop_items(1)});  // BINPERSID
      case 'q': return put(take<uint8_t>());                                // BINPUT
      case 'r': return put(take<uint32_t>());                               // LONG_BINPUT
      case 'h': return get(take<uint8_t>());                                // BINGET
      case 'j': return get(take<uint32_t>());                               // LONG_BINGET
      default: return fail("opcode " + std::to_string(opcode) + " is none of a checkpoint's");
    }
  }

  std::string_view stream_;
  std::span<const std::string_view> known_;
  size_t at_ = 0;
  bool stopped_ = false;
  std::optional<std::string> failure_;
  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::unordered_map<uint32_t, PickleId> memo_;
};

}  // namespace

PickleId Pickle::find(PickleId dict, std::string_view key) const {
  if (dict == kNoNode) return kNoNode;
  const PickleNode& node = (*this)[dict];
  if (node.kind != PickleKind::kDict && node.kind != PickleKind::kCall) return kNoNode;
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const PickleNode& name = (*this)[node.items[i]];
    if (name.kind == PickleKind::kText && name.text == key) return node.items[i + 1];
  }
  return kNoNode;
}

Result<Pickle> read_pickle(std::string_view stream, std::span<const std::string_view> known) {
  return Machine(stream, known).run();
}

}  // namespace pruner
