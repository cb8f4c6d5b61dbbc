// label: codegen
// Programs as machine code compute what the interpreter does: each construct by hand, then random
// mixtures of them; nothing outside of a tensor is touched.
#include <gtest/gtest.h>

#include "codegen/kernels.h"
#include "codegen/run.h"
#include "lower/dtype_programs.h"
#include "support/rng.h"

namespace pruner {
namespace {

constexpr int kLanes = 8;

Tensor random_tensor(DType dtype, std::vector<int64_t> shape, Rng& rng, int64_t bound = 100) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (is_float(dtype)) {
      tensor.set(i, static_cast<float>(2 * rng.uniform() - 1));
    } else {
      tensor.set_int(i, dtype == DType::kBool ? rng.below(2) : rng.below(bound));
    }
  }
  return tensor;
}

std::vector<Tensor> random_args(const Program& program, uint64_t seed = 5, int64_t bound = 100) {
  Rng rng(seed);
  std::vector<Tensor> args;
  for (const TensorId id : program.args) {
    args.push_back(random_tensor(program[id].dtype, program[id].shape, rng, bound));
  }
  return args;
}

TEST(Programs, Matmul) {
  const MatmulShape shape = {12, 32, 16, 8, 3, 2, kLanes, 4};
  const Program program = matmul_program(shape);
  expect_same(program, random_args(program), 1e-5);
}

TEST(Programs, Convolution) {
  const Program program = conv_program({8, 6, 12, 16, 4, 2, kLanes, 2});
  expect_same(program, random_args(program), 1e-5);
}

TEST(Programs, VectorTailsOfConstantAndComputedExtent) {
  ProgramBuilder b("tails");
  const TensorId x = b.input("x", {29}), y = b.output("y", {29}), z = b.output("z", {21});
  b.program.body =
      b.block({b.serial(4,
                        [&](Expr o) {
                          return b.vectorize(
                              kLanes, min(Expr(kLanes), Expr(29) - o * Expr(kLanes)), [&](Expr l) {
                                return b.store(y,
                                               {o * Expr(kLanes) + l},
                                               b.read(x, {o * Expr(kLanes) + l}) * float_imm(2));
                              });
                        }),
               b.vectorize(kLanes, 5, [&](Expr l) {
                 return b.store(z, {l + 16}, b.read(x, {l * Expr(3)}));
               })});
  expect_same(b.program, random_args(b.program), 0);
}

TEST(Programs, PaddingReadsNothingOutside) {
  ProgramBuilder b("padding");
  const TensorId x = b.input("x", {10, 20}), y = b.output("y", {14, 32});
  b.program.body = b.parallel(14, [&](Expr i) {
    return b.serial(4, [&](Expr o) {
      return b.vectorize(kLanes, kLanes, [&](Expr l) {
        const Expr j = o * Expr(kLanes) + l;
        const Expr inside = (i >= Expr(2)) && (i < Expr(12)) && (j >= Expr(3)) && (j < Expr(23));
        return b.store(y, {i, j}, select(inside, b.read(x, {i - 2, j - 3}), float_imm(-1)));
      });
    });
  });
  expect_same(b.program, random_args(b.program), 0);
}

TEST(Programs, PaddingByAUniformConditionChoosesAddresses) {
  ProgramBuilder b("uniform_padding");
  const TensorId x = b.input("x", {3, kLanes}), y = b.output("y", {7, kLanes}),
                 s = b.output("s", {7});
  b.program.body = b.serial(7, [&](Expr i) {
    const Expr inside = (i >= Expr(2)) && (i < Expr(5));
    return b.block(
        {b.vectorize(kLanes,
                     kLanes,
                     [&](Expr l) {
                       const Expr scaled = select(inside, b.read(x, {i - 2, l}), float_imm(0.5)) *
                                           select(inside, b.read(x, {i - 2, 1}), float_imm(3));
                       return b.store(y, {i, l}, scaled);
                     }),
         b.store(s, {i}, select(inside, b.read(x, {i - 2, 4}) + float_imm(1), float_imm(7)))});
  });
  expect_same(b.program, random_args(b.program), 1e-6);
}

