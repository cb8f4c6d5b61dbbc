#include "deploy/plan_text.h"

#include <fmt/format.h>

#include "pruner/module.h"
#include "runtime/module/plan.h"

namespace pruner {
namespace {

// Read-only pages of the file: loaded when first read, shared by every process. A large section
// ("l") stands apart from the code, whose addresses reach 2 GB on x86-64. The linker does not see
// the bytes, which are as much as the network, unless the object has to have them: it gets a
// section without content, and beside it one of a byte that is kept ("R"), through which their sum
// has a place in the file.
std::string weights_section(Isa isa, int64_t bytes, bool inside) {
  const bool x86 = isa == Isa::kX86;
  const std::string section =
      x86 ? ".section .lrodata.pruner_weights,\"al" : ".section .rodata.pruner_weights,\"a";
  if (inside)
    return fmt::format(
        "{}\",@progbits\n.balign 4096\n{}:\n.zero {}\n", section, kWeightsSymbol, bytes);
  return fmt::format(
      "{0}\",@nobits,unique,1\n.balign 4096\n{1}:\n.zero {2}\n{0}R\",@progbits,unique,2\n.byte 0\n",
      section,
      kWeightsSymbol,
      bytes);
}

/// `text` between quotes, any byte.
std::string escaped(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= ' ' && byte < 127 && c != '"' && c != '\\';
    out += plain ? std::string(1, c) : fmt::format("\\{:03o}", byte);
  }
  return out + '"';
}

int plan_place(Place place) {
  switch (place) {
    case Place::kArena: return kPlanArena;
    case Place::kConstant: return kPlanWeight;
    case Place::kInput: return kPlanInput;
    case Place::kOutput: return kPlanOutput;
    case Place::kNumbers: return kPlanNumbers;
    case Place::kFailures: return kPlanFailures;
    case Place::kNone: break;
  }
  CHECK(false) << "an argument that is nowhere";
  return 0;
}

/// The executor of a backend (runtime/module/executor.h) and its driver (gpu_driver.h).
std::string executor_of(Backend backend) {
  return fmt::format("{}, {}", row_of(backend).executor, row_of(backend).driver);
}

/// Collects the text; strings and arrays get labels and stand behind what points to them.
class PlanText {
 public:
  std::string write(const ModulePlan& plan, bool inside) {
    std::string phases = ".Lphases:\n";
    int64_t kernels = 0;
    int64_t values = 0;
    for (const ModulePlan::Phase& phase : plan.phases) {
      phases += text(phase, kernels, values);
      values += static_cast<int64_t>(phase.num_values());
      for (const ModulePlan::Shapes& shapes : phase.shapes) kernels += std::ssize(shapes.steps);
    }
    std::string pipeline = "0";
    if (plan.pipeline != nullptr) pipeline = pipeline_table(plan, kernels, values);
    std::vector<TensorSpec> states;
    std::string places = ".Lstate_places:\n";
    for (const ModulePlan::State& state : plan.states) {
      states.push_back(state.spec);
      places += fmt::format(".quad {}, {}\n", state.offset, state.bytes);
    }
    const std::string state_specs = ".Lstates:\n" + specs(states);
    // Pointers are written when the library is loaded, then the pages are read-only (RELRO).
    const std::string head = fmt::format(
        ".section .data.rel.ro,\"aw\",@progbits\n.balign 8\n.hidden pruner_plan\n.global "
        "pruner_plan\npruner_plan:\n"
        ".quad {}, {}, {}, {}, {}, {}, {}, {}, {}, {}\n"
        ".quad {}, .Lphases, {}, {}, .Lstates, .Lstate_places, {}, .Lcodes\n"
        ".quad {}, {}, {}, {}\n",
        PRUNER_MODULE_ABI,
        plan.threads,
        plan.flushes_denormals ? 1 : 0,
        executor_of(plan.backend),
        string(plan.cpu_features),
        string(plan.gpu_arch),
        kWeightsSymbol,
        plan.weight_bytes,
        plan.arena_bytes(),
        plan.state_bytes,
        plan.phases.size(),
        kernels,
        plan.states.size(),
        plan.code_files.size(),
        pipeline,
        values,
        string(plan.checked),
        string(plan.numerics));
    const std::string weights = weights_section(plan.isa, plan.weight_bytes, inside);
    const std::string listed = codes(plan.code_files);
    return head + phases + places + state_specs + tables_ + listed +
           ".section .rodata,\"a\",@progbits\n.balign 8\n" + constants_ + weights +
           ".section .note.GNU-stack,\"\",@progbits\n";
  }

