#include "tensor/interpreter.h"

#include <bit>
#include <memory>

#include "support/ceil_div.h"
#include "support/check.h"
#include "support/parallel_for.h"
#include "tensor/element_pages.h"
#include "tensor/tape_run.h"

namespace pruner {

double number_of(DType dtype, Word word) {
  return is_float(dtype) ? std::bit_cast<double>(word)
                         : int_to_double(dtype, std::bit_cast<int64_t>(word));
}

Word word_of(const Tensor& tensor, int64_t position) {
  return is_float(tensor.dtype()) ? std::bit_cast<Word>(tensor.get(position))
                                  : std::bit_cast<Word>(tensor.get_int(position));
}

namespace {

class Interpreter : public TapeMemory {
 public:
  Interpreter(const ComputeDag& dag, std::span<const Tensor> inputs) : Interpreter(dag) {
    const std::vector<StageId> placeholders = dag.inputs();
    CHECK(placeholders.size() == inputs.size())
        << inputs.size() << " inputs for " << placeholders.size() << " placeholders";
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Stage& stage = dag[placeholders[i]];
      CHECK(inputs[i].shape() == stage.shape() && inputs[i].dtype() == stage.dtype)
          << "input " << i << " does not fit " << stage.name;
      tensors_[index(placeholders[i])] = &inputs[i];
    }
  }
  Interpreter(const ComputeDag& dag, std::span<const Tensor* const> tensors, InputElements inputs)
      : Interpreter(dag) {
    inputs_ = std::move(inputs);
    size_t i = 0;
    for (const StageId id : dag.inputs()) {
      tensors_[index(id)] = tensors[i];
      input_of_[index(id)] = i++;
    }
  }

  void evaluate(StageId stage, std::span<const int64_t> positions, Word* words) {
    if (stored_[index(stage)]) return fetch(stage, positions, words);
    compute(stage, positions, words);
  }

 private:
  explicit Interpreter(const ComputeDag& dag)
      : dag_(dag),
        tensors_(dag.stages.size(), nullptr),
        input_of_(dag.stages.size(), 0),
        stored_(dag.stages.size(), false),
        runs_(dag.stages.size()) {
    for (const Stage& stage : dag.stages) {
      values_.emplace_back(stage.is_placeholder() ? 0 : stage.num_elements());
      stored_[values_.size() - 1] = keep(stage);
    }
  }

  static size_t index(StageId stage) { return static_cast<size_t>(stage.value); }

  // A reduction is computed once an element, and so is a table of constants (Winograd's matrices).
  static bool keep(const Stage& stage) {
    if (stage.is_placeholder() || stage.is_reduction()) return true;
    bool reads = false;
    visit(stage.body, [&](const Expr& e) { reads |= as<Load>(e) != nullptr; });
    return !reads;
  }

  const Tensor* tensor(StageId stage) const override { return tensors_[index(stage)]; }

  void fetch(StageId stage, std::span<const int64_t> positions, Word* words) override {
    if (dag_[stage].is_placeholder()) return inputs_(input_of_[index(stage)], positions, words);
    std::vector<int64_t> missing;
    ElementPages& values = values_[index(stage)];
    for (int64_t position : positions) {
      const bool repeats = !missing.empty() && missing.back() == position;
      if (!repeats && !values.find(position)) missing.push_back(position);
    }
    if (!missing.empty()) {
      std::vector<Word> computed(missing.size());
      compute(stage, missing, computed.data());
      for (size_t i = 0; i < missing.size(); ++i) values.store(missing[i], computed[i]);
    }
    for (size_t i = 0; i < positions.size(); ++i) words[i] = *values.find(positions[i]);
  }

  // Splits the positions into runs along the last axis.
  void compute(StageId id, std::span<const int64_t> positions, Word* words) {
    const Stage& stage = dag_[id];
    if (const Tensor* tensor = tensors_[index(id)]) {
      for (size_t i = 0; i < positions.size(); ++i) words[i] = word_of(*tensor, positions[i]);
      return;
    }
    const int64_t row = stage.axes.empty() ? 1 : stage.axes.back().extent;
    size_t run = 0;
    for (size_t i = 0; i < positions.size(); i += run) {
      const auto follows = [&](size_t n) {
        return n < kLanes && i + n < positions.size() &&
               positions[i + n] == positions[i] + static_cast<int64_t>(n) &&
               positions[i + n] % row != 0;
      };
      for (run = 1; follows(run);) ++run;
      run_for(id, static_cast<int>(run)).run(positions[i], static_cast<int>(run), words + i);
    }
  }