TEST(Programs, PaddingOfGatheredRowsReadsNoIndexOutside) {
  ProgramBuilder b("gathered_padding");
  const TensorId index = b.input("index", {3}, DType::kInt64);
  const TensorId x = b.input("x", {100, kLanes}), y = b.output("y", {700, kLanes});
  b.program.body = b.serial(700, [&](Expr i) {
    return b.vectorize(kLanes, kLanes, [&](Expr l) {
      const Expr inside = (i >= Expr(350)) && (i < Expr(353));
      const Expr found = b.read(x, {b.read(index, {i - 350}), l});
      return b.store(y, {i, l}, select(inside, found, float_imm(2)));
    });
  });
  expect_same(b.program, random_args(b.program), 0);
}

// LLVM 19 read the half of the indices without a mask whose lanes the condition excludes for sure.
TEST(Programs, GatheredLanesOfHalfAVectorReadNoIndexOutside) {
  ProgramBuilder b("gathered_half");
  const TensorId index = b.input("index", {3}, DType::kInt64);
  const TensorId x = b.input("x", {100}), y = b.output("y", {700, kLanes});
  b.program.body = b.serial(700, [&](Expr i) {
    return b.vectorize(kLanes, kLanes, [&](Expr l) {
      const Expr place = b.read(index, {l - 1});
      const Expr positive = select(place < Expr(0), place + Expr(100), place);
      const Expr inside = (i < Expr(350)) && (l >= Expr(1)) && (l < Expr(4));
      return b.store(y, {i, l}, select(inside, b.read(x, {positive}), float_imm(2)));
    });
  });
  expect_same(b.program, random_args(b.program), 0);
}

TEST(Programs, HorizontalReductionsOfEveryCombiner) {
  for (const BinaryOp op : {BinaryOp::kAdd, BinaryOp::kMul, BinaryOp::kMin, BinaryOp::kMax}) {
    for (const int64_t extent : {kLanes, 5}) {
      ProgramBuilder b("horizontal");
      const TensorId x = b.input("x", {6, kLanes}), y = b.output("y", {6}), z = b.output("z", {1});
      const TensorId sum = b.registers("sum", {1}, 1);
      const Stmt to_register = b.serial(6, [&](Expr i) {
        return b.vectorize(kLanes, extent, [&](Expr l) {
          return b.store(sum, {0}, binary(op, b.read(sum, {0}), b.read(x, {i, l})));
        });
      });
      const Stmt to_memory = b.serial(6, [&](Expr i) {
        return b.vectorize(kLanes, extent, [&](Expr l) {
          return b.store(y, {i}, binary(op, b.read(x, {i, l}) * float_imm(2), b.read(y, {i})));
        });
      });
      b.program.body = b.block({b.allocate(sum,
                                           b.block({b.store(sum, {0}, float_imm(0.75)),
                                                    to_register,
                                                    b.store(z, {0}, b.read(sum, {0}))})),
                                to_memory});
      expect_same(b.program, random_args(b.program), 1e-5);
    }
  }
}

TEST(Programs, GatherScatterAndStrides) {
  ProgramBuilder b("strides");
  const TensorId index = b.input("index", {24}, DType::kInt64);
  const TensorId x = b.input("x", {100}), y = b.output("y", {8, 100});
  b.program.body = b.serial(3, [&](Expr o) {
    return b.vectorize(kLanes, kLanes, [&](Expr l) {
      const Expr i = o * Expr(kLanes) + l;
      return b.block({b.store(y, {0, i}, b.read(x, {b.read(index, {i})})),
                      b.store(y, {1, i}, b.read(x, {i * Expr(2) + 1})),
                      b.store(y, {2, i}, b.read(x, {Expr(99) - i})),
                      b.store(y, {3, i * Expr(3)}, b.read(x, {i * Expr(4)})),
                      b.store(y, {4, Expr(90) - i}, b.read(x, {floor_div(i, 3)})),
                      b.store(y, {5, i}, b.read(x, {floor_mod(i * Expr(5), 7)})),
                      b.store(y,
                              {6, floor_div(i, 8) * Expr(8) + floor_mod(i * Expr(3), 8)},
                              b.read(x, {i * i - i * i})),
                      b.guard(i < Expr(21), b.store(y, {7, i * Expr(2)}, b.read(x, {i})))});
    });
  });
  expect_same(b.program, random_args(b.program), 0);
}

