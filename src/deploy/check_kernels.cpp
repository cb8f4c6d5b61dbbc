#include "deploy/check_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <numeric>

#include "graph/interpret_elements.h"
#include "graph/ops/op.h"
#include "measure/kernel_check.h"
#include "measure/measure.h"
#include "measure/output_check.h"
#include "measure/process_limits.h"
#include "measure/shared_memory.h"
#include "runtime/flush_denormals.h"
#include "runtime/guarded_buffer.h"
#include "runtime/thread_pool.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

constexpr int64_t kWhole = 4096;  // outputs of fewer elements are compared whole
constexpr int64_t kSampled = 64;  // elements of larger ones
constexpr int64_t kTail = 64;     // the last places of an axis, where a tile may be ragged
constexpr int64_t kDrawn =
    8191;  // drawn elements of an input, which repeat; a prime, so that no stride meets one twice
constexpr int kDraws = 2;  // values are wrong if they are, at equal places, on as many inputs
constexpr double kMostInlined =
    1e4;  // operations of a stage that the interpreter computes in place
constexpr size_t kMostSuspects = 16;  // elements that two kernels compute otherwise, of each kind
constexpr unsigned kTimeoutS = 60;    // a call's limit
constexpr size_t kTextBytes = 400;    // a report's length, in words that say what is wrong
constexpr std::byte kOtherFill{0x5a};

/// `Order` is the order of the inputs' floats. A kernel that leaves out the first or last terms of
/// a maximum gives a wrong one if terms descend or ascend. Of drawn terms these are rarely the
/// greatest.
enum class Order : uint8_t { kDrawn, kAscending, kDescending };

enum class CallState : uint8_t { kOpen, kRunning, kRight, kWrong, kNoMemory };

/// Holds the report of a child on one call, in memory that all children share.
struct CallReport {
  std::atomic<int32_t> child = 0;  // number of the child that took the call, from 1; 0: none has
  CallState state = CallState::kOpen;
  char text[kTextBytes] = "";
};

/// Holds a tensor as a kernel finds it: a slice lies inside the tensor that it is cut from.
struct PlacedTensor {
  GuardedBuffer buffer;
  std::vector<int64_t> shape, within;  // shapes of the tensor and of the one that has its bytes
  int64_t first = 0, element_bytes = 0;

  std::byte* data() const { return buffer.data() + first * element_bytes; }
  bool is_dense() const { return within == shape; }

  /// Calls fn(offset in the buffer, offset in the tensor, bytes) for each of its rows.
  template <typename Fn>
  void each_row(const Fn& fn) const {
    const size_t rank = shape.size();
    const int64_t row = rank == 0 ? 1 : shape.back();
    std::vector<int64_t> strides(rank, 1);
    for (size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * within[d];
    const int64_t rows = row == 0 ? 0 : element_count(shape) / row;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t left = r, at = first;
      for (size_t d = rank - std::min<size_t>(rank, 1); d-- > 0;) {
        at += left % shape[d] * strides[d];
        left /= shape[d];
      }
      fn(at * element_bytes, r * row * element_bytes, static_cast<size_t>(row * element_bytes));
    }
  }
};

/// Keeps the memory of one trial for the next, which spares the system making its pages anew.
class BufferPool {
 public:
  /// The bytes are whatever they were. The error: no memory.
  Result<GuardedBuffer> take(int64_t bytes) {
    const auto enough = std::ranges::lower_bound(free_, bytes, {}, &GuardedBuffer::capacity);
    if (enough == free_.end()) {
      if (!free_.empty()) free_.pop_back();
      return GuardedBuffer::make(bytes);
    }
    GuardedBuffer buffer = std::move(*enough).resized(bytes);
    free_.erase(enough);
    return buffer;
  }

  void give(GuardedBuffer buffer) {
    const auto at =
        std::ranges::upper_bound(free_, buffer.capacity(), {}, &GuardedBuffer::capacity);
    free_.insert(at, std::move(buffer));
    if (free_.size() > kMost) free_.erase(free_.begin());
  }

 private:
  static constexpr size_t kMost = 8;
  std::vector<GuardedBuffer> free_;  // sorted by capacity
};