 private:
  static std::string address(const ValuePlace& place) {
    return fmt::format(".quad {}, {}\n", plan_place(place.place), place.index);
  }

  static int64_t tensor(const std::optional<size_t>& number) {
    return number ? static_cast<int64_t>(*number) : -1;
  }

  // PlanParts.
  std::string parts_row(const Pipeline::Parts& parts,
                        const Pipeline& pipeline,
                        int64_t first_symbol) {
    std::string found, joins;
    for (const Pipeline::Found& f : parts.found)
      found += fmt::format(".quad {}, {}, {}, {}, {}, {}\n",
                           tensor(f.room),
                           f.part,
                           f.count,
                           f.axis,
                           first_symbol + static_cast<int64_t>(f.symbol),
                           pipeline.symbols[f.symbol].min);
    for (const Pipeline::Join& join : parts.joins)
      joins += fmt::format(".quad {}, {}, {}, {}, {}\n",
                           join.parts.size(),
                           places(join.parts),
                           join.whole,
                           join.axis,
                           first_symbol + static_cast<int64_t>(join.symbol));
    return fmt::format(".quad {}, {}, {}, {}\n",
                       parts.found.size(),
                       table(found),
                       parts.joins.size(),
                       table(joins));
  }

  // The places of symbols' extents among the plan's values.
  std::string symbols(std::vector<size_t> list, int64_t first_symbol) {
    for (size_t& symbol : list) symbol += static_cast<size_t>(first_symbol);
    return places(list);
  }

  // PlanLoop.
  std::string loop_row(const Pipeline::Loop& loop, const Pipeline& pipeline, int64_t first_symbol) {
    std::string carried, stacks;
    for (const Pipeline::Loop::Carried& c : loop.carried)
      carried += fmt::format(".quad {}, {}, {}, {}\n", c.init, c.state, c.next, c.last);
    for (const Pipeline::Loop::Stack& s : loop.stacks)
      stacks += fmt::format(".quad {}, {}, {}\n", tensor(s.init), s.part, s.whole);
    return fmt::format(".quad {}, {}, {}, {}, {}, {}, {}\n",
                       loop.first,
                       loop.last,
                       tensor(loop.trips),
                       tensor(loop.condition),
                       tensor(loop.next),
                       tensor(loop.rounds),
                       loop.round) +
           fmt::format(".quad {}, {}, {}, {}, {}, {}\n",
                       loop.carried.size(),
                       table(carried),
                       loop.stacks.size(),
                       table(stacks),
                       loop.symbols.size(),
                       symbols(loop.symbols, first_symbol)) +
           parts_row(loop.begin, pipeline, first_symbol) +
           parts_row(loop.then, pipeline, first_symbol);
  }