TEST(Programs, GuardsMergeRegisters) {
  ProgramBuilder b("guards");
  const TensorId x = b.input("x", {5, kLanes}), y = b.output("y", {5, kLanes});
  const TensorId acc = b.registers("acc", {2, kLanes}, kLanes);
  const auto lanes = [&](const std::function<Stmt(Expr)>& body) {
    return b.vectorize(kLanes, kLanes, body);
  };
  b.program.body = b.allocate(acc, b.serial(5, [&](Expr i) {
    return b.block(
        {lanes([&](Expr l) {
           return b.store(acc, {0, l}, float_imm(1));
         }),
         lanes([&](Expr l) {
           return b.store(acc, {1, l}, float_imm(5));
         }),
         b.guard(i < Expr(3), lanes([&](Expr l) {
                   return b.add(acc, {0, l}, b.read(x, {i, l}));
                 })),
         b.serial(i,
                  [&](Expr) {
                    return lanes([&](Expr l) { return b.add(acc, {1, l}, b.read(acc, {0, l})); });
                  }),
         lanes([&](Expr l) {
           return b.guard(l < i, b.store(acc, {1, l}, b.read(acc, {1, l}) * float_imm(-2)));
         }),
         lanes([&](Expr l) {
           return b.store(y, {i, l}, b.read(acc, {1, l}));
         })});
  }));
  expect_same(b.program, random_args(b.program), 1e-5);
}

TEST(Programs, WorkspaceLocalsAndParallelLoopsInARow) {
  ProgramBuilder b("scratch");
  const TensorId x = b.input("x", {6, 16}), y = b.output("y", {6, 16});
  const TensorId t = b.workspace("t", {6, 16}), row = b.local("row", {16});
  const auto each = [&](const std::function<Stmt(Expr)>& body) {
    return b.serial(2, [&](Expr o) {
      return b.vectorize(kLanes, kLanes, [&](Expr l) { return body(o * Expr(kLanes) + l); });
    });
  };
  b.program.body =
      b.block({b.parallel(6,
                          [&](Expr i) {
                            return each([&](Expr j) {
                              return b.store(t, {i, j}, b.read(x, {i, j}) * float_imm(3));
                            });
                          }),
               b.let(Expr(5), [&](Expr last) {
                 return b.parallel(6, [&](Expr i) {
                   return b.allocate(
                       row,
                       b.block({each([&](Expr j) {
                                  return b.store(row, {Expr(15) - j}, b.read(t, {last - i, j}));
                                }),
                                each([&](Expr j) {
                                  return b.store(y, {i, j}, b.read(row, {j}));
                                })}));
                 });
               })});
  expect_same(b.program, random_args(b.program), 1e-6);
}

// The vectors are no index values, which the parallel loop's body takes along.
TEST(Programs, VectorsOfInt64BeforeAParallelLoop) {
  ProgramBuilder b("vectors");
  const TensorId x = b.input("x", {32}, DType::kInt64), y = b.output("y", {32}, DType::kInt64);
  const TensorId z = b.output("z", {6, 32}, DType::kInt64);
  const Stmt vectors = b.unroll(4, [&](Expr o) {
    return b.vectorize(kLanes, kLanes, [&](Expr l) {
      const Expr i = o * Expr(kLanes) + l;
      return b.store(y, {i}, max(b.read(x, {i}), Expr(40)) + Expr(1));
    });
  });
  b.program.body = b.block({vectors, b.let(b.read(x, {3}), [&](Expr known) {
                              return b.parallel(6, [&](Expr i) {
                                return b.serial(32, [&](Expr j) {
                                  return b.store(z, {i, j}, b.read(y, {j}) * i + known);
                                });
                              });
                            })});
  expect_same(b.program, random_args(b.program), 0);
}

TEST(Programs, EveryDtype) {
  for (const DTypeRow& row : kDTypes) {
    const DType dtype = row.dtype;
    if (is_only_moved(dtype)) continue;
    ProgramBuilder b("dtypes");
    const TensorId x = b.input("x", {21}, dtype), y = b.output("y", {21}, dtype),
                   f = b.output("f", {21});
    const TensorId i32 = b.output("i", {21}, DType::kInt32),
                   less = b.output("less", {21}, DType::kBool);
    const auto body = [&](Expr i) {
      const Expr v = b.read(x, {i}), w = b.read(x, {Expr(20) - i});
      const Expr mixed = dtype == DType::kBool ? (v && w) : max(v + w * v, w - v);
      return b.block({b.store(y, {i}, mixed),
                      b.store(f, {i}, cast(DType::kFloat32, v)),
                      b.store(i32, {i}, cast(DType::kInt32, w)),
                      b.store(less, {i}, select(v < w, v >= w, cast(DType::kBool, v)))});
    };
    b.program.body = b.block({b.serial(2,
                                       [&](Expr o) {
                                         return b.vectorize(kLanes, kLanes, [&](Expr l) {
                                           return body(o * Expr(kLanes) + l);
                                         });
                                       }),
                              b.vectorize(kLanes, 4, [&](Expr l) { return body(l + 16); }),
                              b.serial(1, [&](Expr i) { return body(i + 20); })});
    expect_same(
        b.program, random_args(b.program), is_float(dtype) ? std::ldexp(2, -row.fraction_bits) : 0);
  }
}