  // The cheapest tape of a stage for runs of `count`.
  TapeRun& run_for(StageId id, int count) {
    auto& runs = runs_[index(id)];
    if (runs.empty()) compile(id, runs);
    size_t best = 0;
    for (size_t i = 1; i < runs.size(); ++i) {
      if (runs[i]->cost(count) < runs[best]->cost(count)) best = i;
    }
    return *runs[best];
  }

  // Lanes along the last axis, or along any of the reduce axes.
  void compile(StageId id, std::vector<std::unique_ptr<TapeRun>>& runs) {
    const Stage& stage = dag_[id];
    const auto add = [&](int lane_var) {
      Tape tape = compile_tape(dag_, id, lane_var, stored_);
      runs.push_back(std::make_unique<TapeRun>(dag_, id, std::move(tape), *this));
    };
    const int rank = static_cast<int>(stage.axes.size());
    add(rank - 1);
    for (size_t r = 0; r < stage.reduce_axes.size(); ++r) {
      if (stage.reduce_axes[r].extent > 1) add(rank + static_cast<int>(r));
    }
  }

  const ComputeDag& dag_;
  std::vector<const Tensor*> tensors_;  // tensors of placeholders; null if inputs_ has the elements
  InputElements inputs_;
  std::vector<size_t> input_of_;  // a placeholder's number among the inputs
  std::vector<bool> stored_;
  std::vector<ElementPages> values_;
  std::vector<std::vector<std::unique_ptr<TapeRun>>> runs_;
};

}  // namespace

class ElementInterpreter::Impl : public Interpreter {
  using Interpreter::Interpreter;
};

ElementInterpreter::ElementInterpreter(const ComputeDag& dag,
                                       std::span<const Tensor* const> tensors,
                                       InputElements inputs)
    : impl_(std::make_unique<Impl>(dag, tensors, std::move(inputs))) {}

ElementInterpreter::~ElementInterpreter() = default;

void ElementInterpreter::evaluate(StageId stage, std::span<const int64_t> positions, Word* words) {
  impl_->evaluate(stage, positions, words);
}

std::vector<double> interpret_elements(const ComputeDag& dag,
                                       std::span<const Tensor> inputs,
                                       StageId stage,
                                       std::span<const int64_t> elements) {
  std::vector<Word> words(elements.size());
  Interpreter(dag, inputs).evaluate(stage, elements, words.data());
  std::vector<double> values;
  for (const Word word : words) values.push_back(number_of(dag[stage].dtype, word));
  return values;
}

std::vector<Tensor> interpret(const ComputeDag& dag, std::span<const Tensor> inputs, int jobs) {
  constexpr int64_t kPart = 1 << 14;  // positions at a time
  std::vector<Tensor> outputs;
  const std::vector<StageId> ids = dag.outputs();
  for (const StageId id : ids) outputs.emplace_back(dag[id].dtype, dag[id].shape());
  // Each job has a part of every output, in whole parts so that no two write to one word.
  parallel_for(jobs, jobs, [&](int64_t job) {
    Interpreter interpreter(dag, inputs);
    std::vector<int64_t> positions;
    std::vector<Word> words(kPart);
    for (size_t o = 0; o < ids.size(); ++o) {
      Tensor& out = outputs[o];
      const int64_t parts = ceil_div(out.num_elements(), kPart);
      for (int64_t part = parts * job / jobs; part < parts * (job + 1) / jobs; ++part) {
        const int64_t first = part * kPart, end = std::min(first + kPart, out.num_elements());
        positions.clear();
        for (int64_t i = first; i < end; ++i) positions.push_back(i);
        interpreter.evaluate(ids[o], positions, words.data());
        for (int64_t i = first; i < end; ++i) {
          const Word word = words[static_cast<size_t>(i - first)];
          if (is_float(out.dtype())) out.set(i, std::bit_cast<double>(word));
          if (!is_float(out.dtype())) out.set_int(i, std::bit_cast<int64_t>(word));
        }
      }
    }
  });
  return outputs;
}

}  // namespace pruner