Result<PlacedTensor> place(const Partition& partition, ValueId id, BufferPool& buffers) {
  const PlannedValue& value = partition[id];
  const Storage storage = partition.storage_of(id);
  // A view lies densely in its own shape; a slice has the strides of the tensor that it is cut
  // from.
  const bool whole = element_count(storage.shape) == element_count(value.shape);
  const int64_t element_bytes = dtype_bytes(value.dtype);
  TRY_ASSIGN(GuardedBuffer buffer,
             buffers.take(element_count(partition[storage.owner].shape) * element_bytes));
  return PlacedTensor{std::move(buffer),
                      value.shape,
                      whole ? value.shape : storage.shape,
                      storage.first,
                      element_bytes};
}

const std::optional<Tensor>& constant_of(const Partition& partition, ValueId id) {
  return partition[partition.storage_of(id).owner].constant;
}

/// Elements of a large output near the end of each axis, where the last tile may be ragged.
std::vector<int64_t> elements_near_ends(std::span<const int64_t> shape, Rng& rng) {
  constexpr size_t kAll = 32, kLeast = 8;
  const size_t each = std::max(kLeast, kAll / std::max<size_t>(shape.size(), 1));  // an axis
  std::vector<int64_t> elements;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    for (size_t i = 0; i < each; ++i) {
      int64_t position = 0;
      for (size_t d = 0; d < shape.size(); ++d) {
        const int64_t near_end = shape[d] - 1 - rng.below(std::min(kTail, shape[d]));
        position = position * shape[d] + (d == axis ? near_end : rng.below(shape[d]));
      }
      elements.push_back(position);
    }
  }
  return elements;
}

/// Returns the number of operations that the interpreter makes of the DAG's largest stage, with the
/// stages that it reads computed in place. If each stage of a chain reads the one before twice, the
/// number doubles with each stage.
double inlined_size(const ComputeDag& dag) {
  std::vector<double> sizes;
  for (const Stage& stage : dag.stages) {
    double size = 1;
    if (!stage.is_placeholder())
      visit(stage.body, [&](const Expr& e) {
        const Load* load = as<Load>(e);
        if (load == nullptr) return;
        const Stage& read = dag[load->tensor];
        size += read.is_reduction() ? 1 : sizes[static_cast<size_t>(load->tensor.value)];
      });
    sizes.push_back(size);
  }
  return std::ranges::max(sizes);
}

/// Makes one call in the child.
class KernelTrial {
 public:
  /// `data` draws the inputs, `places` the elements that are compared.
  KernelTrial(const KernelCall& call,
              PrunerPool& pool,
              BufferPool& buffers,
              Order order,
              Rng data,
              Rng places)
      : call_(call),
        group_(call.at->groups[call.group]),
        pool_(pool),
        buffers_(buffers),
        order_(order),
        data_(data),
        places_(places) {}

  KernelTrial(const KernelTrial&) = delete;
  KernelTrial& operator=(const KernelTrial&) = delete;

  ~KernelTrial() {
    for (std::optional<PlacedTensor>& input : inputs_)
      if (input) buffers_.give(std::move(input->buffer));
    if (output_) buffers_.give(std::move(output_->buffer));
    if (workspace_) buffers_.give(std::move(*workspace_));
  }

  /// Holds a kernel's fault. A difference of values may be a decision between floats that rounding
  /// has taken the other way; any other fault is one whatever the inputs.
  struct Fault {
    std::string text;
    bool of_values = false;
  };