TEST(Programs, CastsBetweenEveryTwoDtypes) {
  for (const DTypeRow& row : kDTypes) {
    const Program program = dtype_program(row.dtype, false);
    expect_same(program, dtype_arguments(program), 0);
  }
}

// Its conversions are code of ours: the oldest CPU has none, and a kernel is linked to no library.
TEST(Programs, BFloat16AsksNothingOfTheCpu) {
  ProgramBuilder b("squares");
  const TensorId x = b.input("x", {kLanes}, DType::kBFloat16),
                 y = b.output("y", {kLanes}, DType::kBFloat16);
  b.program.body = b.vectorize(
      kLanes, kLanes, [&](Expr l) { return b.store(y, {l}, b.read(x, {l}) * b.read(x, {l})); });
  std::vector<Tensor> args = random_args(b.program), expected = random_args(b.program);
  ASSERT_TRUE(interpret(b.program, expected).ok());
  const Result<Artifact> artifact = compile(b.program, cpu_target("x86-64"), "kernel");
  ASSERT_TRUE(artifact.ok()) << artifact.error().message();
  const auto kernel = load_kernel(artifact->object, "kernel");
  ASSERT_TRUE(kernel.ok()) << kernel.error().message();
  call_kernel((*kernel)->entry(), args, 0);
  for (int64_t i = 0; i < kLanes; ++i) EXPECT_EQ(args[1].get(i), expected[1].get(i));
}

// x and y are 21 numbers each; fn(x[i], y[i]) as vectors and as scalars.
void expect_same_of(const std::vector<double>& x,
                    const std::vector<double>& y,
                    DType dtype,
                    const std::function<Expr(Expr, Expr)>& fn) {
  const auto n = static_cast<int64_t>(x.size());
  ProgramBuilder b("pairs");
  const TensorId p = b.input("p", {n}, dtype), q = b.input("q", {n}, dtype);
  const DType result = fn(float_imm(0, dtype), float_imm(0, dtype))->dtype;
  const TensorId r = b.output("r", {n}, result), s = b.output("s", {n}, result);
  const auto value = [&](Expr i) { return fn(b.read(p, {i}), b.read(q, {i})); };
  b.program.body =
      b.block({b.serial((n + kLanes - 1) / kLanes,
                        [&](Expr o) {
                          return b.vectorize(
                              kLanes, min(Expr(kLanes), Expr(n) - o * Expr(kLanes)), [&](Expr l) {
                                const Expr i = o * Expr(kLanes) + l;
                                return b.store(r, {i}, value(i));
                              });
                        }),
               b.serial(n, [&](Expr i) { return b.store(s, {i}, value(i)); })});
  Tensor first(dtype, {n}), second(dtype, {n});
  for (int64_t i = 0; i < n; ++i) first.set(i, x[i]), second.set(i, y[i]);
  expect_same(b.program, {first, second, Tensor(result, {n}), Tensor(result, {n})}, 0);
}

const double kNan = std::nan("");
const std::vector<double> kOdd = {kNan, -INFINITY, INFINITY, 0, 1, -2.5, 3e38, 1e-40};

// Every pair of two lists.
std::pair<std::vector<double>, std::vector<double>> pairs(const std::vector<double>& values) {
  std::vector<double> x, y;
  for (const double a : values) {
    for (const double b : values) x.push_back(a), y.push_back(b);
  }
  return {x, y};
}

TEST(Programs, ExtremesOfNanAreNan) {
  const auto [x, y] = pairs(kOdd);
  expect_same_of(x, y, DType::kFloat32, [](Expr a, Expr b) { return max(a, b); });
  expect_same_of(x, y, DType::kFloat32, [](Expr a, Expr b) { return min(a, b); });
  expect_same_of(x, y, DType::kFloat32, [](Expr a, Expr) { return max(a, float_imm(0)); });
  expect_same_of(x, y, DType::kFloat32, [](Expr a, Expr) { return min(float_imm(1), a); });
}

