#include "deploy/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "golden.h"
#include "support/rng.h"
#include "tensor/dag_builder.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

/// A partition made call by call; every value is one row of floats.
class PartitionBuilder {
 public:
  ValueId value(std::vector<int64_t> shape) {
    partition.values.push_back(
        {"v" + std::to_string(partition.values.size()), DType::kFloat32, std::move(shape), {}, {}});
    return ValueId{static_cast<int32_t>(partition.values.size()) - 1};
  }
  ValueId input(int64_t n) { return partition.inputs.emplace_back(value({n})); }
  ValueId constant(int64_t n) {
    const ValueId id = value({n});
    partition.values.back().constant = Tensor(DType::kFloat32, {n});
    return id;
  }
  ValueId alias(ValueId of, std::vector<int64_t> shape) {
    const ValueId id = value(std::move(shape));
    partition.values.back().alias_of = of;
    return id;
  }
  /// Returns a value of `n` elements, the sum of `inputs`. An input as long as the value is read
  /// element by element, another input from its start, modulo its length.
  ValueId add(std::vector<ValueId> inputs, int64_t n) {
    DagBuilder b;
    std::vector<StageId> stages;
    for (const ValueId id : inputs) stages.push_back(b.placeholder("x", partition[id].shape));
    const StageId sum = b.compute("sum", {n}, [&](std::span<const Expr> i) {
      Expr e = float_imm(0);
      for (const StageId s : stages) {
        const int64_t length = b.shape(s)[0];
        e = e + b.at(s, {length == n ? i[0] : floor_mod(i[0], length)});
      }
      return e;
    });
    return group(b.finish({sum}), std::move(inputs));
  }
  ValueId group(ComputeDag dag, std::vector<ValueId> inputs) {
    const ValueId output = value(dag[dag.outputs()[0]].shape());
    Group& added = partition.groups.emplace_back();
    added.name = "g" + std::to_string(partition.groups.size() - 1);
    added.dag = std::move(dag);
    added.inputs = std::move(inputs);
    added.output = output;
    return output;
  }
  MemoryPlan plan(KernelMemory each = {}) const {
    return plan_memory(partition, std::vector<KernelMemory>(partition.groups.size(), each));
  }

  Partition partition;
};

int64_t bytes_of(const Partition& p, ValueId id) {
  int64_t bytes = 4;
  for (int64_t extent : p[id].shape) bytes *= extent;
  return bytes;
}

/// Runs the plan on an arena that remembers who wrote each byte; every group must find its inputs
/// whole, also after its workspace was written.
void expect_sound(const Partition& p,
                  const MemoryPlan& plan,
                  std::span<const KernelMemory> kernels) {
  const int kWorkspace = -2;
  std::vector<int> writer(static_cast<size_t>(plan.arena_bytes), -1);
  const auto base = [&](ValueId id) {
    while (p[id].alias_of.valid()) id = p[id].alias_of;
    return id;
  };
  const auto fill = [&](int64_t offset, int64_t bytes, int who) {
    ASSERT_GE(offset, 0);
    ASSERT_EQ(offset % kArenaAlignment, 0);
    ASSERT_LE(offset + bytes, plan.arena_bytes);
    std::fill_n(writer.begin() + offset, bytes, who);
  };
  const auto whole = [&](ValueId id, int64_t offset, int64_t bytes) {
    return std::all_of(writer.begin() + offset, writer.begin() + offset + bytes, [&](int w) {
      return w == base(id).value;
    });
  };
  for (size_t g = 0; g < p.groups.size(); ++g) {
    const Group& group = p.groups[g];
    const ValuePlace out = plan.values[static_cast<size_t>(group.output.value)];
    fill(plan.workspaces[g], kernels[g].workspace_bytes, kWorkspace);
    for (size_t i = 0; i < group.inputs.size(); ++i) {
      const ValuePlace in = plan.values[static_cast<size_t>(group.inputs[i].value)];
      ASSERT_NE(in.place, Place::kNone);
      if (in.place != Place::kArena) continue;
      EXPECT_TRUE(whole(group.inputs[i], in.index, bytes_of(p, group.inputs[i])))
          << "group " << g << " input " << i;
      if (in == out) {
        EXPECT_TRUE(!kernels[g].rewrites && reads_in_place(group.dag, group.dag.inputs()[i]));
      }
    }
    if (out.place != Place::kArena) continue;
    fill(out.index, bytes_of(p, group.output), base(group.output).value);
    const auto workspace = writer.begin() + plan.workspaces[g];
    EXPECT_TRUE(std::all_of(
        workspace, workspace + kernels[g].workspace_bytes, [&](int w) { return w == kWorkspace; }));
    for (const ValueId input : group.inputs) {  // still whole while the output is written
      const ValuePlace in = plan.values[static_cast<size_t>(input.value)];
      if (in.place == Place::kArena && in != out) {
        EXPECT_TRUE(whole(input, in.index, bytes_of(p, input)));
      }
    }
  }
}

