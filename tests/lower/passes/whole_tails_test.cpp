#include "lower/passes/pass_programs.h"
#include "lower/program_builder.h"

namespace pruner {
namespace {

// y[j] = x[0] * w[j] for the first six of eight lanes, summed in registers.
Program tail(bool padded) {
  ProgramBuilder b("k");
  const TensorId x = b.input("x", {1}), w = b.input("w", {padded ? 8 : 6}), y = b.output("y", {6});
  const TensorId sum = b.registers("sum", {8}, 8);
  if (padded) b.program.buffers[1].pack = {{0}, {{0, 8}}};
  const auto place = [&](Expr j) {
    return padded ? std::vector<Expr>{0, j} : std::vector<Expr>{j};
  };
  if (padded) b.program.buffers[1].shape = {1, 8};
  b.program.body = b.allocate(
      sum,
      b.block(
          {b.vectorize(8, 8, [&](Expr j) { return b.store(sum, {j}, float_imm(0)); }),
           b.vectorize(
               8, 6, [&](Expr j) { return b.add(sum, {j}, b.read(x, {0}) * b.read(w, place(j))); }),
           b.vectorize(8, 6, [&](Expr j) { return b.store(y, {j}, b.read(sum, {j})); })}));
  return b.program;
}

TEST(WholeTails, ComputeWhereWhatTheyReadIsPadded) {
  const Program before = tail(true), after = whole_tails(before);
  expect_same_results(before, after);
  EXPECT_NE(print(before), print(after));
  EXPECT_EQ(print(after).find("i1 < 6"), std::string::npos) << print(after);
  EXPECT_NE(print(after).find("i2 < 6"), std::string::npos) << print(after);
}

TEST(WholeTails, StayMaskedWhereATensorEnds) {
  const Program before = tail(false);
  EXPECT_EQ(whole_tails(before).body, before.body);
}

// y[j] = z[j] for the first six of eight lanes, by a sum in registers of what a local buffer holds.
Program tail_of_local(int64_t room) {
  ProgramBuilder b("k");
  const TensorId z = b.input("z", {6}), y = b.output("y", {6});
  const TensorId held = b.local("held", {room}), sum = b.registers("sum", {8}, 8);
  b.program.body = b.allocate(
      held,
      b.allocate(
          sum,
          b.block({b.vectorize(8, 6, [&](Expr j) { return b.store(held, {j}, b.read(z, {j})); }),
                   b.vectorize(8, 8, [&](Expr j) { return b.store(sum, {j}, float_imm(0)); }),
                   b.vectorize(8, 6, [&](Expr j) { return b.add(sum, {j}, b.read(held, {j})); }),
                   b.vectorize(8, 6, [&](Expr j) { return b.store(y, {j}, b.read(sum, {j})); })})));
  return b.program;
}

TEST(WholeTails, StayMaskedWhereALocalBufferEnds) {
  const Program shorter = tail_of_local(6), whole = tail_of_local(8);
  EXPECT_EQ(whole_tails(shorter).body, shorter.body);
  EXPECT_NE(print(whole_tails(whole)), print(whole));
}

// y[j] = x[j / 8] * w[j], by three vectors of eight lanes, of which the last has none of the twelve
// elements; `groups`: of x.
Program groups_of_eight(int64_t groups) {
  ProgramBuilder b("k");
  const TensorId x = b.input("x", {groups}), w = b.input("w", {1, 24}), y = b.output("y", {12});
  const TensorId sum = b.registers("sum", {8}, 8);
  b.program.buffers[1].pack = {{0}, {{0, 8}}};
  const auto vector = [&](Expr v) {
    const auto tail = [&](const ProgramBuilder::Body& body) {
      return b.vectorize(8, Expr(12) - v * 8, body);
    };
    const Stmt parts[] = {
        tail([&](Expr j) { return b.store(sum, {j}, float_imm(0)); }),
        tail([&](Expr j) {
          return b.add(sum, {j}, b.read(x, {v}) * b.read(w, {Expr(0), v * 8 + j}));
        }),
        tail([&](Expr j) { return b.store(y, {v * 8 + j}, b.read(sum, {j})); })};
    return b.block({parts[0], parts[1], parts[2]});
  };
  b.program.body = b.allocate(sum, b.serial(3, vector));
  b.program.ranges[0] = {0, 2};
  return b.program;
}

TEST(WholeTails, StayMaskedWhereAWholeVectorLiesBeyondTheEnd) {
  const Program beyond = groups_of_eight(2), inside = groups_of_eight(3);
  EXPECT_EQ(whole_tails(beyond).body, beyond.body);
  EXPECT_NE(print(whole_tails(inside)), print(inside));
}

TEST(WholeTails, KeepWhatCandidatesCompute) {
  for (const char* op : {"dense 1 26 48 +bias",
                         "conv2d 1 9 6 5 19 3 3 padding=1",
                         "coded_matmul 1 26 48 bits=4 block=16"})
    EXPECT_GT(changed_by("whole_tails", operator_task(op), 40).size(), 2) << op;
}

}  // namespace
}  // namespace pruner