  /// Returns the fault; nullopt if there is none. The error: no memory.
  Result<std::optional<Fault>> run() {
    TRY(make_inputs());
    TRY_ASSIGN(output_, place(*call_.at, group_.output, buffers_));
    int64_t workspace_bytes = call_.kernel->artifact->workspace_bytes;
    if (call_.other != nullptr)
      workspace_bytes = std::max(workspace_bytes, call_.other->artifact->workspace_bytes);
    TRY_ASSIGN(workspace_, buffers_.take(workspace_bytes));
    if (std::optional<std::string> wrong = call(*call_.kernel, kUnwritten))
      return fault(*wrong, false);
    Tensor got = output();
    const std::optional<std::string> unwritten = find_unwritten(got);
    const DType dtype = got.dtype();
    if (unwritten || !is_float(dtype) || dtype_bytes(dtype) < 2) {
      // The bytes of the filling may also be a value: what another filling changes was not written.
      got = got.clone();
      if (std::optional<std::string> wrong = call(*call_.kernel, kOtherFill))
        return fault(*wrong, false);
      const Tensor again = output();
      const size_t bytes = static_cast<size_t>(got.bytes());
      if (std::memcmp(std::as_const(got).data(), again.data(), bytes) != 0)
        return fault(unwritten.value_or("an element is not written, or differs from run to run"),
                     false);
    }
    std::vector<int64_t> suspects;
    if (call_.other != nullptr && got.num_elements() >= kWhole) {
      got = got.clone();
      if (std::optional<std::string> wrong = call(*call_.other, kUnwritten))
        return fault(*wrong, false);
      suspects = find_suspects(got, output());
    }
    if (std::optional<std::string> wrong = compare(got, suspects)) return fault(*wrong, true);
    return std::optional<Fault>();
  }

  /// Writes into `text` which buffer an address lies in, for the report of a fault.
  void describe_fault(const void* address, char* text) const {
    const auto describe = [&](const GuardedBuffer& buffer, const char* what, size_t i) {
      if (!buffer.holds(address)) return;
      const int64_t at = static_cast<const std::byte*>(address) - buffer.data();
      fmt::format_to_n(text,
                       kTextBytes - 1,
                       "it touches byte {} of {} {}, which has {}",
                       at,
                       what,
                       i,
                       buffer.bytes());
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const GuardedBuffer* const constant = call_.kernel->constants[i].get();
      if (constant != nullptr || inputs_[i])
        describe(constant != nullptr ? *constant : inputs_[i]->buffer, "input", i);
    }
    if (output_) describe(output_->buffer, "output", 0);
    if (workspace_) describe(*workspace_, "workspace", 0);
  }

 private:
  static std::optional<Fault> fault(std::string text, bool of_values) {
    return Fault{std::move(text), of_values};
  }

  Result<Unit> make_inputs() {
    const ComputeDag& dag = group_.dag;
    std::vector<bool> is_constant;
    for (const ValueId id : group_.inputs)
      is_constant.push_back(constant_of(*call_.at, id).has_value());
    tensors_ = random_inputs(dag, data_, kDrawn, is_constant);
    make_signed(dag, tensors_);
    for (size_t i = 0; i < group_.inputs.size(); ++i) {
      const ValueId id = group_.inputs[i];
      Tensor& tensor = tensors_[i];
      inputs_.emplace_back();
      if (is_constant[i]) {
        tensor = constant_of(*call_.at, id)->reshaped((*call_.at)[id].shape);
        continue;
      }
      make_normal(tensor);
      TRY_ASSIGN(PlacedTensor placed, place(*call_.at, id, buffers_));
      const DType dtype = tensor.dtype();
      if (placed.is_dense()) {
        const size_t bytes = static_cast<size_t>(element_count(placed.shape)) *
                             static_cast<size_t>(placed.element_bytes);
        repeat(tensor, {placed.data(), bytes});
        tensor = Tensor::view(dtype, placed.shape, nullptr, placed.data());
        make_ordered(dtype, {placed.data(), bytes});
      } else {
        Tensor whole(dtype, placed.shape);
        auto* const from = static_cast<std::byte*>(whole.data());
        repeat(tensor, {from, static_cast<size_t>(whole.bytes())});
        make_ordered(dtype, {from, static_cast<size_t>(whole.bytes())});
        placed.buffer.fill(kUnwritten);
        placed.each_row([&](int64_t to, int64_t at, size_t row_bytes) {
          std::memcpy(placed.buffer.data() + to, from + at, row_bytes);
        });
        tensor = std::move(whole);
      }
      placed.buffer.make_read_only();
      inputs_.back() = std::move(placed);
    }
    return Unit{};
  }

  /// The least number of float8e8m0 is a subnormal one of float32, which kernels take for zero.
  static void make_normal(Tensor& tensor) {
    if (tensor.dtype() != DType::kFloat8E8M0) return;
    auto* const codes = static_cast<uint8_t*>(tensor.data());
    std::replace(codes, codes + tensor.num_elements(), uint8_t{0}, uint8_t{1});
  }