/// No plan can do with less: the most bytes alive at one group, without in-place.
int64_t lower_bound(const Partition& p, std::span<const KernelMemory> kernels) {
  std::vector<int> first(p.values.size(), -1), last(p.values.size(), -1);
  for (size_t g = 0; g < p.groups.size(); ++g) {
    const auto v = static_cast<size_t>(p.groups[g].output.value);
    first[v] = last[v] = static_cast<int>(g);
    for (ValueId id : p.groups[g].inputs) last[static_cast<size_t>(id.value)] = static_cast<int>(g);
  }
  for (ValueId id : p.outputs) first[static_cast<size_t>(id.value)] = -1;
  int64_t most = 0;
  for (int g = 0; g < static_cast<int>(p.groups.size()); ++g) {
    int64_t alive = kernels[static_cast<size_t>(g)].workspace_bytes;
    for (size_t v = 0; v < p.values.size(); ++v) {
      if (first[v] >= 0 && first[v] <= g && last[v] >= g)
        alive += bytes_of(p, ValueId{static_cast<int32_t>(v)});
    }
    most = std::max(most, alive);
  }
  return most;
}

PartitionBuilder random_network(Rng& rng) {
  PartitionBuilder b;
  std::vector<ValueId> known = {b.input(64), b.input(1600), b.constant(320)};
  for (int64_t g = 3 + rng.below(40); g > 0; --g) {
    std::vector<ValueId> inputs = {known[known.size() - 1 -
                                         static_cast<size_t>(rng.below(std::min<int64_t>(
                                             4, static_cast<int64_t>(known.size()))))]};
    if (rng.below(2) == 0)
      inputs.push_back(known[static_cast<size_t>(rng.below(static_cast<int64_t>(known.size())))]);
    const int64_t same = b.partition[inputs[0]].shape[0];
    known.push_back(b.add(inputs, rng.below(2) == 0 ? same : 16 * (1 + rng.below(200))));
  }
  b.partition.outputs = {known.back(),
                         known[static_cast<size_t>(rng.below(static_cast<int64_t>(known.size())))]};
  return b;
}

TEST(PlanMemory, KeepsEveryLiveValueOfRandomNetworks) {
  Rng rng(1);
  double excess = 0;
  const int kNetworks = 300;
  for (int i = 0; i < kNetworks; ++i) {
    const PartitionBuilder b = random_network(rng);
    std::vector<KernelMemory> kernels;
    for (size_t g = 0; g < b.partition.groups.size(); ++g) {
      kernels.push_back({rng.below(3) == 0 ? 64 * rng.below(100) : 0, rng.below(3) == 0});
    }
    const MemoryPlan plan = plan_memory(b.partition, kernels);
    expect_sound(b.partition, plan, kernels);
    int64_t sum = 0;
    for (size_t g = 0; g < kernels.size(); ++g) {
      sum += bytes_of(b.partition, b.partition.groups[g].output) + kernels[g].workspace_bytes;
    }
    EXPECT_LE(plan.arena_bytes, sum);

    for (KernelMemory& kernel : kernels) kernel.rewrites = true;
    const MemoryPlan apart = plan_memory(b.partition, kernels);
    expect_sound(b.partition, apart, kernels);
    const int64_t least = std::max<int64_t>(64, lower_bound(b.partition, kernels));
    EXPECT_GE(apart.arena_bytes, least - 64);
    excess += static_cast<double>(apart.arena_bytes) / static_cast<double>(least) - 1;
  }
  EXPECT_LT(excess / kNetworks, 0.05);  // on average within 5 % of what any plan needs
}

