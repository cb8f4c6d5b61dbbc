#include "deploy/plan_text.h"

#include <fmt/format.h>

#include "pruner/module.h"
#include "runtime/module/plan.h"

namespace pruner {
namespace {

static_assert(static_cast<int>(DType::kFloat32) == PRUNER_FLOAT32 &&
              static_cast<int>(DType::kFloat16) == PRUNER_FLOAT16 &&
              static_cast<int>(DType::kInt64) == PRUNER_INT64 &&
              static_cast<int>(DType::kInt32) == PRUNER_INT32 &&
              static_cast<int>(DType::kInt8) == PRUNER_INT8 &&
              static_cast<int>(DType::kBool) == PRUNER_BOOL);

// Read-only pages of the file: loaded when first read, shared by every process. A large section
// ("l") stands apart from the code, whose addresses reach 2 GB on x86-64.
std::string_view weights_section(Isa isa) {
  return isa == Isa::kX86 ? ".lrodata.pruner_weights,\"al\",@progbits"
                          : ".rodata.pruner_weights,\"a\",@progbits";
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
    case Place::kNone: break;
  }
  CHECK(false) << "an argument that is nowhere";
  return 0;
}

/// Collects the text; strings and arrays get labels and stand behind what points to them.
class PlanText {
 public:
  std::string write(const ModulePlan& plan) {
    std::string args;
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      args += fmt::format(".Largs{}:\n", s);
      for (const ValuePlace& arg : plan.steps[s].args) args += address(arg);
    }
    std::string steps = ".Lsteps:\n";
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      const ModulePlan::Step& step = plan.steps[s];
      steps += fmt::format(".quad {}, {}, {}, {}, {}, .Largs{}, {}, {}\n",
                           string(step.name),
                           string(step.sketch),
                           step.flops,
                           step.bytes,
                           step.symbol,
                           s,
                           step.args.size(),
                           step.workspace);
    }
    std::string copies = ".Lcopies:\n";
    for (const OutputCopy& copy : plan.copies) {
      copies += address(copy.from) + fmt::format(".quad {}, {}\n", copy.output, copy.bytes);
    }
    const std::string inputs = ".Linputs:\n" + specs(plan.inputs);
    const std::string outputs = ".Loutputs:\n" + specs(plan.outputs);
    const std::string head = fmt::format(
        ".section .data.rel.ro,\"aw\",@progbits\n.balign 8\n.hidden pruner_plan\n.global "
        "pruner_plan\npruner_plan:\n"
        ".quad {}, {}, {}, .Lweights, {}, {}, .Linputs, {}, .Loutputs, {}, .Lsteps, {}, .Lcopies\n",
        PRUNER_MODULE_ABI,
        plan.threads,
        string(plan.cpu_features),
        plan.arena_bytes,
        plan.inputs.size(),
        plan.outputs.size(),
        plan.steps.size(),
        plan.copies.size());
    const std::string weights =
        fmt::format(".section {}\n.balign 4096\n.Lweights:\n.incbin {}\n.byte 0\n",
                    weights_section(plan.isa),
                    escaped(plan.weights_file));
    return head + args + steps + copies + inputs + outputs +
           ".section .rodata,\"a\",@progbits\n.balign 8\n" + constants_ + weights +
           ".section .note.GNU-stack,\"\",@progbits\n";
  }

 private:
  static std::string address(const ValuePlace& place) {
    return fmt::format(".quad {}, {}\n", plan_place(place.place), place.index);
  }

  std::string label(const std::string& content) {
    const std::string name = fmt::format(".Lconstant{}", labels_++);
    constants_ += name + ":\n" + content;
    return name;
  }

  std::string string(std::string_view text) {
    return label(".asciz " + escaped(text) + "\n.balign 8\n");
  }

  std::string specs(const std::vector<TensorSpec>& specs) {
    std::string text;
    for (const TensorSpec& spec : specs) {
      const std::string shape =
          spec.shape.empty() ? "0" : label(fmt::format(".quad {}\n", fmt::join(spec.shape, ", ")));
      text += fmt::format(".quad {}\n.long {}, {}\n.quad {}\n",
                          string(spec.name),
                          static_cast<int>(spec.dtype),
                          spec.shape.size(),
                          shape);
    }
    return text;
  }

  std::string constants_;
  int labels_ = 0;
};

}  // namespace

std::string plan_text(const ModulePlan& plan) { return PlanText().write(plan); }

}  // namespace pruner