  void make_ordered(DType dtype, std::span<std::byte> bytes) const {
    if (order_ == Order::kDrawn || dtype != DType::kFloat32) return;
    const size_t count = bytes.size() / sizeof(float);
    auto* const floats = reinterpret_cast<float*>(bytes.data());
    for (size_t i = 0; i < count; ++i) {
      const size_t place = order_ == Order::kAscending ? i : count - 1 - i;
      floats[i] = 2 * static_cast<float>(place) / static_cast<float>(count) - 1;
    }
  }

  /// Runs a kernel once; returns what it wrote beside its output, in words.
  std::optional<std::string> call(const PreparedKernel& kernel, std::byte filling) {
    output_->buffer.fill(filling);
    workspace_->fill(filling);
    std::vector<void*> args;
    for (size_t i = 0; i < inputs_.size(); ++i)
      args.push_back(inputs_[i] ? inputs_[i]->data() : kernel.constants[i]->data());
    args.push_back(output_->data());
    args.push_back(const_cast<int64_t*>(call_.extents.data()));
    {
      const FlushDenormals flush;  // modules flush, too
      alarm(kTimeoutS);
      kernel.code->entry()(args.data(), workspace_->data(), &pool_);
      alarm(0);
    }
    if (!output_->buffer.intact()) return "it writes outside of its output";
    if (!workspace_->intact()) return "it writes outside of its workspace";
    if (output_->is_dense()) return std::nullopt;
    // Beside the slice nothing may change.
    std::vector<std::byte> rest(output_->buffer.span().begin(), output_->buffer.span().end());
    output_->each_row([&](int64_t at, int64_t, size_t bytes) {
      std::memset(rest.data() + at, std::to_integer<int>(filling), bytes);
    });
    if (rest.empty()) return std::nullopt;
    // All bytes are equal if each is equal to the one before.
    if (rest[0] != filling || std::memcmp(rest.data(), rest.data() + 1, rest.size() - 1) != 0)
      return "it writes into what lies beside its output";
    return std::nullopt;
  }

  /// Returns the output; a dense one is a view until the next call.
  Tensor output() const {
    const DType dtype = (*call_.at)[group_.output].dtype;
    if (output_->is_dense()) return Tensor::view(dtype, output_->shape, nullptr, output_->data());
    Tensor tensor(dtype, output_->shape);
    auto* const to = static_cast<std::byte*>(tensor.data());
    output_->each_row([&](int64_t from, int64_t at, size_t bytes) {
      std::memcpy(to + at, output_->buffer.data() + from, bytes);
    });
    return tensor;
  }

  /// Finds an unwritten element: kUnwritten is a NaN of a float type that no kernel computes.
  static std::optional<std::string> find_unwritten(const Tensor& got) {
    const auto width = static_cast<size_t>(dtype_bytes(got.dtype()));
    if (!is_float(got.dtype()) || width < 2) return std::nullopt;
    const auto find = [&]<typename Word>(Word unwritten) {
      const auto* const words = static_cast<const Word*>(got.data());
      return std::find(words, words + got.num_elements(), unwritten) - words;
    };
    const int64_t element = width == 8   ? find(~uint64_t{0})
                            : width == 4 ? find(~uint32_t{0})
                                         : find(static_cast<uint16_t>(~0));
    if (element == got.num_elements()) return std::nullopt;
    return print_position(element, got.shape()) + " is not written";
  }