TEST(PlanMemory, ReadsAndWritesTheCallersTensors) {
  PartitionBuilder b;
  const ValueId x = b.input(64);
  const ValueId y = b.add({x, b.constant(64)}, 64);
  b.partition.outputs = {y};
  const MemoryPlan plan = b.plan();
  EXPECT_EQ(plan.values[0], (ValuePlace{Place::kInput, 0}));
  EXPECT_EQ(plan.values[1], (ValuePlace{Place::kConstant, 1}));
  EXPECT_EQ(plan.values[2], (ValuePlace{Place::kOutput, 0}));
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_TRUE(plan.copies.empty());
}

TEST(PlanMemory, CopiesOutputsThatNoKernelWrites) {
  PartitionBuilder b;
  const ValueId x = b.input(64);
  const ValueId c = b.constant(16);
  const ValueId y = b.add({x}, 64);
  const ValueId view = b.alias(y, {8, 8});
  b.partition.outputs = {x, view, y, c, b.alias(x, {8, 8})};
  const MemoryPlan plan = b.plan();
  EXPECT_EQ(plan.values[static_cast<size_t>(view.value)], (ValuePlace{Place::kOutput, 1}));
  ASSERT_EQ(plan.copies.size(), 4u);
  EXPECT_EQ(plan.copies[0].from, (ValuePlace{Place::kInput, 0}));
  EXPECT_EQ(plan.copies[0].to, (ValuePlace{Place::kOutput, 0}));
  EXPECT_EQ(plan.copies[1].from, (ValuePlace{Place::kOutput, 1}));
  EXPECT_EQ(plan.copies[1].to, (ValuePlace{Place::kOutput, 2}));
  EXPECT_EQ(plan.copies[1].bytes, 256);
  EXPECT_EQ(plan.copies[2].from, (ValuePlace{Place::kConstant, c.value}));
  EXPECT_EQ(plan.copies[3].from, (ValuePlace{Place::kInput, 0}));
}

/// A partition whose inputs 1, 2, ... are states that outputs 1, 2, ... are next.
MemoryPlan plan_with_states(PartitionBuilder& b, std::vector<int64_t> offsets, int64_t bytes) {
  for (int s = 1; s <= std::ssize(offsets); ++s) b.partition.states.push_back({s, s});
  const StateMemory states{std::move(offsets), bytes};
  return plan_memory(
      b.partition, std::vector<KernelMemory>(b.partition.groups.size()), kArenaAlignment, states);
}

constexpr ValuePlace arena(int64_t offset) { return {Place::kArena, offset}; }

TEST(PlanMemory, WritesStatesInPlace) {
  PartitionBuilder b;
  const ValueId x = b.input(64), state = b.input(64);
  const ValueId next = b.add({state, x}, 64);
  const ValueId hidden = b.add({next}, 32);
  b.partition.outputs = {b.add({hidden}, 16), next};
  const MemoryPlan plan = plan_with_states(b, {512}, 1024);
  EXPECT_EQ(plan.values[static_cast<size_t>(state.value)], arena(512));
  EXPECT_EQ(plan.values[static_cast<size_t>(next.value)], arena(512));
  EXPECT_EQ(plan.values[static_cast<size_t>(hidden.value)], arena(1024));  // behind the states
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(plan.arena_bytes, 1024 + 128);
}