  // PlanPipeline; adds its numbers to the plan's `values`.
  std::string pipeline_table(const ModulePlan& plan, int64_t kernels, int64_t& values) {
    const Pipeline& pipeline = *plan.pipeline;
    const int64_t first_symbol = values;
    values += std::ssize(pipeline.symbols);
    std::string tensors;
    for (const ModulePlan::Tensor& tensor : plan.tensors) {
      tensors += specs({tensor.spec}) + fmt::format(".quad {}, {}, {}, {}\n",
                                                    dtype_bytes(tensor.spec.dtype),
                                                    tensor.input,
                                                    plan.first_tensor() + tensor.offset,
                                                    values);
      values += std::ssize(tensor.spec.shape);
    }
    std::string stages;
    for (const Pipeline::Stage& stage : pipeline.stages)
      stages += fmt::format(".quad {}, {}, {}\n",
                            symbols(stage.symbols, first_symbol),
                            places(stage.inputs),
                            places(stage.outputs)) +
                parts_row(stage.then, pipeline, first_symbol);
    std::string loops;
    for (const Pipeline::Loop& loop : pipeline.loops)
      loops += loop_row(loop, pipeline, first_symbol);
    std::vector<TensorSpec> inputs, outputs;
    for (const size_t t : pipeline.inputs) inputs.push_back(plan.tensors[t].spec);
    for (const size_t t : pipeline.outputs) outputs.push_back(plan.tensors[t].spec);
    const std::string name = string("main"), taken = table(specs(inputs)),
                      given = table(specs(outputs));
    return table(
        fmt::format(".quad {}, {}, {}, {}, {}, 0, {}\n.quad {}, {}, {}, {}, {}, {}, {}, {}\n",
                    name,
                    inputs.size(),
                    taken,
                    outputs.size(),
                    given,
                    kernels,
                    plan.tensors.size(),
                    table(tensors),
                    table(stages),
                    pipeline.loops.size(),
                    table(loops),
                    places(pipeline.outputs),
                    pipeline.symbols.size(),
                    first_symbol));
  }

  std::string places(const std::vector<size_t>& list) {
    return list.empty() ? "0" : numbers({list.begin(), list.end()});
  }

  // PlanPhase, whose kernels have the numbers from `first` on, and the plan's values from `value`
  // on.
  std::string text(const ModulePlan::Phase& phase, int64_t first, int64_t value) {
    std::string shapes;
    int64_t kernel = first;
    for (const ModulePlan::Shapes& some : phase.shapes) {
      shapes += text(some, kernel);
      kernel += std::ssize(some.steps);
    }
    const std::string name = string(phase.name), inputs = table(specs(phase.inputs)),
                      outputs = table(specs(phase.outputs));
    std::string symbols;
    for (const Symbol& symbol : phase.symbols)
      symbols += fmt::format(".quad {}, {}, {}\n", string(symbol.name), symbol.min, symbol.max);
    return fmt::format(".quad {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}\n",
                       name,
                       phase.inputs.size(),
                       inputs,
                       phase.outputs.size(),
                       outputs,
                       first,
                       phase.shapes.front().steps.size(),
                       phase.shapes.size(),
                       table(shapes),
                       phase.input_dims.empty() ? "0" : numbers(phase.input_dims),
                       phase.symbols.size(),
                       table(symbols),
                       phase.num_formulas,
                       phase.formulas.empty() ? "0" : phase.formulas,
                       value);
  }

  // PlanShapes.
  std::string text(const ModulePlan::Shapes& shapes, int64_t first) {
    std::string steps, copies;
    for (const ModulePlan::Step& step : shapes.steps) steps += text(step);
    for (const PlannedCopy& copy : shapes.copies)
      copies += address(copy.from) + address(copy.to) + fmt::format(".quad {}\n", copy.bytes);
    return fmt::format(".quad {}, {}, {}, {}, {}, {}, {}\n",
                       box(shapes.box),
                       first,
                       shapes.steps.size(),
                       table(steps),
                       shapes.copies.size(),
                       table(copies),
                       shapes.output_dims.empty() ? "0" : numbers(shapes.output_dims));
  }

  std::string box(const SymbolBox& box) {
    if (box.min.empty()) return "0";
    std::vector<int64_t> ends = box.min;
    ends.insert(ends.end(), box.max.begin(), box.max.end());
    return numbers(ends);
  }