  /// Returns the elements of two kernels' outputs that are furthest apart, absolutely and relative
  /// to their size; none if the outputs are equal.
  static std::vector<int64_t> find_suspects(const Tensor& a, const Tensor& b) {
    const bool is_float32 = a.dtype() == DType::kFloat32;  // the usual type, without a call each
    const auto* const x = is_float32 ? static_cast<const float*>(a.data()) : nullptr;
    const auto* const y = is_float32 ? static_cast<const float*>(b.data()) : nullptr;
    using Apart = std::pair<double, int64_t>;  // how far, and the element
    std::vector<Apart> furthest, relative;     // heaps, the least on top
    const auto keep = [](std::vector<Apart>& heap, Apart one) {
      if (heap.size() == kMostSuspects && one <= heap.front()) return;
      if (heap.size() == kMostSuspects) {
        std::ranges::pop_heap(heap, std::greater());
        heap.pop_back();
      }
      heap.push_back(one);
      std::ranges::push_heap(heap, std::greater());
    };
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      const double first = is_float32 ? x[i] : a.get(i), second = is_float32 ? y[i] : b.get(i);
      if (first == second || (std::isnan(first) && std::isnan(second))) continue;
      double apart = std::abs(first - second);
      if (!std::isfinite(apart)) apart = std::numeric_limits<double>::max();
      keep(furthest, {apart, i});
      keep(relative, {apart / (std::abs(first) + std::abs(second)), i});
    }
    std::vector<int64_t> elements;
    for (const std::vector<Apart>* heap : {&furthest, &relative})
      for (const auto& [apart, element] : *heap) elements.push_back(element);
    return elements;
  }

  /// `suspects` are elements that have to be among those compared, of a large output.
  std::optional<std::string> compare(const Tensor& got, std::span<const int64_t> suspects) {
    const double form = form_error(*call_.kernel->artifact);
    const bool small = got.num_elements() < kWhole;
    const int64_t count = small ? got.num_elements() : kSampled;
    const bool has_nodes = call_.at->graph != nullptr && !group_.node_numbers.empty();
    ExpectedOutput expected{got.dtype(), got.shape(), {}, {}};
    if (!has_nodes || inlined_size(group_.dag) <= kMostInlined) {
      // The DAG gives the expected values, and how exactly a kernel has to agree.
      expected = expect_outputs(group_.dag, tensors_, count, places_).front();
      expected.shape = got.shape();
      if (!expected.bound) expected.dtype = narrowest_float(got.dtype());
      if (std::optional<std::string> wrong = find_far(expected, got, form)) return wrong;
    } else {
      expected.elements = sample_elements(got.shape(), count, places_);
      expected.dtype = narrowest_float(got.dtype());
    }
    if (!small) {
      // Every second element is enough for the second comparison, with the ends of tiles.
      for (size_t i = expected.elements.size(); i-- > 0;)
        if (i % 2 == 1)
          expected.elements.erase(expected.elements.begin() + static_cast<int64_t>(i));
      std::ranges::copy(elements_near_ends(got.shape(), places_),
                        std::back_inserter(expected.elements));
      // If rounding decides, some elements may differ, and suspects are the likeliest.
      if (!expected.rounded && expected.jumps == 0)
        std::ranges::copy(suspects, std::back_inserter(expected.elements));
    }
    // Narrow results are compared before their last rounding, which the graph's values have had.
    if (!has_nodes || expected.unrounded) {
      if (small) return std::nullopt;
      expected =
          expect_elsewhere(group_.dag, tensors_, expected, std::vector<int64_t>(expected.elements));
      return find_far(expected, got, form);
    }
    std::map<ValueId, Tensor> known;
    for (size_t i = 0; i < group_.inputs.size(); ++i) known.emplace(group_.inputs[i], tensors_[i]);
    GraphElements nodes(*call_.at->graph, std::move(known));
    expected.values = nodes.at(group_.output, expected.elements);
    return find_far(expected, got, form);
  }

  /// The type whose rounding decides how exact a float output is: a float64 that is cast from
  /// float32 has the error of float32.
  DType narrowest_float(DType output) const {
    if (!is_float(output)) return output;
    DType narrowest = output;
    for (const Stage& stage : group_.dag.stages)
      if (!stage.is_placeholder() && is_float(stage.dtype) &&
          row_of(stage.dtype).fraction_bits < row_of(narrowest).fraction_bits)
        narrowest = stage.dtype;
    return narrowest;
  }

  /// Finds the first element that is too far from the expected one. Some bytes of rounded floats
  /// may be one apart; if floats decide between values, a few elements may be another value.
  static std::optional<std::string> find_far(ExpectedOutput& expected,
                                             const Tensor& got,
                                             double form) {
    const auto count = static_cast<double>(expected.elements.size());
    double near_ones = 0, far_ones = 0;
    const double most_near = 1 + kMostRoundedApart * count,
                 most_far = expected.rounded ? 0 : std::floor(expected.jumps * count);
    // An infinity says nothing of how exact the other elements have to be.
    expected.largest = 0;
    for (const double value : expected.values)
      if (std::isfinite(value)) expected.largest = std::max(expected.largest, std::abs(value));
    for (size_t i = 0; i < expected.elements.size(); ++i) {
      const double value = got.get(expected.elements[i]), wanted = expected.values[i];
      if (value == wanted || (std::isnan(value) && std::isnan(wanted))) continue;
      const bool near =
          std::isfinite(wanted) && std::abs(value - wanted) <= tolerance(expected, wanted, form);
      if (near && (!expected.rounded || ++near_ones <= most_near)) continue;
      if (!near && ++far_ones <= most_far) continue;
      return fmt::format("{} is {}, expected {}",
                         print_position(expected.elements[i], got.shape()),
                         value,
                         wanted);
    }
    return std::nullopt;
  }

  const KernelCall& call_;
  const Group& group_;
  PrunerPool& pool_;
  BufferPool& buffers_;
  const Order order_;
  Rng data_, places_;
  std::vector<Tensor> tensors_;                      // inputs of the group
  std::vector<std::optional<PlacedTensor>> inputs_;  // nullopt: a constant
  std::optional<PlacedTensor> output_;
  std::optional<GuardedBuffer> workspace_;
};