TEST(Programs, RemaindersOfFloatsAreExact) {
  const auto [x, y] = pairs({kNan, -INFINITY, INFINITY, 0, 1, -2.5, 3e38, 1e-40, 7, -0.1, 1e20});
  const auto remainder = [](Expr a, Expr b) { return floor_mod(a, b); };
  expect_same_of(x, y, DType::kFloat32, remainder);
  const auto [p, q] = pairs(
      {kNan, -INFINITY, INFINITY, 0, 1, -2.5, 1.7e308, 5e-324, -3e-310, 7, -0.1, 1e20, 0x1p-1022});
  expect_same_of(p, q, DType::kFloat64, remainder);
}

TEST(Programs, FloatsBeyondAnIntegerBecomeItsLeast) {
  const std::vector<double> x = {kNan,
                                 INFINITY,
                                 -INFINITY,
                                 3e9,
                                 -3e9,
                                 1e20,
                                 -1e20,
                                 300.7,
                                 -300.7,
                                 2147483648.,
                                 -2147483648.,
                                 1};
  for (const DTypeRow& row : kDTypes) {
    if (is_float(row.dtype)) continue;
    expect_same_of(x, x, DType::kFloat32, [&](Expr a, Expr) { return cast(row.dtype, a); });
  }
}

// Quotients by 0 and of the least number by -1, at which a processor stops; comparisons whose
// difference would wrap around.
TEST(Programs, ExtremeIntegersDivideAndCompare) {
  for (const DTypeRow& row : kDTypes) {
    if (is_float(row.dtype) || row.dtype == DType::kBool) continue;
    const DType dtype = row.dtype;
    const int64_t values[] = {
        least_int(dtype), least_int(dtype) + 1, -1, 0, 1, 7, greatest_int(dtype)};
    constexpr int64_t kPairs = 49;
    ProgramBuilder b("integers");
    const TensorId p = b.input("p", {kPairs}, dtype), q = b.input("q", {kPairs}, dtype);
    std::vector<TensorId> results;
    constexpr BinaryOp kOps[] = {BinaryOp::kFloorDiv,
                                 BinaryOp::kFloorMod,
                                 BinaryOp::kMin,
                                 BinaryOp::kMax,
                                 BinaryOp::kLt,
                                 BinaryOp::kLe,
                                 BinaryOp::kGt,
                                 BinaryOp::kGe,
                                 BinaryOp::kEq,
                                 BinaryOp::kNe,
                                 BinaryOp::kSub};
    std::vector<Tensor> args(2, Tensor(dtype, {kPairs}));
    for (Tensor& arg : args) arg = arg.clone();
    for (int64_t i = 0; i < kPairs; ++i) {
      args[0].set_int(i, wrap_to(dtype, values[i / 7]));
      args[1].set_int(i, wrap_to(dtype, values[i % 7]));
    }
    for (const BinaryOp op : kOps) {
      const DType result = is_compare(op) ? DType::kBool : dtype;
      for (int form = 0; form < 2; ++form) {
        results.push_back(b.output("r" + std::to_string(results.size()), {kPairs}, result));
        args.emplace_back(result, std::vector<int64_t>{kPairs});
      }
    }
    const auto body = [&](Expr i, size_t form) {
      std::vector<Stmt> stores;
      for (size_t o = 0; o < std::size(kOps); ++o)
        stores.push_back(
            b.store(results[2 * o + form], {i}, binary(kOps[o], b.read(p, {i}), b.read(q, {i}))));
      return b.block(stores);
    };
    b.program.body = b.block({b.serial(6,
                                       [&](Expr o) {
                                         return b.vectorize(kLanes, kLanes, [&](Expr l) {
                                           return body(o * Expr(kLanes) + l, 0);
                                         });
                                       }),
                              b.serial(kPairs, [&](Expr i) { return body(i, 1); })});
    expect_same(b.program, args, 0);
  }
}