  // PlanStep.
  std::string text(const ModulePlan::Step& step) {
    std::string args, launches, indices, kernels;
    for (const ModulePlan::Kernel& kernel : step.kernels)
      kernels += fmt::format(".quad {}, {}\n", kernel.symbol, box(kernel.box));
    for (const ValuePlace& arg : step.args) args += address(arg);
    for (const ModulePlan::Launch& launch : step.launches) launches += text(launch);
    for (const ModulePlan::Indices& read : step.indices) indices += text(read);
    return fmt::format(".quad {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}\n",
                       string(step.name),
                       string(step.sketch),
                       step.flops,
                       step.bytes,
                       table(kernels),
                       step.kernels.size(),
                       table(args),
                       step.args.size(),
                       step.workspace,
                       table(launches),
                       step.launches.size(),
                       table(indices),
                       step.indices.size(),
                       string(step.precision));
  }

  // PlanLaunch.
  std::string text(const ModulePlan::Launch& launch) {
    std::string list;
    for (const ModulePlan::Range& arg : launch.args)
      list += address(arg.at) + fmt::format(".quad {}\n", arg.bytes);
    const std::string args = table(list);
    return fmt::format(".quad {}, {}, {}, {}, {}, {}, {}, {}, {}\n",
                       string(launch.kernel),
                       launch.code,
                       launch.blocks,
                       launch.threads,
                       launch.shared_bytes,
                       launch.dynamic_bytes,
                       launch.early ? 1 : 0,
                       args,
                       launch.args.size());
  }

  // PlanIndices.
  std::string text(const ModulePlan::Indices& read) {
    return address(read.range.at) + fmt::format(".quad {}, {}, {}, {}, {}, {}\n",
                                                read.range.bytes,
                                                read.element_bytes,
                                                string(read.name),
                                                numbers(read.extents),
                                                read.extents.size(),
                                                read.from_end ? 1 : 0);
  }

  /// The list; the files' bytes stand among the constants.
  std::string codes(const std::vector<std::string>& files) {
    std::string list = ".Lcodes:\n";
    for (size_t c = 0; c < files.size(); ++c) {
      constants_ +=
          fmt::format(".balign 64\n.Lcode{0}:\n.incbin {1}\n.Lcode{0}_end:\n.byte 0\n.balign 8\n",
                      c,
                      escaped(files[c]));
      list += fmt::format(".quad .Lcode{0}, .Lcode{0}_end - .Lcode{0}\n", c);
    }
    return list;
  }

  // Puts a list with pointers behind the plan; the label stands for its address.
  std::string table(const std::string& content) {
    const std::string name = fmt::format(".Ltable{}", labels_++);
    tables_ += name + ":\n" + content;
    return name;
  }

  // Puts `content` among the constants; the label stands for its address.
  std::string label(const std::string& content) {
    const std::string name = fmt::format(".Lconstant{}", labels_++);
    constants_ += name + ":\n" + content;
    return name;
  }

  std::string string(std::string_view text) {
    return label(".asciz " + escaped(text) + "\n.balign 8\n");
  }

  std::string numbers(const std::vector<int64_t>& list) {
    return label(fmt::format(".quad {}\n", fmt::join(list, ", ")));
  }

  // PrunerTensorSpec: name, dtype and rank of 4 bytes each, shape.
  std::string specs(const std::vector<TensorSpec>& specs) {
    std::string text;
    for (const TensorSpec& spec : specs) {
      const std::string shape = spec.shape.empty() ? "0" : numbers(spec.shape);
      text += fmt::format(".quad {}\n.long {}, {}\n.quad {}\n",
                          string(spec.name),
                          static_cast<int>(spec.dtype),
                          spec.shape.size(),
                          shape);
    }
    return text;
  }

  std::string constants_, tables_;
  int labels_ = 0;
};

}  // namespace

std::string plan_text(const ModulePlan& plan, bool inside) {
  return PlanText().write(plan, inside);
}

}  // namespace pruner