// The signal handler takes no argument; a child runs one call at a time.
struct {
  CallReport* report = nullptr;
  const KernelTrial* trial = nullptr;
} running;

void note_fault(int, siginfo_t* signal, void*) {
  // Returning runs the instruction again, which now kills the process: the handler is gone.
  if (running.trial != nullptr)
    running.trial->describe_fault(signal->si_addr, running.report->text);
}

void watch_for_faults() {
  struct sigaction action = {};
  action.sa_sigaction = note_fault;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  signal(SIGALRM, SIG_DFL);
}

/// Whether a kernel may leave out terms of a maximum or minimum and be right on most data: there
/// are few results, each of many terms. The answer is no if sums are formed, too: a softmax is the
/// same whatever it subtracts.
bool may_hide_terms(const ComputeDag& dag) {
  constexpr int64_t kMany = 64;  // results a term
  bool may = false;
  for (const Stage& stage : dag.stages) {
    if (!stage.is_reduction()) continue;
    if (stage.combiner != Combiner::kMax && stage.combiner != Combiner::kMin) return false;
    may = may || stage.num_elements() < kMany * stage.reduce_size();
  }
  return may;
}

void run_call(const KernelCall& call,
              PrunerPool& pool,
              BufferPool& buffers,
              uint64_t seed,
              CallReport& report) {
  report.state = CallState::kRunning;
  std::optional<std::string> wrong;
  const auto try_with = [&](Order order) {
    for (int draw = 0; draw < kDraws; ++draw) {
      const uint64_t data_seed = seed * kDraws + static_cast<uint64_t>(draw);
      KernelTrial trial(call, pool, buffers, order, Rng(data_seed), Rng(seed));
      running = {&report, &trial};
      const Result<std::optional<KernelTrial::Fault>> found = trial.run();
      running = {};
      if (!found.ok()) _exit(ENOMEM);
      wrong = std::nullopt;
      if (*found) wrong = (*found)->text;
      if (!*found || !(*found)->of_values) break;
    }
  };
  try_with(Order::kDrawn);
  if (may_hide_terms(call.at->groups[call.group].dag))
    for (const Order order : {Order::kAscending, Order::kDescending})
      if (!wrong) try_with(order);
  if (wrong) fmt::format_to_n(report.text, kTextBytes - 1, "{}", *wrong);
  report.state = wrong ? CallState::kWrong : CallState::kRight;
}

/// Starts child `number`, which takes calls that no child has taken until none is left: some calls
/// run a hundred times as long as others.
pid_t start_child(std::span<const KernelCall> calls,
                  CallReport* reports,
                  int32_t number,
                  int threads) {
  const pid_t child = fork();
  if (child != 0) return child;
  die_with_parent();
  limit_this_process(int64_t{1} << 42, 0);  // no core file
  watch_for_faults();
  const ThreadPool pool = make_thread_pool(threads, false);
  BufferPool buffers;
  try {
    for (size_t i = 0; i < calls.size() && pool != nullptr; ++i) {
      int32_t none = 0;
      if (reports[i].child.compare_exchange_strong(none, number))
        run_call(calls[i], *pool, buffers, i, reports[i]);
    }
  } catch (const std::bad_alloc&) {
    _exit(ENOMEM);
  }
  _exit(0);
}