TEST(Programs, AnOutputMayLieWhereAnElementwiseInputLies) {
  ProgramBuilder b("in_place");
  const TensorId x = b.input("x", {32}), r = b.input("r", {32}), y = b.output("y", {32});
  b.program.body = b.serial(4, [&](Expr o) {
    return b.vectorize(kLanes, kLanes, [&](Expr l) {
      const Expr i = o * Expr(kLanes) + l;
      return b.store(y, {i}, b.read(x, {i}) + b.read(r, {i}));
    });
  });
  std::vector<Tensor> args = random_args(b.program);
  const Tensor before = args[0].clone();
  const Result<Artifact> artifact = compile(b.program, cpu_target(""), "kernel");
  ASSERT_TRUE(artifact.ok());
  const auto kernel = load_kernel(artifact->object, "kernel");
  args[2] = args[0];  // shares
  call_kernel((*kernel)->entry(), args, 0);
  for (int64_t i = 0; i < 32; ++i) {
    EXPECT_EQ(args[2].get(i), static_cast<float>(before.get(i) + args[1].get(i)));
  }
}

// Random programs: a nest of loops of all kinds around stores of random expressions.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : rng_(seed), b_("random") {
    x_ = b_.input("x", {kSize});
    index_ = b_.input("index", {kSize}, DType::kInt64);
    half_ = b_.input("half", {kSize}, DType::kFloat16);
    byte_ = b_.input("byte", {kSize}, DType::kInt8);
    y_ = b_.output("y", {6, kSize});
    vector_ = b_.registers("vector", {2, 16}, 16);
    scalar_ = b_.registers("scalar", {2}, 1);
    local_ = b_.local("local", {kSize});
  }

  Program make() {
    std::vector<Stmt> parts;
    for (int64_t i = 0; i < 2; ++i) parts.push_back(b_.store(scalar_, {i}, float_imm(0.5)));
    for (int64_t i = 0; i < 2; ++i)
      parts.push_back(lanes([&](Expr l) { return b_.store(vector_, {i, l}, float_imm(1)); }));
    parts.push_back(
        b_.serial(kSize, [&](Expr i) { return b_.store(local_, {i}, b_.read(x_, {i})); }));
    for (int64_t row = 0; row < 2; ++row) parts.push_back(nest(row));
    parts.push_back(b_.serial(2, [&](Expr i) { return b_.store(y_, {4, i}, b_.read(x_, {i})); }));
    for (int64_t i = 0; i < 2; ++i) {
      parts.push_back(b_.store(y_, {5, i}, b_.read(scalar_, {i})));
      parts.push_back(lanes([&](Expr l) {
        return b_.store(y_, {4, i * Expr(32) + l}, b_.read(vector_, {i, l}));
      }));
    }
    Stmt body =
        b_.allocate(vector_, b_.allocate(scalar_, b_.allocate(local_, b_.block(std::move(parts)))));
    b_.program.body = b_.parallel(1, [&](Expr) { return body; });
    return b_.program;
  }

 private:
  static constexpr int64_t kSize = 128;
  static constexpr int kWidth = 16;

  Stmt lanes(const std::function<Stmt(Expr)>& body) { return b_.vectorize(kWidth, kWidth, body); }
  bool chance(int64_t n) { return rng_.below(n) == 0; }

  // Two outer loops (o < 3, u < 2 unrolled) around a vector loop; indices stay below 3*32+2*16 =
  // 128.
  Stmt nest(int64_t row) {
    return b_.serial(3, [&](Expr o) {
      return b_.unroll(2, [&](Expr u) {
        const Expr at = o * Expr(32) + u * Expr(16);
        uniform_ = {o, u, at};
        Stmt inner = chance(4) ? scalar_loop(row, at) : vector_loop(row, at);
        if (chance(4)) inner = b_.guard(o < Expr(2), inner);
        if (chance(4)) inner = b_.guard(b_.read(index_, {at}) < Expr(64), inner);
        return inner;
      });
    });
  }

  Stmt scalar_loop(int64_t row, Expr at) {
    return b_.loop(
        chance(2) ? LoopKind::kUnroll : LoopKind::kSerial, chance(2) ? 3 : 1, [&](Expr i) {
          varying_ = {i, at + i};
          return b_.block({b_.store(y_, {row, at + i}, value(3)),
                           b_.add(scalar_, {rng_.below(2)}, value(2)),
                           b_.store(local_, {at + i}, value(1))});
        });
  }

  Stmt vector_loop(int64_t row, Expr at) {
    const bool tail = chance(3);
    const Expr extent =
        tail ? (chance(2) ? Expr(rng_.below(kWidth) + 1) : min(Expr(kWidth), Expr(100) - at))
             : Expr(kWidth);
    return b_.vectorize(kWidth, extent, [&](Expr l) {
      varying_ = {l, at + l, Expr(15) - l};
      std::vector<Stmt> parts = {b_.store(y_, {row, at + l}, value(3))};
      if (chance(2)) parts.push_back(b_.store(y_, {row + 2, l * Expr(3) + uniform_[0]}, value(2)));
      if (chance(2)) parts.push_back(b_.add(scalar_, {0}, value(2)));
      if (chance(2)) parts.push_back(b_.store(scalar_, {1}, max(b_.read(scalar_, {1}), value(2))));
      if (chance(3)) parts.push_back(b_.guard(condition(), b_.store(y_, {row, at + l}, value(1))));
      if (!tail) {
        const int64_t slot = rng_.below(2);
        Stmt update = b_.add(vector_, {slot, l}, value(1) * value(1));
        if (chance(3)) update = b_.guard(condition(), update);
        parts.push_back(update);
      }
      return b_.block(parts);
    });
  }

  Expr any_index() {
    const std::vector<Expr>& pool = chance(4) ? uniform_ : varying_;
    return pool[static_cast<size_t>(rng_.below(static_cast<int64_t>(pool.size())))];
  }

  // Within [0, 128).
  Expr safe_index() {
    switch (rng_.below(6)) {
      case 0: return floor_div(any_index() * Expr(3) + 2, Expr(rng_.below(5) + 3));
      case 1: return floor_mod(any_index() * Expr(5) + 7, Expr(rng_.below(100) + 1));
      case 2: return b_.read(index_, {any_index()});
      case 3: return Expr(127) - any_index();
      default: return any_index();
    }
  }

  Expr condition() {
    const Expr i = any_index();
    switch (rng_.below(5)) {
      case 0: return i < Expr(rng_.below(40));
      case 1: return (i >= Expr(2)) && (i < Expr(50));
      case 2: return b_.read(x_, {safe_index()}) < float_imm(0.25);
      case 3: return binary(BinaryOp::kEq, floor_mod(i, 3), Expr(1));
      default: return call(Intrinsic::kNot, {binary(BinaryOp::kOr, i < Expr(9), Expr(20) < i)});
    }
  }

  Expr leaf() {
    switch (rng_.below(7)) {
      case 0: return float_imm(static_cast<double>(rng_.below(8)) / 4);
      case 1: return cast(DType::kFloat32, b_.read(half_, {safe_index()}));
      case 2: return cast(DType::kFloat32, b_.read(byte_, {safe_index()})) * float_imm(0.01);
      case 3: return cast(DType::kFloat32, floor_mod(any_index(), 7));
      case 4: {  // padding: out of bounds where the condition does not hold
        const Expr i = safe_index();
        return select((i >= Expr(5)) && (i < Expr(100)),
                      b_.read(x_, {i - 5}),
                      chance(2) ? float_imm(0) : float_imm(2));
      }
      case 5: return b_.read(local_, {safe_index()});
      default: return b_.read(x_, {safe_index()});
    }
  }

  Expr value(int depth) {
    if (depth == 0) return leaf();
    const Expr a = value(depth - 1);
    switch (rng_.below(9)) {
      case 0: return a + value(depth - 1);
      case 1: return a - value(depth - 1);
      case 2: return a + value(depth - 1) * leaf();
      case 3: return max(a, value(depth - 1));
      case 4: return min(a, leaf());
      case 5: return call(Intrinsic::kTanh, {a});
      case 6: return call(Intrinsic::kAbs, {a});
      case 7: return select(condition(), a, value(depth - 1));
      default: {  // the load beyond the end is not evaluated
        const Expr i = safe_index() + 100;
        return select(i < Expr(128), b_.read(x_, {i}) * a, value(depth - 1));
      }
    }
  }

  Rng rng_;
  ProgramBuilder b_;
  TensorId x_, index_, half_, byte_, y_, vector_, scalar_, local_;
  std::vector<Expr> uniform_, varying_;
};

TEST(Programs, RandomOnes) {
  const char* rounds = std::getenv("PRUNER_ROUNDS");
  for (uint64_t seed = 0; seed < (rounds ? std::stoull(rounds) : 25); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = RandomProgram(seed).make();
    expect_same(program, random_args(program, seed + 1), 1e-3);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace pruner