TEST(PlanMemory, CopiesStatesWhoseOldContentIsStillRead) {
  PartitionBuilder b;
  const ValueId x = b.input(64), state = b.input(64), kept = b.input(64);
  const ValueId next = b.add({state, x}, 64);
  const ValueId later = b.add({state, next}, 64);
  // Later than the last group of another's: an output that is the old content.
  b.partition.outputs = {later, next, b.add({kept}, 64), b.alias(kept, {8, 8})};
  const MemoryPlan plan = plan_with_states(b, {0, 256}, 512);
  const ValuePlace made = plan.values[static_cast<size_t>(next.value)];
  EXPECT_EQ(made.place, Place::kArena);
  EXPECT_GE(made.index, 512);
  ASSERT_EQ(plan.copies.size(), 3u);
  EXPECT_EQ(plan.copies[0].from, arena(256));                     // before it is overwritten
  EXPECT_EQ(plan.copies[0].to, (ValuePlace{Place::kOutput, 1}));  // the second of the caller's
  EXPECT_EQ(plan.copies[1].from, made);
  EXPECT_EQ(plan.copies[1].to, arena(0));
  EXPECT_EQ(plan.copies[2].to, arena(256));
}

TEST(PlanMemory, ExchangesStates) {
  PartitionBuilder b;
  const ValueId x = b.input(64), one = b.input(64), two = b.input(64), same = b.input(64);
  b.partition.outputs = {b.add({x}, 64), two, one, same};
  const MemoryPlan plan = plan_with_states(b, {0, 256, 512}, 768);
  ASSERT_EQ(plan.copies.size(), 4u);  // one and two by way of blocks of their own, same not at all
  std::map<int64_t, int> content = {{0, 1}, {256, 2}, {512, 3}};
  for (const PlannedCopy& copy : plan.copies) content[copy.to.index] = content[copy.from.index];
  EXPECT_EQ(content[0], 2);
  EXPECT_EQ(content[256], 1);
  EXPECT_EQ(content[512], 3);
}

TEST(PlanMemory, WritesOverAnInputThatDies) {
  PartitionBuilder b;
  const ValueId x = b.input(64);
  const ValueId a = b.add({x}, 64);
  const ValueId c = b.add({a}, 64);     // a is read again: apart
  const ValueId d = b.add({c, a}, 64);  // both die: over the first
  const ValueId e = b.add({b.alias(d, {64})}, 64);
  b.partition.outputs = {b.add({e}, 64)};
  const MemoryPlan plan = b.plan();
  const auto at = [&](ValueId id) { return plan.values[static_cast<size_t>(id.value)]; };
  EXPECT_NE(at(a), at(c));
  EXPECT_EQ(at(c), at(d));
  EXPECT_EQ(at(d), at(e));
  EXPECT_EQ(plan.arena_bytes, 512);
  EXPECT_NE(b.plan({0, true}).values[static_cast<size_t>(d.value)],
            b.plan({0, true}).values[static_cast<size_t>(c.value)]);
}

TEST(PlanMemory, PlacesPartsInTheWhole) {
  PartitionBuilder b;
  const ValueId whole = b.value({192});
  const ValueId x = b.input(64);
  const ValueId first = b.add({x}, 64);
  const ValueId other = b.add({x}, 64);  // while the whole is half written
  const ValueId second = b.add({other}, 128);
  b.partition.values[static_cast<size_t>(first.value)].slice = Slice{whole, 0, 0};
  b.partition.values[static_cast<size_t>(second.value)].slice = Slice{whole, 0, 64};
  const ValueId read = b.add({whole}, 192);
  b.partition.outputs = {b.add({read}, 64)};
  const MemoryPlan plan = b.plan();
  const auto at = [&](ValueId id) { return plan.values[static_cast<size_t>(id.value)]; };
  EXPECT_EQ(at(first), at(whole));
  EXPECT_EQ(at(second).index, at(whole).index + 64 * 4);
  EXPECT_GE(at(other).index, at(whole).index + 192 * 4);
  EXPECT_EQ(at(read), at(whole));  // `whole` dies there
  EXPECT_EQ(plan.arena_bytes, (192 + 64) * 4);
}