/// Waits for a child; returns whether it ended by itself. The call that it ran when it was killed
/// is wrong, except after SIGKILL, by which a system takes back memory.
bool wait_for(pid_t child, std::span<CallReport> reports, int32_t number) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  for (CallReport& report : reports) {
    if (report.child != number) continue;
    if (report.state == CallState::kOpen) report.child = 0;  // it died before the call
    if (report.state != CallState::kRunning) continue;
    if (WIFEXITED(status) ? WEXITSTATUS(status) == ENOMEM : WTERMSIG(status) == SIGKILL) {
      report.state = CallState::kNoMemory;
      return false;
    }
    const bool timeout = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    const std::string what =
        timeout
            ? fmt::format("it still runs after {} s", kTimeoutS)
            : fmt::format(
                  "{}: {}", describe_end(status), report.text[0] == 0 ? "in its run" : report.text);
    what.copy(report.text, kTextBytes - 1);
    report.text[std::min(what.size(), kTextBytes - 1)] = 0;
    report.state = CallState::kWrong;
    return false;
  }
  return true;  // it died between two calls: those left stay open
}

}  // namespace

Result<PreparedKernel> prepare(const Artifact& artifact,
                               const Partition& stored,
                               size_t group,
                               Weights& weights) {
  PreparedKernel prepared{&artifact, {}, {}};
  Result<std::unique_ptr<LoadedKernel>> code = load_kernel(artifact.object, artifact.symbol);
  if (!code.ok()) {
    // Without an instruction for it float16 is converted by functions of the C library, which only
    // a shared library finds.
    TRY_ASSIGN(const std::string library, link_kernel(artifact.object, artifact.symbol));
    code = load_kernel(library, artifact.symbol);
  }
  TRY_ASSIGN(prepared.code, std::move(code));
  const std::vector<ValueId>& inputs = stored.groups[group].inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::shared_ptr<const GuardedBuffer>& buffer = prepared.constants.emplace_back();
    if (!constant_of(stored, inputs[i])) continue;
    TRY_ASSIGN(buffer, weights.packed(stored, inputs[i], artifact.arguments[i].pack));
  }
  return prepared;
}

Result<std::vector<std::optional<std::string>>> find_wrong_kernels(
    std::span<const KernelCall> calls, const Target& target, int jobs) {
  std::vector<std::optional<std::string>> wrong(calls.size());
  if (calls.empty()) return wrong;
  const SharedMemory memory(calls.size() * sizeof(CallReport));
  const Error no_process(
      "no process could be started to check kernels in; --no-check leaves it out");
  if (!memory.mapped()) return no_process;
  auto* const reports = reinterpret_cast<CallReport*>(memory.data());
  std::vector<int32_t> numbers(std::min(static_cast<size_t>(std::max(jobs, 1)), calls.size()));
  std::iota(numbers.begin(), numbers.end(), 1);
  while (!numbers.empty()) {
    std::vector<std::pair<pid_t, int32_t>> children;
    for (const int32_t number : numbers)
      children.emplace_back(start_child(calls, reports, number, target.threads), number);
    numbers.clear();
    for (const auto& [child, number] : children) {
      if (child < 0) continue;
      if (!wait_for(child, {reports, calls.size()}, number)) numbers.push_back(number);
    }
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    if (reports[i].state == CallState::kWrong) wrong[i] = reports[i].text;
    if (reports[i].state == CallState::kNoMemory)
      return Error("kernel \"",
                   calls[i].at->groups[calls[i].group].name,
                   "\" could not be checked: ",
                   std::strerror(ENOMEM),
                   "; --no-check leaves it out");
    if (reports[i].state == CallState::kOpen || reports[i].state == CallState::kRunning)
      return no_process;
  }
  return wrong;
}

Result<Unit> check_runnable(const Target& target) {
  if (target.is_gpu()) return Error("kernels for GPUs are not checked when they are compiled");
  if (target.isa != kHostIsa)
    return Error("this ", isa_name(kHostIsa), " machine runs no code for ", isa_name(target.isa));
  return check_cpu_features(target);
}

}  // namespace pruner