TEST(PlanMemory, KeepsOneValueReadInTwoWaysApart) {
  PartitionBuilder b;
  const ValueId a = b.add({b.input(64)}, 64);
  DagBuilder dag;
  const StageId x = dag.placeholder("x", {64});
  const StageId turned = dag.placeholder("turned", {64});
  const StageId sum = dag.compute("sum", {64}, [&](std::span<const Expr> i) {
    return dag.at(x, {i[0]}) + dag.at(turned, {Expr(63) - i[0]});
  });
  const ValueId y = b.group(dag.finish({sum}), {a, a});
  b.partition.outputs = {b.add({y}, 64)};
  const MemoryPlan plan = b.plan();
  EXPECT_NE(plan.values[static_cast<size_t>(a.value)], plan.values[static_cast<size_t>(y.value)]);
}

TEST(ReadsInPlace, HoldsForTheResidualOfAConvolution) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {1, 8, 8, 16});
  const StageId weight = b.placeholder("weight", {1, 1, 16, 16}, DType::kFloat32, true);
  const StageId bias = b.placeholder("bias", {16}, DType::kFloat32, true);
  const StageId residual = b.placeholder("residual", {1, 8, 8, 16});
  const StageId sum = add_add(b, add_add(b, add_conv(b, data, weight, {}), bias), residual);
  const ComputeDag dag = b.finish({add_activation(b, sum, *find_activation("relu"))});
  EXPECT_TRUE(reads_in_place(dag, residual));
  EXPECT_FALSE(reads_in_place(dag, data));  // a 1x1 convolution reads every channel
  EXPECT_FALSE(reads_in_place(dag, bias));
}

/// The values of `n` placeholders x of n elements, each with what `make` computes of it.
DagRange range_of(const std::function<StageId(DagBuilder&, StageId x, int64_t n)>& make) {
  const std::vector<Symbol> symbols = {{"n", 5, 36, {}}};
  FormulaFinder finder(symbols, {{5}, {6}, {7}, {8}, {11}, {13}, {17}, {24}, {29}, {36}});
  std::vector<ComputeDag> dags;
  std::vector<const ComputeDag*> list;
  for (const SymbolValues& point : finder.points()) {
    DagBuilder b;
    const StageId x = b.placeholder("x", {2, point[0]});
    dags.push_back(b.finish({make(b, x, point[0])}));
  }
  for (const ComputeDag& dag : dags) list.push_back(&dag);
  return *DagRange::of(list, finder);
}

// At the greatest of them nothing is padded, and element i depends on element i alone.
TEST(ReadsInPlace, FailsWhereItDoesAtSomeShapesOnly) {
  const DagRange padded = range_of([](DagBuilder& b, StageId x, int64_t n) {
    const int64_t before[] = {0, 0}, after[] = {0, (n + 5) / 6 * 6 - n};
    return add_pad(b, x, before, after, 0, "pad", true);
  });
  const StageId x{0};
  EXPECT_TRUE(reads_in_place(padded.at(SymbolValues{36}), x));
  EXPECT_FALSE(reads_in_place(padded, x));
  const DagRange kept = range_of([](DagBuilder& b, StageId x, int64_t) {
    return add_activation(b, x, *find_activation("relu"));
  });
  EXPECT_TRUE(reads_in_place(kept, x));
}

TEST(ReadsInPlace, FailsWhereAReductionReadsToo) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {4, 16});
  EXPECT_FALSE(reads_in_place(b.finish({add_softmax(b, x, 1)}), x));
}

TEST(ReadsInPlace, FailsForAnotherDtype) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {4}, DType::kInt32);
  const StageId y = b.compute(
      "y", {4}, [&](std::span<const Expr> i) { return cast(DType::kFloat32, b.at(x, {i[0]})); });
  EXPECT_FALSE(reads_in_place(b.finish({y}), x));
}

}  // namespace
}  // namespace pruner
